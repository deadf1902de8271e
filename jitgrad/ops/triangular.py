"""Systems of equations with triangular matrices, which need no factors; leading axes are batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from math import prod
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, broadcast_shapes
from jitgrad.core.errors import ShapeError
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.blas import find_blas, solve_in_place
from jitgrad.ops.arithmetic import negative
from jitgrad.ops.lapack import by_lapack, matrices
from jitgrad.ops.linalg import matmul, matrix_transpose_of
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.triangles import tril, triu

# More matrices than _FEW of fewer rows than _MANY_ROWS are factored by one call of NumPy, which is faster than a call each.
_FEW, _MANY_ROWS = 4, 32


def _solved_by_factors(triangle: Array, b: Array) -> Array:
    """Rounding may hide from the factors that a triangle is singular; its diagonal shows it."""
    if not np.diagonal(triangle, 0, -2, -1).all():
        raise np.linalg.LinAlgError("Singular matrix")
    return np.linalg.solve(triangle, b)


def _by_factors(a: Array, b: Array, *, upper: bool) -> Array:
    """The triangle solved as any other matrix."""
    solution: Array = by_lapack("solve_triangular", _solved_by_factors, np.triu(a) if upper else np.tril(a), b)
    return solution


@wraps(_by_factors)  # what eject writes down
def _solve(a: Array, b: Array, *, upper: bool) -> Array:
    """By BLAS, which reads one triangle; without it, for other dtypes and for singular matrices, by factors."""
    dtype = np.result_type(a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    few = a.shape[-1] >= _MANY_ROWS or prod(batch) <= _FEW
    if dtype.char not in "fd" or not few or find_blas() is None or not np.diagonal(a, 0, -2, -1).all():
        return _by_factors(a, b, upper=upper)
    x = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])), dtype, order="C")
    if x.size:
        triangles = np.broadcast_to(a.astype(dtype, copy=False), (*batch, *a.shape[-2:]))
        for index in np.ndindex(*batch):
            solve_in_place(triangles[index], x[index], upper=upper)
    return x


def _aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    a, b = matrices("solve_triangular", avals[0]), matrices("solve_triangular", avals[1], square=False)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"solve_triangular: {a} and {b}: the right sides must have {a.shape[-1]} rows")
    batch = broadcast_shapes("solve_triangular (batch axes)", [Aval(x.shape[:-2], x.dtype) for x in (a, b)])
    return Aval((*batch, *b.shape[-2:]), np.result_type(a.dtype, b.dtype))


def _vjp_a(g: Tensor, out: Tensor, a: Tensor, _b: Any, *, upper: bool) -> Tensor:
    whole = negative(matmul(_vjp_b(g, out, a, _b, upper=upper), matrix_transpose_of(out)))
    return triu(whole) if upper else tril(whole)


def _vjp_b(g: Tensor, _out: Any, a: Tensor, _b: Any, *, upper: bool) -> Tensor:
    return triangular_solve(matrix_transpose_of(a), g, upper=not upper)


TRIANGULAR_SOLVE: OpDef = define(
    "triangular_solve(a, b, *, upper)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_solve,
    abstract=_aval,
    vjp=(_vjp_a, _vjp_b),
    domain=("positive_definite", "matrix"),
    sample_attrs={"upper": False},
    takes_complex=True,
)


def triangular_solve(a: Operand, b: Operand, *, upper: bool) -> Tensor:
    """The ``x`` with ``a @ x == b`` for matrices ``b``, where only one triangle of ``a`` is read and counts."""
    return apply(TRIANGULAR_SOLVE, a, b, upper=upper)
