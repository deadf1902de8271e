"""sort, argsort, topk and searchsorted; unique, whose shape depends on values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.eager.stable_order import OrderOfDistinct, distinct_values, stable_argsort
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.comparison import greater, greater_equal, logical_not
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexing import as_constant, take, take_along_axis
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import cut, expand_dims, flatten
from jitgrad.ops.operand import Operand, ValuesAndIndices, apply, as_result, host_array
from jitgrad.ops.positions import distinct
from jitgrad.ops.reduce import sum

_FEW = 1 << 12  # elements: fewer are sorted faster than partitioned
_MANY = 16  # from this part of a row on, sorting all of it is as fast


def _argsort(x: Array, *, axis: int, descending: bool, stable: bool) -> Array:
    if not descending:
        return stable_argsort(x, axis) if stable else np.argsort(x, axis=axis)
    # backwards twice, so that equal elements keep their order
    last: int = x.shape[axis] - 1
    backwards = (*[np.s_[:]] * axis, np.s_[::-1])
    return last - (stable_argsort(x[backwards], axis) if stable else x[backwards].argsort(axis=axis))[backwards]


def _argtopk(x: Array, *, axis: int, count: int) -> Array:
    """The positions of the ``count`` largest along ``axis`` of ``x``, those of equals in order."""
    length = x.shape[axis]
    if x.size < _FEW or not 0 < count <= length // _MANY:
        order = _argsort(x, axis=axis, descending=True, stable=True)
        return order[(*[slice(None)] * axis, slice(count))]
    kept = np.moveaxis(x, axis, -1)
    lines = kept.reshape(-1, length)
    least = np.partition(lines, length - count, axis=1)[:, length - count, None]
    row, place = np.nonzero(~(lines < least))  # as many as asked for, or more: equals of the least, and NaN
    order = _argsort(lines[row, place], axis=0, descending=True, stable=True)
    order = order[np.argsort(row[order], kind="stable")]
    first = np.searchsorted(row, np.arange(len(lines)))
    positions = place[order[first[:, None] + np.arange(count)]]
    return np.moveaxis(positions.reshape(*kept.shape[:-1], count), -1, axis)


def _prepared(function: Callable[..., Any]) -> Callable[[Sequence[Aval], Mapping[str, Any]], Callable[[Any], Any] | None]:
    """``function`` with its attributes, for an array with axes."""
    return lambda avals, attrs: partial(function, **attrs) if avals[0].ndim else None


def _argtopk_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    shape, axis = avals[0].shape, attrs["axis"]
    if attrs["count"] > shape[axis]:
        raise ShapeError(f"argtopk: {attrs['count']} elements of axis {axis} of {avals[0]}")
    return Aval((*shape[:axis], attrs["count"], *shape[axis + 1 :]), np.dtype(np.int64))


def _searchsorted_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    ordered, values = avals
    if ordered.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted array must be 1-D, got {ordered}")
    return Aval(values.shape, np.dtype(np.int64))


def _prepare_searchsorted(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any, Any], Any] | None:
    """The method of arrays, which has an array as its result unless there is one value."""
    side = attrs["side"]
    return (lambda ordered, values: ordered.searchsorted(values, side)) if avals[1].ndim else None


ARGSORT = define(
    "argsort(x, *, axis, descending, stable)",
    kind=Kind.OPAQUE,
    per_line=True,
    eager=_argsort,
    prepare=_prepared(_argsort),
    abstract=lambda avals, _attrs: Aval(avals[0].shape, np.dtype(np.int64)),
    domain=("real",),
    sample_attrs={"axis": 0, "descending": True, "stable": True},
)
ARGTOPK = define(
    "argtopk(x, *, axis, count)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    per_line=True,
    eager=_argtopk,
    prepare=_prepared(_argtopk),
    abstract=_argtopk_aval,
    domain=("real",),
    sample_attrs={"axis": 0, "count": 2},
)
SEARCHSORTED = define(
    "searchsorted(ordered, values, *, side)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    eager=lambda ordered, values, *, side: np.searchsorted(ordered, values, side=side),
    prepare=_prepare_searchsorted,
    abstract=_searchsorted_aval,
)


@takes_dim()
def argsort(x: Operand, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The int64 positions that sort ``x`` along ``axis`` (None: flattened); NaN counts as largest.

    Of a 0-d array, as in NumPy, those of a vector of one element.
    """
    if axis is None or not aval_of(ARGSORT, x).ndim:
        x, axis = flatten(x), axis or 0
    k = normalize_axis("argsort", axis, aval_of(ARGSORT, x).ndim)
    return apply(ARGSORT, x, axis=k, descending=bool(descending), stable=bool(stable))


@op_sequence
def _sorted_with_order(x: Operand, axis: int = -1, **how: bool) -> ValuesAndIndices:
    if not aval_of(ARGSORT, x).ndim:
        raise ShapeError("sort of a 0-d array: there is no axis to sort along")
    order = argsort(x, axis, **how)
    return ValuesAndIndices(take_along_axis(x, order, axis), order)


