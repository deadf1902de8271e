"""Products of matrices and linear systems for all examples: as one large product where that needs no copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.batching.application import Application
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.eager.float16 import HALF
from jitgrad.ops.arithmetic import astype, multiply
from jitgrad.ops.factors import SOLVE_BY_FACTORS
from jitgrad.ops.inverses import SOLVE
from jitgrad.ops.linalg import MATMUL, matmul
from jitgrad.ops.movement import expand_dims, moveaxis, permute_dims, reshape, squeeze
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.triangular import TRIANGULAR_SOLVE


def _matmul(a: Application) -> Any:
    x, y = a.operands
    ranks = a.aval(0).ndim, a.aval(1).ndim
    if ranks == (1, 1) and all(a.mapped) and HALF not in (a.aval(0).dtype, a.aval(1).dtype):
        return _inner(a)  # a product of matrices would be a call of its own; in float16 it adds up in float32
    if not a.mapped[1] and (ranks[1] <= 2 if ranks[0] == 1 else ranks[1] == 1):
        return matmul(x, y)  # vectors are the rows of one matrix
    if not a.mapped[0] and ranks[1] == 1 and ranks[0] <= 2:
        return matmul(y, x if ranks[0] == 1 else permute_dims(x, (1, 0)))
    return _of_matrices(a, *ranks)


def _inner(a: Application) -> Tensor:
    (expected,) = [a.op.abstract(a.avals, a.attrs)]
    total = sum_(multiply(*a.operands), 1)
    dtype = expected.dtype  # type: ignore[union-attr]
    return total if total.dtype == dtype else astype(total, dtype)


def _of_matrices(a: Application, x_rank: int, y_rank: int) -> Tensor:
    """A batch of products, with vectors as matrices of one row or column."""
    ndim = max(x_rank, y_rank, 2)
    x, y = a.operands
    if x_rank == 1:
        x = expand_dims(x, -2)
    if y_rank == 1:
        y = expand_dims(y, -1)
    x, y = (_with_axes(v, ndim + 1) if mapped else v for v, mapped in zip((x, y), a.mapped, strict=True))
    if x.shape[-1] == 1 and all(a.mapped) and a.aval(0).dtype == a.aval(1).dtype != bool:
        out = multiply(x, y)  # outer products
    else:
        out = matmul(x, y)
    if x_rank == 1:
        out = squeeze(out, -2)
    return squeeze(out, -1) if y_rank == 1 else out


def _with_axes(x: Any, ndim: int) -> Any:
    """``x`` with axes of length 1 after the first one, up to ``ndim``."""
    missing = ndim - x.ndim
    return expand_dims(x, tuple(range(1, 1 + missing))) if missing > 0 else x


def _solved_side_by_side(a: Application) -> Any:
    """The right sides, the last operand, of all examples as columns of one matrix."""
    *matrix, right = a.operands
    rows, columns = a.avals[-1].shape
    side_by_side = reshape(moveaxis(right, 0, 1), (rows, a.size * columns))
    out = apply_op(a.op, *matrix, side_by_side, **a.attrs)
    return moveaxis(reshape(out, (rows, a.size, columns)), 1, 0)


def _solve(a: Application) -> Any:
    left, right = a.avals
    if not a.mapped[0] and left.ndim == right.ndim == 2:  # all right sides for one factorisation
        return _solved_side_by_side(a)
    ndim = max(left.ndim, right.ndim)
    return apply_op(a.op, a.aligned(0, ndim), a.aligned(1, ndim), **a.attrs)


def _solve_by_factors(a: Application) -> Any:
    if not any(a.mapped[:3]) and a.aval(0).ndim == a.aval(3).ndim == 2:
        return _solved_side_by_side(a)
    ndim = max(a.aval(0).ndim, a.aval(3).ndim)
    matrix, lu, right = (a.aligned(k, ndim) for k in (0, 1, 3))
    return apply_op(a.op, matrix, lu, a.aligned(2, ndim - 1), right, **a.attrs)


PRODUCT_RULES: Mapping[OpDef, Callable[[Application], Any]] = {
    MATMUL: _matmul,
    SOLVE: _solve,
    TRIANGULAR_SOLVE: _solve,
    SOLVE_BY_FACTORS: _solve_by_factors,
}
