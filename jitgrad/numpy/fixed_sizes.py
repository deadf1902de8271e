"""jax.numpy's ``size=``: results of a fixed length in place of one that depends on values, filled up or cut."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import INT64, in_dtype, tensor_of
from jitgrad.numpy.shapes import ravel
from jitgrad.ops import reduce, sorting
from jitgrad.ops.arithmetic import astype, minimum, subtract
from jitgrad.ops.comparison import isnan, less, logical_and, logical_not, not_equal, where
from jitgrad.ops.creation import arange
from jitgrad.ops.grids import unravel_index
from jitgrad.ops.indexed_sums import scatter_add
from jitgrad.ops.indexing import take
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import cut


def _checked(function: str, size: Any) -> int:
    length = operator.index(size)
    if length < 0:
        raise ArgumentError(f"{function}: size= must not be negative, got {shown(size)}")
    return length


def _first_true(mask: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The first ``size`` positions where the vector ``mask`` is true, 0 behind the last one; and which of them there are."""
    order = sorting.argsort(logical_not(mask))
    places = order[:size] if size <= mask.shape[0] else concat([order, np.zeros(size - mask.shape[0], np.int64)])
    there = less(arange(size), reduce.sum(astype(mask, INT64)))
    return where(there, places, 0), there


def sized_nonzero(a: Any, size: Any, fill_value: Any = None) -> tuple[Tensor, ...]:
    """The positions of the first ``size`` elements that are not zero, one tensor per axis; ``fill_value``, or 0, where there
    are fewer."""
    x, length = tensor_of(a), _checked("nonzero", size)
    flat, there = _first_true(not_equal(ravel(x), 0), length)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * x.ndim
    if len(fills) != x.ndim:
        raise ArgumentError(f"nonzero: fill_value= is one value or one for each axis of {x.aval}, got {shown(fill_value)}")
    places = unravel_index(flat, x.shape)
    return tuple([where(there, place, fill) for place, fill in zip(places, fills, strict=True)])


def sized_unique(
    ar: Any, size: Any, fill_value: Any, return_index: bool, return_inverse: bool, return_counts: bool, axis: int | None
) -> Any:
    """The first ``size`` distinct elements in order, then ``fill_value`` or the smallest; and what else is asked for."""
    x, length = tensor_of(ar), _checked("unique", size)
    if axis is not None and x.ndim > 1:
        raise ArgumentError(f"unique: size= is for the elements of the flattened array, axis=None; got axis {axis} of {x.aval}")
    flat = ravel(x)
    order = sorting.argsort(flat)
    ordered = take(flat, order, 0)
    n = flat.shape[0]
    later, earlier = cut(ordered, 0, 1, n), cut(ordered, 0, 0, n - 1)
    differs = not_equal(later, earlier)
    if x.dtype.kind in "fc":  # all NaN are one
        differs = logical_and(differs, logical_not(logical_and(isnan(later), isnan(earlier))))
    starts = concat([np.ones(1, np.bool_), differs])
    places, there = _first_true(starts, length)
    found = take(ordered, places, 0)
    results = [found if fill_value is None else in_dtype(where(there, found, fill_value), x.dtype)]
    rank = subtract(reduce.cumulative_sum(astype(starts, INT64), 0), 1)
    if return_index:
        results.append(take(order, places, 0))
    if return_inverse:
        results.append(take(rank, sorting.argsort(order), 0).reshape(x.shape))
    if return_counts:
        beyond = scatter_add(np.zeros(length + 1, np.int64), 0, minimum(rank, length), np.ones(n, np.int64))
        results.append(cut(beyond, 0, 0, length))
    return tuple(results) if len(results) > 1 else results[0]
