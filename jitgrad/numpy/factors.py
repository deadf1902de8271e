"""torch.linalg's factors of matrices by elimination and by reflections, and what is computed from these."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Aval, broadcast_shapes
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import floating, tensor_of
from jitgrad.numpy.shapes import atleast_1d
from jitgrad.numpy.systems import solve_triangular
from jitgrad.ops import lu as elimination
from jitgrad.ops.arithmetic import add, astype, multiply, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.creation import eye, zeros
from jitgrad.ops.diagonals import diagonal
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.linalg import adjoint_of, matmul
from jitgrad.ops.movement import broadcast_to, cut, expand_dims
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import any as any_
from jitgrad.ops.reduce import argmax
from jitgrad.ops.sorting import argsort
from jitgrad.ops.transcendental import pow
from jitgrad.ops.triangles import triu


class LUResult(NamedTuple):
    """A permutation matrix, a lower triangular matrix with ones on its diagonal, and an upper triangular one."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactorResult(NamedTuple):
    """U, below it L, and LAPACK's int32 pivots, which count rows from 1."""

    LU: Tensor
    pivots: Tensor


class LUFactorExResult(NamedTuple):
    """:class:`LUFactorResult`, and the number from 1 of the first zero on the diagonal of U, 0 if there is none."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


# --- LU ----------------------------------------------------------------------------------------------------------


def _check_pivot(what: str, pivot: bool) -> None:
    if not pivot:
        raise ArgumentError(f"{what}: pivot=False divides by whatever stands on the diagonal, which torch refuses on CPUs, too")


def first_zero(lu: Tensor) -> Tensor:
    """The number from 1 of the first zero on the diagonal, int32, 0 where there is none."""
    zero = equal(diagonal(lu, 0, -2, -1), 0)
    if not zero.shape[-1]:
        return astype(any_(zero, -1), np.int32)
    return astype(where(any_(zero, -1), add(argmax(zero, -1), 1), 0), np.int32)


def lu_factor(A: Any, *, pivot: bool = True) -> LUFactorResult:
    """The factors of matrices [m, n] for :func:`lu_solve`. Raises LinAlgError if U has a zero on its diagonal."""
    _check_pivot("lu_factor", pivot)
    return LUFactorResult(*elimination.lu(floating(A), regular=True))


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> LUFactorExResult:
    """:func:`lu_factor`, which also says where U has its first zero; with ``check_errors`` that is a LinAlgError."""
    _check_pivot("lu_factor_ex", pivot)
    packed, pivots = elimination.lu(floating(A), regular=check_errors)
    return LUFactorExResult(packed, pivots, first_zero(packed))


def lu(A: Any, *, pivot: bool = True) -> LUResult:
    """The factors of ``A == P @ L @ U`` for matrices [m, n]: L has min(m, n) columns, and U as many rows."""
    _check_pivot("lu", pivot)
    return LUResult(*lu_unpack(*elimination.lu(floating(A), regular=False)))


def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U of the results of :func:`lu_factor`; what is not wanted has no elements."""
    packed, pivots = floating(LU_data), tensor_of(LU_pivots)
    m, n = packed.shape[-2:]
    with beside(packed):
        empty = zeros((0,), dtype=packed.dtype)
        if unpack_pivots:
            order = argsort(elimination.row_order(pivots, m), -1)
            permutation = take_along_axis(eye(m, dtype=packed.dtype).expand(*order.shape, m), expand_dims(order, -1), -2)
        else:
            permutation = empty
    if not unpack_data:
        return permutation, empty, empty
    return permutation, elimination.unit_lower(packed), triu(cut(packed, packed.ndim - 2, 0, min(m, n)))


