"""NumPy's functions about the order of elements: sorting, searching, quantiles, counting."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.aval import is_number_of_trace, normalize_axes
from jitgrad.core.errors import ArgumentError, ShapeError, TracedValueError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.numpy.arguments import INT64, floating, refuse, tensor_of
from jitgrad.numpy.fixed_sizes import sized_nonzero, sized_unique
from jitgrad.numpy.output import takes_out
from jitgrad.numpy.shapes import ravel
from jitgrad.ops import comparison, creation, reduce, sorting
from jitgrad.ops.arithmetic import add, astype, maximum, minimum, multiply, subtract
from jitgrad.ops.comparison import isnan, less, where
from jitgrad.ops.indexed_sums import index_add
from jitgrad.ops.indexing import take, take_along_axis
from jitgrad.ops.interpolation import lerp
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import broadcast_to, flip, moveaxis, reshape
from jitgrad.ops.operand import as_result, contents_of, host_array
from jitgrad.ops.placement import beside_operands, move
from jitgrad.ops.positions import length_in_call
from jitgrad.ops.rounding import ceil, floor, remainder, rint


def sort(a: Any, axis: int | None = -1, kind: Any = None, order: None = None, *, stable: bool | None = None) -> Tensor:
    """``a`` sorted along ``axis`` (None: flattened); NaN comes last."""
    refuse("sort", order=order)
    return sorting.sort(tensor_of(a), axis=axis)


def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: None = None, *, stable: bool | None = None) -> Tensor:
    """The positions that sort ``a`` along ``axis`` (None: flattened); equal elements keep their order."""
    refuse("argsort", order=order)
    return sorting.argsort(tensor_of(a), axis)


def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The positions that sort by the last of ``keys``, equal ones by the one before, and so on."""
    columns = [tensor_of(key) for key in keys]
    if not columns:
        raise ArgumentError("lexsort: at least one key is needed")
    order = sorting.argsort(columns[0], axis)
    for key in columns[1:]:
        order = take_along_axis(order, sorting.argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None) -> Tensor:
    """``a`` sorted along ``axis``, which partitions it at every position."""
    return sort(a, axis, order=order)


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None) -> Tensor:
    """The positions that sort ``a`` along ``axis``, which partition it at every position."""
    return argsort(a, axis, order=order)


@beside_operands
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """The positions of ``v`` in the sorted vector ``a``: before its equals, or after."""
    return sorting.searchsorted(tensor_of(a), tensor_of(v), side, sorter=sorter)


