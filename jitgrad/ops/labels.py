"""Integer labels of scores: checks of them, and losses of what they pick."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape, normalize_axis
from jitgrad.core.context import current_interpreter
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.errors import ArgumentError, DtypeError, IndexingError, ShapeError, shown
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype, divide
from jitgrad.ops.comparison import equal, greater_equal, less, logical_and, not_equal, where
from jitgrad.ops.complex_parts import refuse_complex
from jitgrad.ops.creation import asarray, iota
from jitgrad.ops.indexing import take, take_along_axis
from jitgrad.ops.movement import expand_dims, reshape, squeeze
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import mean
from jitgrad.ops.reduce import sum as sum_

_FEW = 32  # integers at which Python looks in less time than a call of NumPy takes
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

Reduction = str  # "mean", "sum" or "none"


def reduced(what: str, losses: Tensor, reduction: Reduction) -> Tensor:
    """``losses``, their sum or their mean. Raises ArgumentError for another ``reduction``, DtypeError for complex losses."""
    refuse_complex(what, losses)
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum_(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(f"{what}: reduction must be 'mean', 'sum' or 'none', got {shown(reduction)}")


def class_axis(what: str, scores: Tensor, target: Tensor, axis: int | None, ignore_index: int) -> tuple[int, bool]:
    """The axis of the classes of ``scores``, and whether all labels are known to be classes, none of them ignored.

    Raises unless ``target`` has labels for the scores, which are seen if not traced. On a device a wrong label is an
    IndexError when a value is read.
    """
    given, wanted = scores.aval, target.aval
    if not given.shape:
        raise ShapeError(f"{what}: scores {given} have no class axis")
    find = _classes if axis is None or type(axis) is int else _classes.__wrapped__  # other axes may be no keys of a cache
    k, expected = find(what, given.shape, axis)
    if wanted.dtype.kind not in "iu":
        raise DtypeError(f"{what}: labels must be integers, got {wanted}")
    if wanted.shape != expected:
        raise ShapeError(
            f"{what}: scores {given} with classes on axis {k} need labels of shape {expected}, got "
            f"{wanted}; give axis= if the classes are on another axis"
        )
    if current_interpreter.get().tracing:
        return k, False
    classes, labels = given.shape[k], target._data
    if type(labels) is DeviceArray:
        apply(CHECK_CLASSES, where(equal(target, ignore_index), 0, target), count=classes)
        return k, False
    inside = _check_labels(what, labels if type(labels) is np.ndarray else target.concrete(what), classes, ignore_index)
    return k, inside and type(scores._data) is np.ndarray and type(labels) is np.ndarray and not 0 <= ignore_index < classes


@lru_cache(maxsize=1024)
def _classes(what: str, scores: Shape, axis: int | None) -> tuple[int, Shape]:
    """The axis of the classes of ``scores``, and the shape of their labels."""
    k = normalize_axis(what, min(1, len(scores) - 1) if axis is None else axis, len(scores))
    return k, scores[:k] + scores[k + 1 :]


def in_range(integers: np.ndarray[Any, Any], count: int) -> bool:
    """Whether all ``integers`` are in [0, count). Negative ones are large ones without a sign, so one look at them suffices."""
    if integers.ndim == 1 and 0 < integers.shape[0] <= _FEW:
        numbers = integers.tolist()
        return bool(min(numbers) >= 0 and max(numbers) < count)
    return not integers.size or bool(np.maximum.reduce(integers.view(_UNSIGNED[integers.itemsize]), axis=None) < count)


def is_unseen(x: Tensor) -> bool:
    """Whether the host does not look at the numbers of ``x``: they are traced, or on a device, for which it would wait."""
    return current_interpreter.get().tracing or type(x._data) is DeviceArray


def check_range(what: str, values: np.ndarray[Any, Any], count: int) -> None:
    """Raise IndexingError unless all ``values`` are in [0, count)."""
    if in_range(values, count):
        return
    low, high = int(np.minimum.reduce(values, None)), int(np.maximum.reduce(values, None))
    if low < 0 or high >= count:
        raise IndexingError(f"{what}: index {low if low < 0 else high} is not in [0, {count})")


def _checked_classes(x: np.ndarray[Any, Any], *, count: int) -> np.ndarray[Any, Any]:
    check_range("one_hot", x, count)
    return np.array(x, copy=True)


CHECK_CLASSES = define(
    "check_classes(x, *, count)",
    kind=Kind.OPAQUE,
    eager=_checked_classes,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, avals[0].dtype),
    vjp=None,
    domain=("index",),
    sample_attrs={"count": 100},
)


def _check_labels(what: str, labels: np.ndarray[Any, Any], classes: int, ignore_index: int) -> bool:
    """Whether all labels are classes; raises for one that is neither that nor ignored."""
    if in_range(labels, classes):
        return True
    wrong = ((labels < 0) | (labels >= classes)) & (labels != ignore_index)
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise IndexingError(
            f"{what}: label {labels[place]} at position {place} is not in [0, {classes}) "
            f"and is not ignore_index={ignore_index}"
        )
    return False


class Labels:
    """Integer labels of scores with classes on ``axis``, as masks that fuse with the scores.

    ``whole``: all labels are classes, none of them ignored, so that scores are looked up without masks.
    """

    def __init__(
        self, what: str, scores: Tensor, target: Tensor, axis: int, ignore_index: int, whole: bool = False
    ) -> None:
        self.what = what
        self.axis = axis
        self.classes: int = scores.shape[axis]
        self.target = target
        self.whole = whole
        # float16 cannot count beyond 2048
        counting = np.promote_types(scores.dtype, np.float32)
        self.count: Any
        if whole:
            self.count = counting.type(target.size)
            return
        self.count = sum_(astype(not_equal(target, ignore_index), counting))
        self.ignored: Tensor = equal(target, ignore_index)
        self.inside: Tensor = logical_and(greater_equal(target, 0), less(target, self.classes))
        # compared as integers as wide as the scores, one to a vector lane; -1 is no class
        position = np.dtype(np.int32 if scores.dtype.itemsize <= 4 and self.classes < 2**31 else np.int64)
        place = astype(where(self.inside, astype(target, np.int64), -1), position)
        with beside(place):
            self.hot: Tensor = equal(expand_dims(place, self.axis), iota(scores.shape, self.axis, position))

    def pick(self, scores: Tensor) -> Tensor:
        """The score of each label: by a masked sum, a row reduction like the others of the loss, unless looked up."""
        if self.whole:
            places = expand_dims(self.target, self.axis)
            return squeeze(take_along_axis(scores, places, self.axis), self.axis)
        return sum_(where(self.hot, scores, 0.0), axis=self.axis)

    def pick_weight(self, weight: Any) -> Tensor:
        """The class weight of each label."""
        along = self.along_classes(weight)
        return take(reshape(along, (self.classes,)), self.target, axis=0) if self.whole else self.pick(along)

    def along_classes(self, weight: Any) -> Tensor:
        """A vector over the classes, placed to broadcast against the scores."""
        weight = asarray(weight)
        if weight.shape != (self.classes,):
            raise ShapeError(f"{self.what}: weight must have shape {(self.classes,)}, got {weight.aval}")
        return expand_dims(weight, tuple(range(1, self.target.ndim + 1 - self.axis)))

    def finish(self, losses: Tensor, weights: Tensor | None, reduction: Reduction) -> Tensor:
        """Zero where ignored; the mean is over what is not ignored, by weight. NaN where compiled code met a label
        out of range, which the eager check would have refused."""
        if not self.whole:
            losses = where(self.ignored, 0.0, where(self.inside, losses, float("nan")))
        if reduction != "mean":
            return reduced(self.what, losses, reduction)
        if weights is None:
            # each by the count, not their sum: the gradient of a row then needs no other row
            average = sum_(divide(losses, self.count)) if losses.size else mean(losses)
            return average if average.dtype == losses.dtype else astype(average, losses.dtype)
        return divide(sum_(losses), sum_(weights if self.whole else where(self.ignored, 0.0, weights)))
