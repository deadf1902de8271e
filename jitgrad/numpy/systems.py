"""Inverses, systems of equations with matrices of any kind and with tensors, and Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import floating
from jitgrad.ops.arithmetic import add, subtract
from jitgrad.ops.comparison import less, where
from jitgrad.ops.complex_parts import complex, imag, is_complex, real
from jitgrad.ops.creation import eye
from jitgrad.ops.decompositions import CHOLESKY, symmetrised
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.inverses import INVERSE, slogdet
from jitgrad.ops.inverses import solve as solve_matrices
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.linalg import adjoint_of, matmul, matrix_transpose_of
from jitgrad.ops.movement import expand_dims, moveaxis, reshape, squeeze
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside
from jitgrad.ops.triangles import tril, triu
from jitgrad.ops.triangular import triangular_solve
from jitgrad.ops.trigonometric import atan2


def symmetric(a: Any, upper: bool = False) -> Tensor:
    """``a`` with the gradient of a Hermitian matrix: both triangles get half, whichever LAPACK reads."""
    x = floating(a)
    if x.ndim < 2:
        return x
    x = adjoint_of(x) if upper else x
    if x.shape[-1] != x.shape[-2]:
        return x
    mean = symmetrised(x)
    return add(mean, apply(STOP_GRADIENT, subtract(x, mean)))


def inv(a: Any) -> Tensor:
    """The inverse. Raises LinAlgError if a matrix is singular."""
    return apply(INVERSE, floating(a))


def solve(a: Any, b: Any, *, left: bool = True) -> Tensor:
    """The ``x`` with ``a @ x == b``, or with ``left=False`` with ``x @ a == b``; only a vector ``b`` is one right side.

    Raises LinAlgError if ``a`` is singular.
    """
    x, y = floating(a), floating(b)
    if not left:
        if y.ndim < 2:
            raise ArgumentError(f"solve with left=False: b must be matrices, got {y.aval}")
        return matrix_transpose_of(solve_matrices(matrix_transpose_of(x), matrix_transpose_of(y)))
    if y.ndim == 1:
        return squeeze(solve_matrices(x, expand_dims(y, -1)), -1)
    return solve_matrices(x, y)


def cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    """The lower triangular ``L`` with ``L @ L.mH == a``, or with ``upper`` its adjoint; reads that triangle of ``a``.

    Raises LinAlgError if ``a`` is not positive definite.
    """
    lower = apply(CHOLESKY, symmetric(a, upper))
    return adjoint_of(lower) if upper else lower


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The ``X`` with ``A @ X == B``, or with ``left=False`` with ``X @ A == B``, for a triangular ``A``.

    Only the triangle is read, with ``unitriangular`` without its diagonal, which counts as ones.
    """
    matrix, right = floating(A), floating(B)
    if matrix.ndim < 2 or right.ndim < 2:
        raise ShapeError(f"solve_triangular: expected matrices, got {matrix.aval} and {right.aval}")
    if unitriangular:
        with beside(matrix):
            ones = eye(matrix.shape[-1], dtype=matrix.dtype)
        matrix = add(triu(matrix, 1) if upper else tril(matrix, -1), ones)
    if left:
        return triangular_solve(matrix, right, upper=upper)
    return matrix_transpose_of(triangular_solve(matrix_transpose_of(matrix), matrix_transpose_of(right), upper=not upper))


def cholesky_solve(B: Any, L: Any, upper: bool = False) -> Tensor:
    """The ``X`` with ``L @ L.mH @ X == B`` for the lower triangular ``L``, or with ``upper`` for its conjugate transpose."""
    factor = adjoint_of(floating(L)) if upper else floating(L)
    inner = solve_triangular(factor, B, upper=False)
    return solve_triangular(adjoint_of(factor), inner, upper=True)


def cholesky_inverse(L: Any, upper: bool = False) -> Tensor:
    """The inverse of ``L @ L.mH`` for the lower triangular ``L``, or with ``upper`` for its conjugate transpose."""
    lower = tril(adjoint_of(floating(L)) if upper else floating(L))
    return apply(INVERSE, matmul(lower, adjoint_of(lower)))


def logdet(x: Any) -> Tensor:
    """The logarithm of the determinant: -inf where it is 0, NaN where it is negative, complex if ``x`` is."""
    sign, logarithm = slogdet(floating(x))
    if is_complex(sign):
        return complex(logarithm, atan2(imag(sign), real(sign)))
    return where(less(sign, 0), math.nan, logarithm)


def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse of ``a`` as a linear map from its last axes to its first ``ind``."""
    given = floating(a)
    if not 0 < ind <= given.ndim:
        raise ArgumentError(f"tensorinv: ind={ind} of {given.aval}; it must be between 1 and the number of axes")
    out, into = given.shape[:ind], given.shape[ind:]
    if math.prod(out) != math.prod(into):
        raise ShapeError(f"tensorinv of {given.aval}: the axes before and after {ind} must have as many elements")
    n = math.prod(out)
    return reshape(apply(INVERSE, reshape(given, (n, n))), (*into, *out))


@takes_dim()
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The ``x`` with ``tensordot(a, x, x.ndim) == b``; the ``axes`` of ``a`` are moved to its end before."""
    given, right = floating(a), floating(b)
    if axes is not None:
        given = moveaxis(given, tuple(axes), tuple(range(given.ndim - len(axes), given.ndim)))
    shape = given.shape[right.ndim :]
    if math.prod(shape) != right.size:
        raise ShapeError(f"tensorsolve: {given.aval} and {right.aval}: the axes of a after those of b must have its size")
    return reshape(solve_matrices(reshape(given, (right.size, right.size)), reshape(right, (right.size, 1))), shape)
