"""Elements chosen, replaced and combined by place: functions that torch has and NumPy has not."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, astype, divide, multiply, subtract
from jitgrad.ops.comparison import equal, greater, less, logical_and, not_equal, where
from jitgrad.ops.creation import asarray, detached, full, iota, zeros
from jitgrad.ops.grids import unravel_index
from jitgrad.ops.indexing import as_constant, take_along_axis
from jitgrad.ops.inplace import with_added, with_item
from jitgrad.ops.joining import chunked, concat, cropped, pad, stack
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import SLICE, broadcast_to, cut, flatten, reshape, squeeze
from jitgrad.ops.norms import vector_norm
from jitgrad.ops.operand import Operand, ValuesAndIndices
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import argmax, cumulative_sum
from jitgrad.ops.scattering import scatter_reduce, strided_places
from jitgrad.ops.sorting import argsort, sort
from jitgrad.ops.torch_names import cummax
from jitgrad.ops.view_lists import lists_views

# --- order -------------------------------------------------------------------------------------------------------


def msort(x: Operand) -> Tensor:
    """``x`` sorted along its first axis; a 0-d tensor as it is."""
    given = asarray(x)
    return sort(given, 0) if given.ndim else given


@takes_dim()
def mode(x: Operand, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """The most frequent element along ``axis``, the least of several, and the last position that has it."""
    given = asarray(x)
    k = normalize_axis("mode", axis, given.ndim)
    if not given.ndim:
        with beside(given):
            return ValuesAndIndices(given, full((), 0, dtype=np.int64))
    if not given.shape[k]:
        raise ShapeError(f"mode over axis {axis} of {given.aval}: an empty axis has no most frequent element")
    indices = _last_of_most_frequent(detached(given), k)
    values = take_along_axis(given, indices, k)
    return ValuesAndIndices(*(y if keepdims else squeeze(y, k) for y in (values, indices)))


@composed
def _last_of_most_frequent(x: Tensor, axis: int) -> Tensor:
    """The positions that `mode` finds, as an axis of length 1."""
    order = argsort(x, axis)
    ordered, n = take_along_axis(x, order, axis), x.shape[axis]
    with beside(x):
        place = iota(x.shape, axis)
    begins = not_equal(cut(ordered, axis, 1, n), cut(ordered, axis, 0, n - 1))
    starts = where(concat([equal(cut(place, axis, 0, 1), 1), begins], axis), place, 0)
    longest = argmax(subtract(place, cummax(starts, axis).values), axis, keepdims=True)
    return take_along_axis(order, longest, axis)


# --- places ------------------------------------------------------------------------------------------------------


_REDUCTIONS = ("prod", "mean", "amax", "amin")


@takes_dim()
def index_reduce(
    x: Operand, axis: int, index: Operand, source: Operand, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``x`` with the "prod", "mean", "amax" or "amin" of the slices of ``source`` for each place along ``axis``.

    ``index`` is a vector with the place of each slice. Without ``include_self`` the old slice of a place that gets any does
    not count. Equal extremes share the gradient.
    """
    if reduce not in _REDUCTIONS:
        raise ArgumentError(f"index_reduce: reduce must be one of {', '.join(_REDUCTIONS)}, got {shown(reduce)}")
    target, places, values = asarray(x), asarray(index), asarray(source)
    if places.ndim > 1:
        raise ShapeError(f"index_reduce: the index must be a vector, got {places.aval}")
    if not target.ndim:
        parts = reshape(target, (1,)), reshape(places, (-1,)), reshape(values, (-1,))
        return reshape(scatter_reduce(parts[0], 0, *parts[1:], reduce, include_self=include_self), ())
    k = normalize_axis("index_reduce", axis, target.ndim)
    wide = broadcast_to(reshape(places, (-1, *[1] * (target.ndim - k - 1))), values.shape)
    return scatter_reduce(target, k, wide, values, reduce, include_self=include_self)


def as_strided_scatter(
    x: Operand, src: Operand, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = 0
) -> Tensor:
    """``x`` with ``src`` in place of ``as_strided(x, size, stride, storage_offset)``."""
    target, values = asarray(x), asarray(src)
    if values.shape != tuple(size):
        raise ShapeError(f"as_strided_scatter: src must have the shape {tuple(size)}, got {values.aval}")
    places = strided_places("as_strided_scatter", target.size, size, stride, storage_offset or 0)
    with beside(target):
        return reshape(with_item(flatten(target), (as_constant(places),), values), target.shape)


def nonzero_static(x: Operand, *, size: int, fill_value: int = -1) -> Tensor:
    """The first ``size`` positions [size, axes] where ``x`` is not 0, then ``fill_value``; unlike those of ``nonzero`` their
    number does not depend on values, so that compiled functions can have them."""
    given = detached(asarray(x))
    count = operator.index(size)
    if count < 0:
        raise ArgumentError(f"nonzero_static: size must not be negative, got {size}")
    found = not_equal(flatten(given), 0)
    number = subtract(cumulative_sum(astype(found, np.int64), 0), 1)
    with beside(given):
        taken = logical_and(found, less(number, count))
        row = zeros((count + 1,), dtype=np.int64)
        places = cut(with_added(row, (where(taken, number, count),), iota(found.shape, 0)), 0, 0, count)
        there = less(iota((count,), 0), add(cut(number, 0, found.size - 1, found.size), 1) if found.size else 0)
    columns = unravel_index(places, given.shape)
    out = stack(columns, -1) if columns else zeros((count, 0), dtype=np.int64)
    return where(reshape(there, (count, 1)), out, fill_value)


# --- slices ------------------------------------------------------------------------------------------------------


@takes_dim()
@lists_views
def split_with_sizes(x: Operand, split_sizes: Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``axis`` into pieces of the lengths ``split_sizes``, which add up to its length."""
    sizes, aval = [operator.index(n) for n in split_sizes], aval_of(SLICE, x)
    k = normalize_axis("split_with_sizes", axis, aval.ndim)
    if sum(sizes) != aval.shape[k] or min(sizes, default=0) < 0:
        raise ArgumentError(f"split_with_sizes: the sizes {sizes} do not add up to axis {axis} of {aval}")
    return chunked(x, sizes, k)


@takes_dim()
@lists_views
def unsafe_split(x: Operand, split_size: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``axis`` into pieces of ``split_size``, of which the last is shorter."""
    return chunked(x, split_size, axis)


@takes_dim()
@composed
def renorm(x: Operand, p: float, axis: int, maxnorm: float) -> Tensor:
    """``x``, whose slices along ``axis`` with a larger ``p``-norm than ``maxnorm`` are scaled down to it."""
    given = asarray(x)
    k = normalize_axis("renorm", axis, given.ndim)
    others = tuple(j for j in range(given.ndim) if j != k)
    length = vector_norm(given, p, others, True)
    return multiply(given, where(greater(length, maxnorm), divide(maxnorm, add(length, 1e-7)), 1.0))


def constant_pad_nd(x: Operand, pad_width: Sequence[int], value: Any = 0) -> Tensor:
    """``x`` with ``value`` around it: (before, after) for the last axis, then for the one before it, and so on; negative
    numbers cut elements off."""
    given, widths = asarray(x), [operator.index(n) for n in pad_width]
    part, grown = cropped(f"constant_pad_nd: {widths}", given, widths)
    return pad(part, grown, constant_values=value)