@takes_dim(_sorted_with_order)
@op_sequence
def sort(x: Operand, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """``x`` sorted along ``axis`` (None: flattened); NaN counts as largest. Gradients follow the values.

    ``sort(x, dim=k)`` is torch's: a named tuple of the values and their positions.
    """
    if axis is None:
        x, axis = flatten(x), 0
    elif not aval_of(ARGSORT, x).ndim:
        raise ShapeError("sort of a 0-d array: there is no axis to sort along")
    return take_along_axis(x, argsort(x, axis, descending=descending, stable=stable), axis)


@op_sequence
@takes_dim()
def topk(x: Operand, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> ValuesAndIndices:
    """The ``k`` largest elements along ``axis``, largest first, and their positions; of equals the first ones.

    With ``largest=False`` the smallest ones, smallest first. They are always ``sorted``.

    Raises:
        ArgumentError: the axis has fewer than ``k`` elements.
    """
    aval = aval_of(ARGSORT, x)
    a, count = normalize_axis("topk", axis, aval.ndim), operator.index(k)
    length = aval.shape[a] if aval.ndim else 0
    if not 0 <= count <= length:
        raise ArgumentError(f"topk: k={count} of axis {axis} of {aval}; it must be between 0 and {length}")
    indices = apply(ARGTOPK, x, axis=a, count=count) if largest else cut(argsort(x, a), a, 0, count)
    return ValuesAndIndices(take_along_axis(x, indices, a), indices)


@op_sequence
def searchsorted(
    ordered: Operand,
    values: Operand,
    side: str | None = None,
    *,
    sorter: Operand | None = None,
    right: bool = False,
    out_int32: bool = False,
) -> Tensor:
    """The int64 positions of ``values`` in the sorted ``ordered``: before its equals, or after (``side="right"``).

    An ``ordered`` of more than one axis has a row for each row of ``values``, as in torch.

    ``sorter`` gives the order of an array that is not sorted, as argsort does. ``right`` and ``out_int32`` are torch's.
    """
    side = side or ("right" if right else "left")
    if right and side == "left":
        raise ArgumentError("searchsorted: right=True and side='left' contradict each other; give one of them")
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {shown(side)}")
    if aval_of(SEARCHSORTED, ordered).ndim > 1:
        out = _searchsorted_rows(asarray(ordered), asarray(values), side, sorter)
    else:
        out = apply(SEARCHSORTED, ordered if sorter is None else take(ordered, sorter, 0), values, side=side)
    return astype(out, np.int32) if out_int32 else out


def _searchsorted_rows(ordered: Tensor, values: Tensor, side: str, sorter: Operand | None) -> Tensor:
    """Counts, in each row, what comes before a value: NaN comes last."""
    rows = ordered if sorter is None else take_along_axis(ordered, sorter, -1)
    if rows.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            f"searchsorted: {rows.aval} and {values.aval} differ in axes other than the last; for one sorted row for all "
            "values, pass a 1-D array"
        )
    after = greater_equal if side == "left" else greater
    comes_after = after(expand_dims(rows, -2), expand_dims(values, -1))
    return sum(astype(logical_not(comes_after), np.int64), -1)


# --- a shape that depends on values: this needs data -------------------------------------------------------------


@takes_dim()
def unique(
    x: Operand,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    sorted: bool = True,
) -> Any:
    """The distinct elements (or slices along ``axis``) of ``x``, and what else is asked for, as in NumPy.

    They are always in order, whatever ``sorted`` says.

    Gradients go to the first of equal elements. The shape depends on the values: a @jit function has a program for each
    number of distinct elements.

    Returns:
        The tensor of distinct elements, or a tuple of it, and of the first positions, of each element's number among
        the distinct ones, and of their counts, as far as asked for.
    """
    k = None if axis is None else normalize_axis("unique", axis, aval_of(ARGSORT, x).ndim)
    if axis is None and (data := host_array(x)) is not None and data.dtype.kind in "biuf":
        return _unique_at_once(x, data, (return_index, return_inverse, return_counts))
    first, inverse, counts = distinct(x, "unique", k)
    values = take(x, first if isinstance(first, Tensor) else as_constant(first), axis)
    asked = ((return_index, asarray(first)), (return_inverse, inverse), (return_counts, counts))
    more = tuple([part for wanted, part in asked if wanted])
    return (values, *more) if more else values


def _unique_at_once(x: Any, data: Array, asked: tuple[bool, bool, bool]) -> Any:
    """`unique` of the elements ``data``: the values, and what is ``asked`` for."""
    if not any(asked) and not x._requires_grad:
        return as_result(distinct_values(data))
    found = OrderOfDistinct(data)
    first = found.first()
    values = take(x, as_result(first), None) if x._requires_grad else as_result(data.reshape(-1)[first])
    parts = (found.first, found.inverse, found.counts)
    more = tuple([as_result(part()) for wanted, part in zip(asked, parts, strict=True) if wanted])
    return (values, *more) if more else values
