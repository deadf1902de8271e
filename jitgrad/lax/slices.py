"""Slices at positions that may be data, which move to the nearest ones that fit, as in jax.lax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ShapeError
from jitgrad.core.ir import Value
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, maximum, minimum
from jitgrad.ops.creation import arange, asarray, clone
from jitgrad.ops.indexing import take
from jitgrad.ops.movement import reshape, squeeze


def dynamic_slice(operand: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Tensor:
    """A copy of the part of ``operand`` with shape ``slice_sizes`` from ``start_indices`` on, ints or tensors without axes.

    Raises ShapeError if there is not one start and one size, that fits, per axis.
    """
    x = asarray(operand)
    starts = _starts("dynamic_slice", x, start_indices, slice_sizes)
    fixed = tuple([slice(s, s + n) if isinstance(s, int) else slice(None) for s, n in zip(starts, slice_sizes, strict=True)])
    part = clone(x[fixed]) if all([isinstance(s, int) for s in starts]) else x[fixed]
    for axis, (start, size) in enumerate(zip(starts, slice_sizes, strict=True)):
        if not isinstance(start, int):
            part = take(part, _places(start, size), axis=axis)
    return part


def dynamic_update_slice(operand: Any, update: Any, start_indices: Sequence[Any]) -> Tensor:
    """``operand`` with ``update`` in place of its part from ``start_indices`` on.

    Raises ShapeError if ``update`` has other axes, or does not fit.
    """
    x, new = asarray(operand), asarray(update)
    starts = _starts("dynamic_update_slice", x, start_indices, new.shape)
    if all([isinstance(s, int) for s in starts]):
        key: tuple[Any, ...] = tuple([slice(s, s + n) for s, n in zip(starts, new.shape, strict=True)])
    else:
        places = [_places(s, n) for s, n in zip(starts, new.shape, strict=True)]
        key = tuple([reshape(p, (-1,) + (1,) * (x.ndim - 1 - k)) for k, p in enumerate(places)])
    result: Tensor = x.at[key].set(new)
    return result


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Tensor:
    """`dynamic_slice` along one axis, with the others whole."""
    x = asarray(operand)
    k = normalize_axis("dynamic_slice_in_dim", axis, x.ndim)
    return dynamic_slice(x, _along(k, start_index, x.ndim), [slice_size if j == k else n for j, n in enumerate(x.shape)])


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The element ``index`` along ``axis``, whose length is 1 then, or which is gone without ``keepdims``."""
    part = dynamic_slice_in_dim(operand, index, 1, axis)
    return part if keepdims else squeeze(part, axis)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Tensor:
    """`dynamic_update_slice` along one axis."""
    x = asarray(operand)
    k = normalize_axis("dynamic_update_slice_in_dim", axis, x.ndim)
    return dynamic_update_slice(x, update, _along(k, start_index, x.ndim))


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Tensor:
    """``operand`` with ``update`` as its element ``index`` along ``axis``, with that axis or without it."""
    x, new = asarray(operand), asarray(update)
    k = normalize_axis("dynamic_update_index_in_dim", axis, x.ndim)
    if new.ndim < x.ndim:
        new = reshape(new, (*new.shape[:k], 1, *new.shape[k:]))
    return dynamic_update_slice_in_dim(x, new, index, k)


def _along(axis: int, start: Any, ndim: int) -> list[Any]:
    return [start if k == axis else 0 for k in range(ndim)]


def _places(start: Any, size: int) -> Tensor:
    return add(arange(size), start)


def _starts(what: str, x: Tensor, starts: Any, sizes: Sequence[int]) -> list[Any]:
    """``starts`` moved to where slices of ``sizes`` fit, as ints if they have values, else as tensors."""
    given = [*starts]
    fits = len(given) == len(sizes) == x.ndim and all([n <= length for n, length in zip(sizes, x.shape, strict=True)])
    if not fits:
        asked = f"{len(given)} starts and sizes {tuple(sizes)}"
        raise ShapeError(f"{what} of {x.aval}: got {asked}; one of each, that fits, is needed per axis")
    moved: list[Any] = []
    for start, size, length in zip(given, sizes, x.shape, strict=True):
        if isinstance(start, Tensor) and type(start._data) is Value:
            wrapped = add(start, (start < 0) * length)
            moved.append(minimum(maximum(wrapped, 0), length - size))
        else:
            place = int(start)
            moved.append(min(max(place + length * (place < 0), 0), length - size))
    return moved
