"""Positions of elements that are true or differ: their number depends on values, which decides it in a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ShapeError
from jitgrad.core.ir import Value
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.stable_order import distinct_elements
from jitgrad.ops.movement import PERMUTE_DIMS, slice, squeeze
from jitgrad.ops.operand import apply, contents_of

COUNTED = "a length that values decide"  # what Python code asks of a trace


def _true_positions(mask: Array, *, count: int) -> Array:
    """The first ``count`` positions; zeros follow them where the call has fewer, and is discarded for that reason."""
    found = np.zeros((mask.ndim, count), np.int64)
    for row, places in zip(found, np.nonzero(mask), strict=True):
        row[: len(places)] = places[:count]
    return found


def _found_distinct(x: Array, axis: int | None, equal_nan: bool) -> tuple[Array, Array, Array]:
    if axis is None and x.dtype.kind in "biuf":
        return distinct_elements(x, equal_nan)
    return np.unique(x, True, True, True, axis, equal_nan=equal_nan)[1:]


def _distinct(x: Array, *, axis: int | None, equal_nan: bool) -> tuple[Array, ...]:
    first, inverse, counts = _found_distinct(x, axis, equal_nan)
    length = x.size if axis is None else x.shape[axis]
    longer = (0, length - first.size)
    return np.pad(first, longer), np.asarray(inverse), np.pad(counts, longer), np.asarray(first.size)


def _distinct_avals(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, ...]:
    (x,), axis, dtype = avals, attrs["axis"], np.dtype(np.int64)
    length = x.size if axis is None else x.shape[axis]
    inverse = x.shape if axis is None else (length,)
    return tuple([Aval(shape, dtype) for shape in ((length,), inverse, (length,), ())])


def _positions_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (mask,) = avals
    if not mask.ndim or mask.dtype != np.bool_:
        raise ShapeError(f"true_positions: expected an array of bools with axes, got {mask}")
    return Aval((mask.ndim, attrs["count"]), np.dtype(np.int64))


TRUE_POSITIONS = define(
    "true_positions(mask, *, count)",
    kind=Kind.OPAQUE,
    eager=_true_positions,
    abstract=_positions_aval,
)
# Not a sum, which a kernel may compute from a mask of its own that is rounded in another way: both ops read one array.
COUNT_TRUE = define(
    "count_true(mask)",
    kind=Kind.OPAQUE,
    eager=lambda mask: np.asarray(np.count_nonzero(mask)),
    abstract=lambda _avals, _attrs: Aval((), np.dtype(np.int64)),
)


def _repeated_positions(counts: Array, *, total: int) -> Array:
    """Cut to ``total``, or with zeros up to there, where the call has another one, and is discarded for that reason."""
    found = np.repeat(np.arange(counts.size), np.maximum(counts, 0))[:total]
    return np.pad(found, (0, total - found.size))


REPEATED_POSITIONS = define(
    "repeated_positions(counts, *, total)",
    kind=Kind.OPAQUE,
    eager=_repeated_positions,
    abstract=lambda _avals, attrs: Aval((attrs["total"],), np.dtype(np.int64)),
)
DISTINCT = define(
    "distinct(x, *, axis, equal_nan)",  # NumPy's unique, as long as if all elements differed, and how many do
    kind=Kind.OPAQUE,
    multiple=True,
    eager=_distinct,
    abstract=_distinct_avals,
)


def true_positions(mask: Any, what: str) -> tuple[Any, ...]:
    """The int64 positions along each axis of the elements of ``mask``, of bools, that are true: tensors of one axis.

    A trace takes their number from the call that it is made for, and is right for calls with that number.

    Raises:
        TracedValueError: a traced mask whose number of true elements is not known: the error names ``what``.
    """
    count = _count(mask, what)
    if count is None:
        made = current_interpreter.get().constant
        return tuple([made(np.ascontiguousarray(k)) for k in np.nonzero(contents_of(mask, what))])
    rows = apply(TRUE_POSITIONS, mask, count=count)
    return tuple([squeeze(slice(rows, ((k, 1, 1), (0, 1, count))), 0) for k in range(mask.ndim)])


def position_rows(mask: Any, what: str) -> Tensor:
    """The positions of :func:`true_positions`, one in each row: int64[count, axes]."""
    count = _count(mask, what)
    if count is None:
        found: Tensor = current_interpreter.get().constant(np.argwhere(contents_of(mask, what)))
        return found
    return apply(PERMUTE_DIMS, apply(TRUE_POSITIONS, mask, count=count), axes=(1, 0))


def _count(mask: Any, what: str) -> int | None:
    """How many elements of ``mask`` are true in the call that is traced; None if its contents are known."""
    return length_in_call(mask, what, partial(apply, COUNT_TRUE, mask))


def length_in_call(x: Any, what: str, count: Callable[[], Tensor]) -> int | None:
    """The number that ``count`` computes from ``x``, in the call that is traced; None if the contents of ``x`` are known.

    Raises:
        TracedValueError: neither is known: the error names ``what``, which needs the contents.
    """
    trace = current_interpreter.get()
    if not isinstance(x, Tensor) or type(trace.current(x)) is not Value or trace.known_value(x, what) is not None:
        return None
    follows_a_call = getattr(getattr(trace, "decisions", None), "leaves", None) is not None
    number = trace.known_value(count(), COUNTED) if follows_a_call else None
    if number is None:
        raise trace.explain_missing_value(x, what)
    return int(number)


def distinct(x: Any, what: str, axis: int | None = None, *, equal_nan: bool = True) -> tuple[Any, Any, Any]:
    """Of the distinct elements (or slices along ``axis``) of ``x`` in order: the first positions, the number of each element
    among them, and their counts: int64 tensors, but for positions that are known, which are an array. A trace is right for
    calls with as many distinct elements."""
    traced = partial(apply_op, DISTINCT, x, axis=axis, equal_nan=equal_nan)
    parts: list[Any] = []

    def count() -> Tensor:
        parts[:] = traced()
        *_, number = parts
        assert isinstance(number, Tensor)
        return number

    number = length_in_call(x, what, count)
    if number is None:
        first, inverse, counts = _found_distinct(np.asarray(contents_of(x, what)), axis, equal_nan)
        made = current_interpreter.get().constant
        return first, made(np.asarray(inverse, np.int64)), made(np.asarray(counts, np.int64))
    first, inverse, counts, _ = parts
    return slice(first, ((0, 1, number),)), inverse, slice(counts, ((0, 1, number),))
