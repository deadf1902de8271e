"""NumPy's functions that change their first argument: here a tensor, as by assignments to its elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import operand, tensor_of
from jitgrad.numpy.shapes import ravel
from jitgrad.ops.arithmetic import clip, subtract
from jitgrad.ops.comparison import where as choose
from jitgrad.ops.creation import arange
from jitgrad.ops.indexing import take
from jitgrad.ops.movement import reshape
from jitgrad.ops.reduce import cumulative_sum
from jitgrad.ops.rounding import floor_divide, remainder

_InPlace = TypeVar("_InPlace", bound=Callable[..., None])


def _of_arrays_too(function: _InPlace) -> _InPlace:
    """``function``, which of a NumPy array outside of traces is NumPy's, unless other arguments are tensors."""
    own = getattr(np, function.__name__)

    @wraps(function)
    def either(target: Any, *args: Any, **kwargs: Any) -> None:
        others = (*args, *kwargs.values())
        if type(target) is not np.ndarray or current_interpreter.get().tracing or any(isinstance(x, Tensor) for x in others):
            function(target, *args, **kwargs)
        else:
            own(target, *args, **kwargs)

    return either  # type: ignore[return-value]


def _target(function: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise OperandError(
            f"jitgrad.numpy.{function} changes a tensor in place, got {type(x).__name__}: "
            f"make it one with asarray(x), or call numpy.{function} to change an array"
        )
    return x


def _repeated(function: str, values: Any, positions: Any) -> Tensor:
    """The flat ``values`` at ``positions``, from the first again after the last; a single value stays one."""
    flat = ravel(values)
    if not flat.size:
        raise ArgumentError(f"{function}: there are no values to take, got {flat.aval}")
    return flat if flat.size == 1 else take(flat, remainder(positions, flat.size), 0)


def _write_where(target: Tensor, chosen: Tensor, values: Tensor) -> None:
    """``values``, one or as many as ``target`` has elements, at the places that are ``chosen``."""
    value = reshape(values, () if values.size == 1 else target.shape)
    copyto(target, value, "unsafe", reshape(chosen, target.shape))


@_of_arrays_too
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """``dst[...] = src``, where ``where`` holds; DtypeError if ``casting`` does not allow it."""
    target, value = _target("copyto", dst), operand(src)
    dtype = getattr(value, "dtype", None)
    if dtype is not None and not np.can_cast(dtype, target.dtype, casting):
        raise DtypeError(f"copyto: {dtype} to {target.dtype} is no {casting!r} cast: convert with astype, or pass casting=")
    target[...] = value if where is True else choose(tensor_of(where), value, target)


@_of_arrays_too
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """``a[k, k, ...] = val`` for each k; a longer vector is cut, a shorter one starts again."""
    target = _target("fill_diagonal", a)
    if target.ndim < 2 or (target.ndim > 2 and len(set(target.shape)) > 1):
        raise ShapeError(f"fill_diagonal takes a matrix, or more axes of one length, got {target.aval}")
    if wrap and target.shape[0] > target.shape[1] + 1:
        raise ArgumentError("jitgrad.numpy.fill_diagonal takes no wrap= of a tall matrix: assign to each block of rows")
    n = min(target.shape)
    positions = np.arange(n)
    value = tensor_of(val)
    if value.ndim:
        value = _repeated("fill_diagonal", value, positions)
    target[(positions,) * target.ndim] = value


@_of_arrays_too
def putmask(a: Any, mask: Any, values: Any) -> None:
    """``values`` at the places of ``a`` where the mask of its shape holds; others than one or as many start again."""
    target, chosen = _target("putmask", a), tensor_of(mask)
    if chosen.shape != target.shape:
        raise ShapeError(f"putmask: the mask has shape {chosen.shape}, the tensor {target.shape}")
    value = ravel(values)
    _write_where(target, chosen, _repeated("putmask", value, np.arange(target.size)) if value.size else value)


@_of_arrays_too
def place(arr: Any, mask: Any, vals: Any) -> None:
    """The first value at the first place of ``arr`` where the mask holds, and so on, starting again after the last."""
    target, chosen = _target("place", arr), ravel(mask)
    if chosen.size != target.size:
        raise ShapeError(f"place: the mask has {chosen.size} elements, the tensor {target.size}")
    nth = subtract(cumulative_sum(chosen.astype(np.int64), 0), 1)
    _write_where(target, chosen, _repeated("place", vals, clip(nth, 0)))


@_of_arrays_too
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """``v`` at the positions ``ind`` of the flattened ``a``; of equal positions the last counts."""
    target, flat = _target("put", a), ravel(ind)
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"put: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    if mode != "raise":
        flat = remainder(flat, target.size) if mode == "wrap" else clip(flat, 0, target.size - 1)
    if not flat.size:
        return
    index = []
    for k, n in enumerate(target.shape):
        rest = math.prod(target.shape[k + 1 :])
        position = floor_divide(flat, rest)
        index.append(remainder(position, n) if k else position)
    target[tuple(index)] = _repeated("put", v, np.arange(flat.size))


@_of_arrays_too
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """``values`` at the positions ``indices`` along ``axis`` (None: of the flattened array), as take_along_axis reads."""
    target, positions = _target("put_along_axis", arr), tensor_of(indices)
    if axis is None:
        put(target, positions, values)
        return
    if positions.ndim != target.ndim:
        raise ShapeError(f"put_along_axis: {target.aval} needs as many axes of indices, got {positions.aval}")
    along = normalize_axis("put_along_axis", axis, target.ndim)
    index: list[Any] = []
    for k, n in enumerate(target.shape):
        index.append(positions if k == along else reshape(arange(n), (*[1] * k, n, *[1] * (target.ndim - k - 1))))
    target[tuple(index)] = operand(values)
