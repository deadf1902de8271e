"""Sums, maxima and minima over the last axes as kernels of rows, which take a third of NumPy's time and have its bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.op import Kind, OpDef
from jitgrad.eager.row_programs import FLOATS, MONOIDS, RowProgram, RowScope, RowStep, RowValue, by_rows, kernel_of


@cache
def _program(op: OpDef, dtype: Dtype) -> RowProgram:
    """``op`` of rows of ``dtype``."""
    values = (RowValue(RowScope.ELEMENT, dtype), RowValue(RowScope.ROW, dtype))
    return RowProgram(values, 1, (RowStep(op, (0,), 1),), (1,))


def reduces_rows(op: OpDef, x: Aval, attrs: Mapping[str, Any]) -> bool:
    """Whether the reduction ``op`` is over the last axes of an array like ``x``, where a kernel has NumPy's bits."""
    if op.monoid not in MONOIDS or x.dtype not in FLOATS:
        return False
    axis, ndim = attrs["axis"], len(x.shape)
    return len(axis) > 0 and axis == tuple(range(ndim - len(axis), ndim)) and 0 not in x.shape and not x.weak


def by_row_reduction(
    op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any], out: Aval, function: Callable[..., Any]
) -> Callable[..., Any]:
    """``function``, which computes ``op`` by NumPy, or one that runs a kernel once that is compiled."""
    if op.kind is not Kind.REDUCE or not reduces_rows(op, avals[0], attrs):
        return function
    (x,) = avals
    size = math.prod(out.shape), math.prod(x.shape[len(out.shape) :])
    call = by_rows(kernel_of(_program(op, x.dtype)), lambda x: (function(x),), size, [(out.shape, out.dtype)], ())
    return lambda x: call(x)[0]
