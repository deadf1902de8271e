"""The triangles of matrices: copies with zeros on one side of a diagonal."""

from __future__ import annotations

import operator

from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add
from jitgrad.ops.comparison import greater_equal, less_equal, where
from jitgrad.ops.creation import COPY, iota
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside


@composed
def _triangle(what: str, x: Operand, k: int, lower: bool) -> Tensor:
    aval = aval_of(COPY, x)
    if aval.ndim < 2:
        raise ShapeError(f"{what} needs at least two axes, got {aval}")
    rows, columns = aval.shape[-2:]
    with beside(x):
        row, column = add(iota((rows, 1), 0), operator.index(k)), iota((columns,), 0)
    keep = less_equal(column, row) if lower else greater_equal(column, row)
    return where(keep, x, False if aval.dtype.kind == "b" else 0)


@takes_dim(diagonal="k")
def tril(x: Operand, k: int = 0) -> Tensor:
    """The lower triangle over the last two axes: zeros above the ``k``-th diagonal."""
    return _triangle("tril", x, k, lower=True)


@takes_dim(diagonal="k")
def triu(x: Operand, k: int = 0) -> Tensor:
    """The upper triangle over the last two axes: zeros below the ``k``-th diagonal."""
    return _triangle("triu", x, k, lower=False)