@beside_operands
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The number of the bin of each element, between edges that grow, or that fall."""
    values, edges = tensor_of(x), tensor_of(bins)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins must be a vector, got {edges.aval}")
    rising = sorting.searchsorted(edges, values, "left" if right else "right")
    if edges.size < 2:
        return rising
    falling = subtract(edges.size, sorting.searchsorted(flip(edges), values, "left" if right else "right"))
    return where(less(edges[-1], edges[0]), falling, rising)


@beside_operands
def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Tensor:
    """How often each number from 0 up occurs in ``x``, or the sums of their ``weights``.

    The length depends on the values: a @jit function has a program for each. Where it has no call to follow, as under
    vmap, the length is ``minlength``, and a number that is not below that is an IndexingError.

    With ``length``, which is JAX's, the result has it in all calls; negative numbers count as 0, larger ones not at all.
    """
    given = tensor_of(x)
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise ArgumentError(f"bincount takes a vector of ints, got {given.aval}")
    if length is not None:
        places = maximum(minimum(astype(given, np.int64), length), 0)
        return _counts_below(length + 1, places, weights)[:length]
    least = operator.index(minlength)
    data = host_array(given) if weights is None else None
    if data is not None and least >= 0 and data.dtype.kind != "u" and not (data.size and data.min() < 0):
        return as_result(np.bincount(data, minlength=least))
    what = "bincount" if least else "bincount without minlength="
    longest = partial(_numbers_below, given, least)
    try:
        length = length_in_call(given, what, longest)
    except TracedValueError:  # no call to follow
        if not least:
            raise
        return _counts_below(least, given, weights)
    if length is not None:  # of a call that has another length the program must not fail, for it tells that length
        return _counts_below(length, minimum(given, max(length - 1, 0)), weights)
    array = contents_of(given, what)
    if array.size and array.min() < 0:
        raise ArgumentError(f"bincount: the numbers must not be negative, got {array.min()}")
    length = max(least, int(array.max()) + 1 if array.size else 0)
    if weights is None:
        return move(tensor_of(np.bincount(array, minlength=length)), given.device)
    zeros = creation.full((length,), 0.0, dtype=np.float64, device=given.device)
    return index_add(zeros, 0, given, astype(tensor_of(weights), np.float64))


def _numbers_below(given: Tensor, least: int) -> Tensor:
    """The length of `bincount`."""
    if not given.size:
        return tensor_of(least)
    return maximum(add(astype(reduce.max(given), INT64), 1), least)


def _counts_below(length: int, given: Tensor, weights: Any) -> Tensor:
    """`bincount` of numbers that are all below ``length``; others are an IndexingError."""
    places = astype(given, np.int64)  # a negative index would count from the end
    places = where(less(places, 0), length, places)
    dtype = np.dtype(np.int64 if weights is None else np.float64)
    length_in_call = creation.ones(given.shape, dtype=dtype) if weights is None else astype(tensor_of(weights), dtype)
    return index_add(creation.full((length,), 0, dtype=dtype), 0, places, length_in_call)


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None,
    *, equal_nan: bool = True, size: int | None = None, fill_value: Any = None,
) -> Any:  # fmt: skip
    """The distinct elements in order, and what else is asked for. JAX's ``size`` fixes their number, as in `nonzero`."""
    refuse("unique", equal_nan=None if equal_nan else equal_nan)
    if size is not None:
        return sized_unique(ar, size, fill_value, return_index, return_inverse, return_counts, axis)
    return sorting.unique(tensor_of(ar), return_index, return_inverse, return_counts, axis)


# --- quantiles -----------------------------------------------------------------------------------------------------


def _lines(x: Tensor, axis: Any) -> tuple[Tensor, tuple[int, ...]]:
    """``x`` with the axes ``axis`` as one last axis, and its shape with these axes of length 1."""
    axes = normalize_axes("quantile", axis, x.ndim)
    kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    moved = moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
    count = math.prod(x.shape[k] for k in axes)
    if not count:
        raise ShapeError(f"quantile over axis {axis} of {x.aval}: an empty axis has no quantiles")
    return reshape(moved, (*moved.shape[: x.ndim - len(axes)], count)), kept


def _between(low: Tensor, high: Tensor, position: Any, method: str) -> Tensor:
    """The value at ``position``, whose neighbours are ``low`` and ``high``."""
    share = subtract(position, floor(position))
    if method == "linear":
        return lerp(low, high, astype(share, low.dtype))
    if method == "midpoint":
        return where(share > 0, multiply(add(low, high), 0.5), low)
    if method == "nearest":
        return where(rint(position) > floor(position), high, low)
    return low if method == "lower" else high


@takes_out
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    """The ``q``-quantiles over ``axis``, axes of ``q`` first; NaN where any element is.

    ``method`` is "linear", "lower", "higher", "midpoint" or "nearest".
    """
    return _quantile(a, q, axis, method, keepdims, skip_nan=False)


@takes_out
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    """:func:`quantile` of the elements that are not NaN."""
    return _quantile(a, q, axis, method, keepdims, skip_nan=True)


