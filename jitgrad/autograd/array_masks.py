"""Masked gradients (see `jitgrad.autograd.masks`) where backward sends arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitgrad.autograd.masks import Mask, MaskedGradient
from jitgrad.core.aval import Aval
from jitgrad.core.tensor import Tensor
from jitgrad.eager.where import select_by_mask
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import asarray

_Array = np.ndarray[Any, Any]


class MaskKind(NamedTuple):
    """What a rule must know of a mask: the shape of its condition, and the flags of `Mask` and `MaskedGradient`."""

    shape: tuple[int, ...]
    kept: bool
    activation: bool
    applied: bool


class MaskedArray:
    """`MaskedGradient` of arrays: ``raw`` where ``condition`` equals ``kind.kept``, and zero elsewhere."""

    __slots__ = ("condition", "kind", "raw")

    def __init__(self, raw: _Array, condition: _Array, kind: MaskKind) -> None:
        self.raw: np.ndarray[Any, Any] = raw
        self.condition: np.ndarray[Any, Any] = condition
        self.kind: MaskKind = kind

    def settle(self) -> _Array:
        """The gradient as an array, with the mask applied."""
        if self.kind.applied:
            return self.raw
        zero = self.raw.dtype.type(0)
        yes, no = (self.raw, zero) if self.kind.kept else (zero, self.raw)
        return np.asarray(select_by_mask(self.condition, yes, no))

    def gradient(self) -> MaskedGradient:
        """The same of tensors."""
        return masked_gradient(Tensor(self.raw), Tensor(self.condition), self.kind)


def masked_gradient(raw: Tensor, condition: Tensor, kind: MaskKind) -> MaskedGradient:
    """``raw`` under the mask of ``condition``."""
    mask = Mask(lambda: condition, condition.shape, kind.kept, None, kind.activation)
    return MaskedGradient(raw, mask, kind.applied)


def mask_parts(g: MaskedGradient) -> tuple[Tensor, Tensor, MaskKind]:
    """What makes the MaskedArray of ``g``: the raw gradient, the condition as a bool tensor, and the kind."""
    mask = g.mask
    condition, kept = (mask.condition(), mask.kept) if mask.parent is None else (mask.tensor(), True)
    condition = asarray(condition)
    if condition.dtype != np.bool_:
        condition = astype(condition, np.dtype(np.bool_))
    return g.raw, condition, MaskKind(condition.shape, kept, mask.activation, g.applied)


def on_array(g: Any) -> _Array | MaskedArray | None:
    """A gradient of tensors as one of arrays; None if they have none."""
    if type(g) is not MaskedGradient:
        return g._data if type(g) is Tensor and type(g._data) is np.ndarray else None
    raw, condition, kind = mask_parts(g)
    if type(raw._data) is not np.ndarray or type(condition._data) is not np.ndarray:
        return None
    return MaskedArray(raw._data, condition._data, kind)


def maker(kind: MaskKind, gradient: Aval) -> Callable[[_Array, _Array], _Array | MaskedArray]:
    """The function that makes the masked gradient of ``raw`` and ``condition``.

    A mask of few elements, such as one of rows, is looked at: mostly it excludes nothing, and is none then.
    """
    if kind.activation or 4 * int(np.prod(kind.shape)) > gradient.size:
        return lambda raw, condition: MaskedArray(raw, condition, kind)
    excludes_none = np.logical_and.reduce if kind.kept else lambda c, axis: not np.logical_or.reduce(c, axis)
    return lambda raw, condition: raw if excludes_none(condition, None) else MaskedArray(raw, condition, kind)


def sum_of_masked(a: MaskedArray, b: MaskedArray) -> _Array | MaskedArray | None:
    """The sum of two gradients under the mask of one condition; None if their masks have two."""
    one, other = a.kind, b.kind
    if a.condition is not b.condition:
        return None
    if one == other:
        return MaskedArray(np.asarray(np.add(a.raw, b.raw)), a.condition, one)
    if one.kept is other.kept:
        return None
    first, second = (a, b) if one.kept else (b, a)
    return np.asarray(select_by_mask(a.condition, first.raw, second.raw))
