"""Decompositions of matrices as torch has them at the top, with its order of arguments and results."""

from __future__ import annotations

from typing import Any, NamedTuple

from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy import linalg
from jitgrad.numpy.arguments import floating
from jitgrad.numpy.factors import lu_factor, lu_factor_ex
from jitgrad.numpy.factors import lu_solve as solve_by_lu
from jitgrad.numpy.systems import solve_triangular
from jitgrad.ops.arithmetic import subtract
from jitgrad.ops.creation import zeros
from jitgrad.ops.decompositions import REFLECTIONS
from jitgrad.ops.linalg import adjoint_of, matmul, matrix_transpose_of
from jitgrad.ops.placement import beside
from jitgrad.ops.random import randn
from jitgrad.ops.reduce import mean


class SVD(NamedTuple):
    """Left singular vectors in columns, singular values, and right singular vectors in columns."""

    U: Tensor
    S: Tensor
    V: Tensor


class TriangularSolution(NamedTuple):
    """The solution, and the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


class Reflections(NamedTuple):
    """R, below it the vectors of reflections whose first element is 1, and the factors of the reflections."""

    a: Tensor
    tau: Tensor


def svd(input: Any, some: bool = True, compute_uv: bool = True) -> SVD:
    """The singular value decomposition ``input == U @ diag(S) @ V.mH``; with ``some`` U and V have as few columns as S.

    Without ``compute_uv`` U and V are zeros. Gradients of matrices that are not square need ``some``.
    """
    x = floating(input)
    u, s, vh = linalg.svd(x, full_matrices=not some and compute_uv)
    if compute_uv:
        return SVD(u, s, adjoint_of(vh))
    m, n = x.shape[-2:]
    with beside(x):
        return SVD(zeros((*x.shape[:-2], m, m), dtype=x.dtype), s, zeros((*x.shape[:-2], n, n), dtype=x.dtype))


def qr(input: Any, some: bool = True) -> linalg.QRResult:
    """The QR decomposition, with ``some`` the reduced one; otherwise Q is square."""
    out: linalg.QRResult = linalg.qr(input, "reduced" if some else "complete")
    return out


def lu(A: Any, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The results of `linalg.lu_factor`, with ``get_infos`` those of `linalg.lu_factor_ex`."""
    return tuple(lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot=pivot))


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
    """`linalg.lu_solve` with the right sides first."""
    return solve_by_lu(LU_data, LU_pivots, b)


def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolution:
    """The solution of ``A @ x == b``, or with ``transpose`` of ``A.mT @ x == b``, for a triangular A; and A."""
    matrix = floating(A)
    turned = matrix_transpose_of(matrix) if transpose else matrix
    out = solve_triangular(turned, b, upper=bool(upper) != bool(transpose), unitriangular=unitriangular)
    return TriangularSolution(out, matrix)


def geqrf(input: Any) -> Reflections:
    """The QR decomposition as LAPACK keeps it, for `linalg.householder_product` and :func:`ormqr`; without gradient."""
    return Reflections(*apply_op(REFLECTIONS, floating(input)))


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> SVD:
    """The ``q`` largest singular values and their vectors of ``A - M``, nearly, by ``niter`` steps from random vectors.

    N. Halko, P.-G. Martinsson, J. Tropp, "Finding structure with randomness", SIAM Review 53, 2011, algorithms 4.4 and
    5.1.

    Raises:
        ArgumentError: ``q`` is not between 0 and the shorter side of the matrix.
    """
    x = floating(A) if M is None else subtract(floating(A), floating(M))
    count = 6 if q is None else q
    if x.ndim < 2 or not 0 <= count <= min(x.shape[-2:]):
        raise ArgumentError(f"svd_lowrank: q={count} of {x.aval}; it must be between 0 and the shorter side of matrices")
    with beside(x):
        basis = linalg.qr(matmul(x, randn(x.shape[-1], count, dtype=x.dtype)))[0]
    for _ in range(2 if niter is None else niter):
        basis = linalg.qr(matmul(adjoint_of(x), basis))[0]
        basis = linalg.qr(matmul(x, basis))[0]
    u, s, vh = linalg.svd(matmul(adjoint_of(basis), x), full_matrices=False)
    return SVD(matmul(basis, u), s, adjoint_of(vh))


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
    """:func:`svd_lowrank` of ``A``, with ``center`` less the means of its columns: its ``q`` principal components.

    By default at most 6.
    """
    x = floating(A)
    count = min(6, *x.shape[-2:]) if q is None else q
    return svd_lowrank(subtract(x, mean(x, axis=-2, keepdims=True)) if center else x, count, niter)