@composed
def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool, *, skip_nan: bool) -> Tensor:
    if method not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ArgumentError(f"quantile: method must be linear, lower, higher, midpoint or nearest, got {shown(method)}")
    if is_number_of_trace(q):
        q = tensor_of(q)
    if not isinstance(q, Tensor) and not np.all(((given := np.asarray(q)) >= 0) & (given <= 1)):
        raise ArgumentError(f"quantile: q must be between 0 and 1 (a percentile between 0 and 100), got {shown(q)}")
    x = floating(a)
    probability = astype(tensor_of(q), np.float64).to(x.device)
    rows, kept = _lines(x, axis)
    ordered = sorting.sort(rows, axis=-1)
    missing = astype(reduce.sum(isnan(rows), -1), np.float64)
    last = subtract(rows.shape[-1] - 1, missing) if skip_nan else float(rows.shape[-1] - 1)
    flat = reshape(probability, (-1, *(1 for _ in rows.shape[:-1])))
    position = broadcast_to(maximum(multiply(flat, last), 0.0), (flat.shape[0], *rows.shape[:-1]))
    places = [astype(moveaxis(f(position), 0, -1), INT64) for f in (floor, ceil)]
    low, high = (moveaxis(take_along_axis(ordered, k, -1), -1, 0) for k in places)
    values = _between(low, high, position, method)
    if not skip_nan:
        values = where(missing > 0, math.nan, values)
    shape = kept if keepdims else rows.shape[:-1]
    return reshape(values, (*probability.shape, *shape))


def percentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    """:func:`quantile` of percentages."""
    return quantile(a, _of_hundred(q), axis, out, overwrite_input, method, keepdims)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False,
) -> Tensor:  # fmt: skip
    """:func:`nanquantile` of percentages."""
    return nanquantile(a, _of_hundred(q), axis, out, overwrite_input, method, keepdims)


def _of_hundred(q: Any) -> Tensor:
    return floating(q) / 100.0


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    """The middle element over ``axis``, or the mean of both."""
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    """:func:`median` of the elements that are not NaN."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


# --- selecting by position -----------------------------------------------------------------------------------------


@beside_operands
def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Tensor, ...]:
    """The positions of the elements that are not zero, one tensor per axis.

    JAX's ``size`` fixes their number, for `jitgrad.vmap` and one program: further ones are cut off, missing ones are
    ``fill_value``, 0 by default.
    """
    if size is not None:
        return sized_nonzero(a, size, fill_value)
    out: tuple[Tensor, ...] = comparison.nonzero(tensor_of(a))
    return out


@beside_operands
def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Tensor:
    """The positions of the elements that are not zero, one in each row; ``size`` as in `nonzero`."""
    if size is not None:
        return stack(sized_nonzero(a, size, fill_value), -1)
    out: Tensor = comparison.nonzero(tensor_of(a), as_tuple=False)
    return out


@beside_operands
def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Tensor:
    """The positions of the elements that are not zero in the flattened array; ``size`` as in `nonzero`."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


@beside_operands
def extract(condition: Any, arr: Any) -> Tensor:
    """The elements where ``condition`` is not zero, as a vector."""
    return take(ravel(arr), flatnonzero(condition), 0)


@takes_out
@beside_operands
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Tensor:
    """The slices along ``axis`` (None: flattened) where ``condition`` is not zero."""
    return take(ravel(a) if axis is None else tensor_of(a), flatnonzero(condition), 0 if axis is None else axis)


@takes_out
@beside_operands
def take_(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Tensor:
    """The slices along ``axis`` (None: flattened) at ``indices``; ``mode`` "clip" and "wrap" bring these within bounds."""
    given, positions = (ravel(a) if axis is None else tensor_of(a)), tensor_of(indices)
    k = 0 if axis is None else axis
    if mode == "wrap":
        positions = remainder(positions, given.shape[k])
    elif mode == "clip":
        positions = positions.clip(0, given.shape[k] - 1)
    elif mode != "raise":
        raise ArgumentError(f"take: mode must be raise, wrap or clip, got {shown(mode)}")
    return take(given, positions, k)


def along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """One element of ``arr`` along ``axis`` (None: flattened) for each of ``indices``."""
    if axis is None:
        return take_along_axis(ravel(arr), ravel(indices), 0)
    return take_along_axis(tensor_of(arr), tensor_of(indices), axis)