def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The ``X`` with ``A @ X == B`` for the matrix ``A`` of which :func:`lu_factor` gave the factors.

    With ``left=False`` that with ``X @ A == B``; with ``adjoint`` for the conjugate transpose of A.

    Raises:
        ShapeError: the factors are not those of square matrices, or ``B`` does not fit. LinAlgError: A is singular.
    """
    packed, right = floating(LU), floating(B)
    if not left:
        return adjoint_of(lu_solve(packed, pivots, adjoint_of(right), adjoint=not adjoint))
    n = packed.shape[-1] if packed.ndim > 1 else -1
    if packed.ndim < 2 or packed.shape[-2] != n or right.ndim < 2 or right.shape[-2] != n:
        raise ShapeError(f"lu_solve: expected factors of square matrices and as many rows, got {packed.aval} and {right.aval}")
    batches = [Aval(x.shape[:-2], x.dtype) for x in (packed, right)]
    right = broadcast_to(right, (*broadcast_shapes("lu_solve (batch axes)", batches), *right.shape[-2:]))
    order = elimination.row_order(tensor_of(pivots), n)
    if adjoint:
        inner = solve_triangular(adjoint_of(packed), right, upper=False)
        outer = solve_triangular(adjoint_of(packed), inner, upper=True, unitriangular=True)
        return take_along_axis(outer, _per_batch(argsort(order, -1), outer), -2)
    inner = solve_triangular(packed, take_along_axis(right, _per_batch(order, right), -2), upper=False, unitriangular=True)
    return solve_triangular(packed, inner, upper=True)


def _per_batch(order: Tensor, x: Tensor) -> Tensor:
    return broadcast_to(expand_dims(order, -1), (*x.shape[:-1], 1))


# --- reflections -------------------------------------------------------------------------------------------------


def _compact(vectors: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
    """V and T of the product ``I - V @ T @ V.mH`` of the reflections ``I - factors[k] * v[k] @ v[k].mH``.

    R. Schreiber, C. Van Loan, "A storage-efficient WY representation for products of Householder transformations",
    1989: ``T^-1`` has 1 / factors on its diagonal, and above it the products of the vectors; here times the factors.
    """
    k = factors.shape[-1]
    v = elimination.unit_lower(cut(vectors, vectors.ndim - 1, 0, k))
    with beside(v):
        ones = eye(k, dtype=v.dtype)
    inverse = add(ones, multiply(expand_dims(factors, -1), triu(matmul(adjoint_of(v), v), 1)))
    return v, solve_triangular(inverse, multiply(ones, expand_dims(factors, -2)), upper=True)


def _checked_reflections(what: str, vectors: Any, factors: Any) -> tuple[Tensor, Tensor]:
    a, t = floating(vectors), floating(factors)
    if a.ndim < 2 or t.ndim != a.ndim - 1 or a.shape[-1] > a.shape[-2] or t.shape[-1] > a.shape[-1]:
        raise ShapeError(f"{what}: expected vectors [m, n] with m >= n and at most n factors, got {a.aval} and {t.aval}")
    return a, t


def householder_product(A: Any, tau: Any) -> Tensor:
    """The first n columns of the product of Householder's reflections that :func:`geqrf` gives, [m, n]."""
    vectors, factors = _checked_reflections("householder_product", A, tau)
    m, n = vectors.shape[-2:]
    v, t = _compact(vectors, factors)
    with beside(vectors):
        ones = eye(m, n, dtype=vectors.dtype)
    return subtract(ones, matmul(v, matmul(t, adjoint_of(cut(v, v.ndim - 2, 0, n)))))


def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """``Q @ other``, or with ``left=False`` ``other @ Q``, for the whole product Q of the reflections of :func:`geqrf`.

    With ``transpose`` for the conjugate transpose of Q.
    """
    given, factors, right = floating(input), floating(tau), floating(other)
    vectors, factors = _checked_reflections("ormqr", cut(given, given.ndim - 1, 0, factors.shape[-1]), factors)
    v, t = _compact(vectors, factors)
    middle = adjoint_of(t) if transpose else t
    if left:
        return subtract(right, matmul(v, matmul(middle, matmul(adjoint_of(v), right))))
    return subtract(right, matmul(matmul(matmul(right, v), middle), adjoint_of(v)))


# --- others ------------------------------------------------------------------------------------------------------


def vander(x: Any, *, N: int | None = None) -> Tensor:
    """The powers 0 to ``N - 1`` of the elements of vectors along a new last axis; by default as many as elements.

    A number is a vector of one element.
    """
    given = atleast_1d(tensor_of(x))
    powers = np.arange(given.shape[-1] if N is None else N)
    return pow(expand_dims(given, -1), powers.astype(given.dtype if given.dtype.kind == "f" else np.int64))
