"""LU factors of large matrices: computed once, for a system of equations, a determinant and all gradients of both.

`lu_factors` has no gradient. What is computed by factors takes the matrix too, and its gradient is that of the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, broadcast_shapes
from jitgrad.core.dispatch import apply_op, aval_of
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.lu import factor_in_place, has_lapack, solve_by
from jitgrad.ops.arithmetic import multiply, negative
from jitgrad.ops.creation import eye
from jitgrad.ops.lapack import by_lapack, matrices
from jitgrad.ops.linalg import matmul, matrix_transpose_of
from jitgrad.ops.movement import expand_dims
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import beside

FEW_ROWS = 64  # matrices of up to so many rows are solved by machine code, which takes less time than a call for the factors


def has_factors(op: OpDef, a: Operand, *others: Operand) -> bool:
    """Whether `lu_factors` pays for ``a``, and all operands have its dtype."""
    avals = [aval_of(op, x) for x in (a, *others)]
    first = avals[0]
    large = first.ndim >= 2 and first.shape[-1] > FEW_ROWS and first.shape[-1] == first.shape[-2]
    on_host = not isinstance(a, Tensor) or a.device == "cpu"
    return large and on_host and first.dtype.char in "fd" and all(x.dtype == first.dtype and x.ndim >= 2 for x in avals)


def _no_factors(x: Array) -> tuple[Array, Array]:
    """Nothing: what is computed by them uses the matrix."""
    return np.array(x, order="C"), np.zeros(x.shape[:-1], np.int64)


@wraps(_no_factors)  # what eject writes down, and what runs where NumPy's LAPACK is another
def _factors(x: Array) -> tuple[Array, Array]:
    if not has_lapack():
        return _no_factors(x)
    lu = np.array(np.swapaxes(x, -1, -2), order="C")  # LAPACK's order
    pivots = np.empty(x.shape[:-1], np.int64)
    for index in np.ndindex(*x.shape[:-2]):
        factor_in_place(lu[index], pivots[index])
    return lu, pivots


def _factors_avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("lu_factors", avals[0])
    return Aval(x.shape, x.dtype), Aval(x.shape[:-1], np.dtype(np.int64))


LU_FACTORS = define(
    "lu_factors(x)", kind=Kind.OPAQUE, eager=_factors, abstract=_factors_avals, multiple=True
)


def _numpy_solution(a: Array, lu: Array, pivots: Array, b: Array, *, transposed: bool) -> Array:
    result: Array = by_lapack("solve", np.linalg.solve, np.swapaxes(a, -1, -2) if transposed else a, b)
    return result


def _solution_by_lapack(lu: Array, b: Array, *, pivots: Array, transposed: bool) -> Array:
    if not np.diagonal(lu, 0, -2, -1).all():
        raise np.linalg.LinAlgError("Singular matrix")
    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(np.swapaxes(b, -1, -2), (*batch, b.shape[-1], b.shape[-2])), order="C")
    lu, pivots = np.broadcast_to(lu, (*batch, *lu.shape[-2:])), np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    for index in np.ndindex(*batch) if x.size else ():
        solve_by(lu[index], pivots[index], x[index], transposed=transposed)
    return np.ascontiguousarray(np.swapaxes(x, -1, -2))


@wraps(_numpy_solution)
def _solution(a: Array, lu: Array, pivots: Array, b: Array, *, transposed: bool) -> Array:
    if not has_lapack():
        return _numpy_solution(a, lu, pivots, b, transposed=transposed)
    lu, pivots = np.ascontiguousarray(lu), np.ascontiguousarray(pivots)
    solution: Array = by_lapack("solve", _solution_by_lapack, lu, b, pivots=pivots, transposed=transposed)
    return solution


def _solution_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    a, _, _, b = avals
    batch = broadcast_shapes("solve (batch axes)", [Aval(x.shape[:-2], x.dtype) for x in (a, b)])
    return Aval((*batch, *b.shape[-2:]), a.dtype)


def _solution_vjp(g: Tensor, out: Tensor, a: Tensor, lu: Tensor, pivots: Tensor, _b: Any, *, transposed: bool) -> Any:
    gb = solve_by_factors(a, lu, pivots, g, transposed=not transposed)
    left, right = (out, gb) if transposed else (gb, out)
    return negative(matmul(left, matrix_transpose_of(right))), None, None, gb


SOLVE_BY_FACTORS = define(
    "solve_by_factors(a, lu, pivots, b, *, transposed)",
    kind=Kind.OPAQUE,
    eager=_solution,
    abstract=_solution_aval,
    vjp=_solution_vjp,
)


def solve_by_factors(a: Operand, lu: Operand, pivots: Operand, b: Operand, *, transposed: bool) -> Tensor:
    """The ``x`` with ``a @ x == b``, with ``transposed`` with ``a.mT @ x == b``; ``lu`` and ``pivots`` are a's factors."""
    return apply(SOLVE_BY_FACTORS, a, lu, pivots, b, transposed=transposed)


def _numpy_slogdet(x: Array, lu: Array, pivots: Array) -> tuple[Array, Array]:
    sign, logarithm = np.linalg.slogdet(x)
    return np.asarray(sign, x.dtype), np.asarray(logarithm, x.dtype)


@wraps(_numpy_slogdet)
def _slogdet(x: Array, lu: Array, pivots: Array) -> tuple[Array, Array]:
    """The product of the signs of the diagonal of the factors, and of -1 for each exchange of rows."""
    if not has_lapack():
        return _numpy_slogdet(x, lu, pivots)
    diagonal = np.diagonal(lu, 0, -2, -1)
    exchanges = (pivots != np.arange(1, pivots.shape[-1] + 1)).sum(-1)
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.abs(diagonal)).sum(-1)
    return np.asarray(np.sign(diagonal).prod(-1) * (1 - 2 * (exchanges % 2)), x.dtype), np.asarray(logarithm, x.dtype)


def _slogdet_avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    numbers = Aval(avals[0].shape[:-2], avals[0].dtype)
    return numbers, numbers


def _slogdet_vjp(g: tuple[Tensor, Tensor], _out: Any, x: Tensor, lu: Tensor, pivots: Tensor) -> Any:
    with beside(x):
        ones = eye(x.shape[-1], dtype=x.dtype)
    inverse = solve_by_factors(x, lu, pivots, ones, transposed=True)
    return multiply(expand_dims(g[1], (-2, -1)), inverse), None, None


SLOGDET_BY_FACTORS = define(
    "slogdet_by_factors(x, lu, pivots)",
    kind=Kind.OPAQUE,
    eager=_slogdet,
    abstract=_slogdet_avals,
    vjp=_slogdet_vjp,
    multiple=True,
)


BY_FACTORS = frozenset({LU_FACTORS, SOLVE_BY_FACTORS, SLOGDET_BY_FACTORS})


def lu_factors(x: Operand) -> tuple[Tensor, Tensor]:
    """LAPACK's factors of matrices, in its order, and the exchanged rows."""
    lu, pivots = apply_op(LU_FACTORS, x)
    return lu, pivots
