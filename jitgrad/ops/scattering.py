"""Tensors with some elements replaced or added to, under torch's names; all of them return new tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError, shown
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, astype, clip, divide, maximum, multiply, subtract
from jitgrad.ops.comparison import equal, greater, where
from jitgrad.ops.creation import asarray, full, iota, zeros
from jitgrad.ops.diagonals import diagonal
from jitgrad.ops.indexed_sums import scatter_add
from jitgrad.ops.indexing import TAKE, as_constant, gather, take
from jitgrad.ops.inplace import with_added, with_item
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import broadcast_to, flatten, moveaxis, reshape
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import cumulative_sum
from jitgrad.ops.rounding import floor
from jitgrad.ops.subscript import get_item

# --- slices ------------------------------------------------------------------------------------------------------


@composed
@takes_dim()
def slice_scatter(
    x: Operand, src: Operand, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """``x`` with ``src`` in place of ``x[start:end:step]`` along ``axis``."""
    target = asarray(x)
    k = normalize_axis("slice_scatter", axis, target.ndim)
    return with_item(target, (*[slice(None)] * k, slice(start, end, step)), src)


@composed
@takes_dim()
def select_scatter(x: Operand, src: Operand, axis: int, index: int) -> Tensor:
    """``x`` with ``src`` in place of ``x[index]`` along ``axis``."""
    target = asarray(x)
    return with_item(target, (*[slice(None)] * normalize_axis("select_scatter", axis, target.ndim), index), src)


@takes_dim(dim1="axis1", dim2="axis2")
def diagonal_scatter(x: Operand, src: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """``x`` with ``src`` in place of ``diagonal(x, offset, axis1, axis2)``."""
    target, values = asarray(x), asarray(src)
    whole = moveaxis(target, (axis1, axis2), (-2, -1))
    length = diagonal(target, offset, axis1, axis2).shape[-1]
    at = np.arange(length)
    rows, columns = at + max(0, -offset), at + max(0, offset)
    with beside(target):
        new = with_item(whole, (..., as_constant(rows), as_constant(columns)), values)
    return moveaxis(new, (-2, -1), (axis1, axis2))


def as_strided(x: Operand, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Tensor:
    """The elements of the flattened ``x`` at ``storage_offset`` plus the steps of ``stride``; a copy, not a view.

    Raises:
        ArgumentError: sizes and strides do not match, or lead out of ``x``.
    """
    flat = flatten(asarray(x))
    return take(flat, as_constant(strided_places("as_strided", flat.shape[0], size, stride, storage_offset)), 0)


def strided_places(what: str, count: int, size: Sequence[int], stride: Sequence[int], offset: int) -> Array:
    """The positions, among ``count`` elements in a row, of the elements of a strided array.

    Raises:
        ArgumentError: sizes and strides do not match, or lead out of the row.
    """
    if len(size) != len(stride):
        raise ArgumentError(f"{what}: {len(size)} sizes and {len(stride)} strides: give one stride for each size")
    places = np.full(tuple(size), int(offset), np.int64)
    for k, (n, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(n) * step).reshape((n, *[1] * (len(size) - k - 1)))
    if places.size and not 0 <= places.min() <= places.max() < count:
        raise ArgumentError(
            f"{what}: size={tuple(size)}, stride={tuple(stride)} and storage_offset={offset} lead out of the {count} elements "
            "of x"
        )
    return places


# --- places along an axis ------------------------------------------------------------------------------------------


@composed
@takes_dim()
def index_fill(x: Operand, axis: int, index: Operand | Sequence[int], value: Operand) -> Tensor:
    """``x`` with ``value`` in the slices along ``axis`` at the 1-D ``index``; a new tensor."""
    target = asarray(x)
    with beside(target):
        return with_item(target, slices_key("index_fill", target, axis, index), value)


@composed
@takes_dim(source="src")
def index_copy(x: Operand, axis: int, index: Operand | Sequence[int], src: Operand) -> Tensor:
    """``x`` with the slices of ``src`` along ``axis`` in place of those at the 1-D ``index``; a new tensor."""
    target = asarray(x)
    with beside(target):
        return with_item(target, slices_key("index_copy", target, axis, index), src)


def slices_key(what: str, x: Tensor, axis: int, index: Any) -> tuple[Any, ...]:
    """The index of the slices along ``axis`` at ``index``."""
    return (*[slice(None)] * normalize_axis(what, axis, x.ndim), asarray(index))


@takes_dim()
@composed
def scatter(
    x: Operand, axis: int, index: Operand | Sequence[Any], src: Operand, *, reduce: str | None = None
) -> Tensor:
    """``x`` with ``src`` where :func:`jitgrad.gather` with the same ``axis`` and ``index`` would read; a new tensor.

    ``src`` may be longer than ``index`` (then its start is used) or a number; of several values for one position the
    last one stays. With ``reduce="add"`` they add up, and are added to ``x``.

    Raises:
        ArgumentError: ``reduce`` is neither None nor "add".
    """
    target, positions = asarray(x), asarray(index)
    if reduce not in (None, "add"):
        raise ArgumentError(f"scatter: reduce must be None or 'add', got {shown(reduce)}; gather, combine and scatter for others")
    with beside(target):
        if reduce == "add":
            return scatter_add(target, axis, positions, astype(asarray(src), target.dtype))
        return with_item(target, *places_and_values(target, axis, positions, src))


def places_and_values(x: Tensor, axis: int, index: Tensor, src: Operand) -> tuple[tuple[Tensor, ...], Operand]:
    """The index of the elements of ``x`` which `scatter` replaces, and what by."""
    k = normalize_axis("scatter", axis, x.ndim)
    values = src if not aval_of(TAKE, src).ndim else get_item(asarray(src), tuple(map(slice, index.shape)))
    return tuple([index if j == k else iota(index.shape, j) for j in range(x.ndim)]), values


# --- elements ----------------------------------------------------------------------------------------------------


@composed
def masked_scatter(x: Operand, mask: Operand, source: Operand) -> Tensor:
    """``x`` with the elements of ``source``, in order, where ``mask`` is true."""
    target, chosen, values = asarray(x), asarray(mask), flatten(asarray(source))
    if chosen.dtype != np.bool_:
        raise DtypeError(f"masked_scatter: the mask must be of bools, got {chosen.aval}; compare it with 0")
    if not values.shape[0]:
        return target
    chosen = broadcast_to(chosen, target.shape)
    places = subtract(reshape(cumulative_sum(astype(flatten(chosen), np.int64), 0), target.shape), 1)
    return where(chosen, astype(take(values, clip(places, 0, values.shape[0] - 1), 0), target.dtype), target)


def index_put(x: Operand, indices: Sequence[Any], values: Operand, accumulate: bool = False) -> Tensor:
    """``x`` after ``x[indices] = values``, for integer (or bool) tensors; with ``accumulate`` after ``+=``, in which
    equal indices add up."""
    target = asarray(x)
    key = tuple(i if isinstance(i, Tensor) else asarray(i) for i in indices)
    return with_added(target, key, values) if accumulate else with_item(target, key, values)


# --- reductions at indices -----------------------------------------------------------------------------------------


def _extreme(x: Array, index: Array, src: Array, *, axis: int, largest: bool) -> Array:
    out = np.array(x, copy=True)
    (np.maximum if largest else np.minimum).at(out, _key(x, index, axis), src)
    return out


def _key(x: Array, index: Array, axis: int) -> tuple[Array, ...]:
    """The positions of ``index`` along ``axis``, and those of its elements along the others."""
    ranges = (np.arange(n).reshape([-1 if j == k else 1 for j in range(x.ndim)]) for k, n in enumerate(index.shape))
    return tuple(index if k == axis else along for k, along in enumerate(ranges))


def _extreme_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    x, index, src = avals
    if src.shape != index.shape or index.ndim != x.ndim or index.dtype.kind not in "iu":
        raise ShapeError(f"scatter_reduce: index {index} must be of integers in the shape of src {src}, with x {x}")
    return Aval(x.shape, x.dtype)


def _share(g: Tensor, out: Tensor, x: Tensor, index: Tensor, src: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """(the gradient divided among equals, where x is one of them, which elements of src are)."""
    own, theirs = astype(equal(x, out), g.dtype), astype(equal(src, gather(out, axis, index)), g.dtype)
    return divide(g, maximum(scatter_add(own, axis, index, theirs), 1.0)), own, theirs


def _extreme_x_vjp(g: Tensor, out: Tensor, x: Any, index: Any, src: Any, *, axis: int, largest: bool) -> Tensor:
    part, own, _ = _share(g, out, x, index, src, axis)
    return multiply(part, own)


def _extreme_src_vjp(g: Tensor, out: Tensor, x: Any, index: Any, src: Any, *, axis: int, largest: bool) -> Tensor:
    part, _, theirs = _share(g, out, x, index, src, axis)
    return multiply(gather(part, axis, index), theirs)


SCATTER_EXTREME: OpDef = define(
    "scatter_extreme(x, index, src, *, axis, largest)",
    kind=Kind.OPAQUE,
    eager=_extreme,
    abstract=_extreme_aval,
    vjp=(_extreme_x_vjp, None, _extreme_src_vjp),
    domain=("real", "index", "real"),
    sample_attrs={"axis": 0, "largest": True},
)

def _product(x: Array, index: Array, src: Array, *, axis: int) -> Array:
    out = np.array(x, copy=True)
    np.multiply.at(out, _key(x, index, axis), src)
    return out


def _factors(x: Tensor, index: Tensor, src: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """(the product of the factors of each place that are not 0, how many are 0)."""
    own, theirs = equal(x, 0), equal(src, 0)
    rest = apply(SCATTER_PRODUCT, where(own, 1, x), index, where(theirs, 1, src), axis=axis)
    return rest, scatter_add(astype(own, x.dtype), axis, index, astype(theirs, x.dtype))


def _product_of_others(g: Tensor, rest: Tensor, zeros: Tensor, factor: Tensor) -> Tensor:
    """``g`` times the product of all factors but ``factor``, which no division by 0 makes."""
    zero = equal(factor, 0)
    others = where(equal(subtract(zeros, astype(zero, zeros.dtype)), 0), divide(rest, where(zero, 1, factor)), 0)
    return multiply(g, others)


def _product_x_vjp(g: Tensor, _out: Tensor, x: Any, index: Any, src: Any, *, axis: int) -> Tensor:
    rest, zeros = _factors(x, index, src, axis)
    return _product_of_others(g, rest, zeros, x)


def _product_src_vjp(g: Tensor, _out: Tensor, x: Any, index: Any, src: Any, *, axis: int) -> Tensor:
    rest, zeros = _factors(x, index, src, axis)
    at = [gather(y, axis, index) for y in (g, rest, zeros)]
    return _product_of_others(at[0], at[1], at[2], src)


SCATTER_PRODUCT: OpDef = define(
    "scatter_product(x, index, src, *, axis)",
    kind=Kind.OPAQUE,
    eager=_product,
    abstract=_extreme_aval,
    vjp=(_product_x_vjp, None, _product_src_vjp),
    domain=("nonzero", "index", "nonzero"),
    sample_attrs={"axis": 0},
)

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@composed
@takes_dim(source="src")
def scatter_reduce(
    x: Operand, axis: int, index: Operand, src: Operand, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``x`` with the "sum", "prod", "mean", "amax" or "amin" of what ``src`` has for each place, as in torch.

    ``index`` names places along ``axis`` as :func:`jitgrad.scatter_add` does. Without ``include_self`` the old element
    of a place that gets any does not count. Equal extremes share the gradient.
    """
    if reduce not in _REDUCTIONS:
        raise ArgumentError(f"scatter_reduce: reduce must be one of {', '.join(_REDUCTIONS)}, got {shown(reduce)}")
    target, places, values = asarray(x), asarray(index), asarray(src)
    k = normalize_axis("scatter_reduce", axis, target.ndim)
    values = values[tuple(map(slice, places.shape))]
    with beside(target):
        ones = full(places.shape, 1.0, dtype=target.dtype if target.dtype.kind == "f" else np.float64)
        counts = scatter_add(zeros(target.shape, dtype=ones.dtype), k, places, ones)
    hit = greater(counts, 0.0)
    if reduce in ("amax", "amin"):
        largest = reduce == "amax"
        base = target if include_self else where(hit, _worst(target, largest), target)
        return apply(SCATTER_EXTREME, base, places, values, axis=k, largest=largest)
    if reduce == "prod":
        base = target if include_self else where(hit, 1, target)
        return apply(SCATTER_PRODUCT, base, places, values, axis=k)
    total = scatter_add(target if include_self else where(hit, 0, target), k, places, values)
    if reduce == "sum":
        return total
    count = add(counts, 1.0) if include_self else maximum(counts, 1.0)
    return divide(total, count) if target.dtype.kind == "f" else astype(floor(divide(total, count)), target.dtype)


def _worst(x: Tensor, largest: bool) -> Any:
    """What every element replaces."""
    if x.dtype.kind == "f":
        return -np.inf if largest else np.inf
    limits = np.iinfo(x.dtype)
    return int(limits.min if largest else limits.max)


@composed
def put(x: Operand, index: Operand, source: Operand, accumulate: bool = False) -> Tensor:
    """``x`` with ``source`` at the places ``index`` of its elements in a row; with ``accumulate`` added, equal places too."""
    target, places = asarray(x), asarray(index)
    if places.dtype.kind not in "iu":
        raise DtypeError(f"put: the index must be of integers, got {places.aval}")
    values = asarray(source)
    if values.size != places.size:
        raise ShapeError(f"put: {places.size} places and {values.size} elements: give one element for each place")
    with beside(target):
        row, at, new = flatten(target), flatten(places), flatten(values)
        changed = with_added(row, (at,), new) if accumulate else with_item(row, (at,), new)
    return reshape(changed, target.shape)
