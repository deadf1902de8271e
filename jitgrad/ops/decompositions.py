"""Inverses and decompositions of matrices by LAPACK, with gradients in ops; leading axes are batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, broadcast_shapes
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import AutogradError, ShapeError
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, multiply, negative, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.creation import eye, tril
from jitgrad.ops.joining import concat
from jitgrad.ops.lapack import by_lapack, matrices
from jitgrad.ops.linalg import matmul, matrix_transpose_of
from jitgrad.ops.movement import cut, expand_dims
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import beside
from jitgrad.ops.triangular import triangular_solve


def _same_aval(name: str) -> Callable[[Sequence[Aval], Mapping[str, Any]], Aval]:
    def abstract(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
        x = matrices(name, avals[0])
        return Aval(x.shape, x.dtype)

    return abstract


def symmetrised(x: Tensor) -> Tensor:
    """The mean of ``x`` and its transpose."""
    return multiply(add(x, matrix_transpose_of(x)), 0.5)


def _of_lower_triangle(g: Tensor) -> Tensor:
    """The gradient of the lower triangle, which stands for both, from that of a symmetric matrix."""
    with beside(g):
        weights = subtract(2.0, eye(g.shape[-1], dtype=g.dtype))
    return tril(multiply(symmetrised(g), weights))


# --- inverse, solve, determinant -----------------------------------------------------------------------------------


def _inverse(x: Array) -> Array:
    result: Array = by_lapack("inv", np.linalg.inv, x)
    return result


def _inverse_vjp(g: Tensor, out: Tensor, _x: Any) -> Tensor:
    transposed = matrix_transpose_of(out)
    return negative(matmul(matmul(transposed, g), transposed))


INVERSE = define(
    "inverse(x)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_inverse,
    abstract=_same_aval("inv"),
    vjp=(_inverse_vjp,),
    domain=("invertible",),
    takes_complex=True,
)


def _solve(a: Array, b: Array) -> Array:
    result: Array = by_lapack("solve", np.linalg.solve, a, b)
    return result


def _solve_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    a, b = matrices("solve", avals[0]), matrices("solve", avals[1], square=False)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"solve: {a} and {b}: the right sides must have {a.shape[-1]} rows")
    batch = broadcast_shapes("solve (batch axes)", [Aval(a.shape[:-2], a.dtype), Aval(b.shape[:-2], b.dtype)])
    return Aval((*batch, *b.shape[-2:]), np.result_type(a.dtype, b.dtype))


SOLVE: OpDef = define(
    "solve(a, b)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_solve,
    abstract=_solve_aval,
    vjp=(
        lambda g, out, a, _b: negative(matmul(solve(matrix_transpose_of(a), g), matrix_transpose_of(out))),
        lambda g, _out, a, _b: solve(matrix_transpose_of(a), g),
    ),
    domain=("invertible", "matrix"),
    takes_complex=True,
)


def solve(a: Operand, b: Operand) -> Tensor:
    """The ``x`` with ``a @ x == b`` for matrices ``b``."""
    return apply(SOLVE, a, b)


def _determinant(x: Array) -> Array:
    return np.asarray(np.linalg.det(x), x.dtype)


def _numbers_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    x = matrices("det", avals[0])
    return Aval(x.shape[:-2], x.dtype)


def _scaled(g: Tensor, x: Tensor) -> Tensor:
    """One number per matrix of ``x``, times the matrix."""
    return multiply(expand_dims(g, (-2, -1)), x)


DETERMINANT = define(
    "determinant(x)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_determinant,
    abstract=_numbers_aval,
    vjp=(lambda g, out, x: _scaled(multiply(g, out), matrix_transpose_of(apply(INVERSE, x))),),
    domain=("invertible",),
    takes_complex=True,
)


def _sign_and_log(x: Array) -> tuple[Array, Array]:
    sign, log = np.linalg.slogdet(x)
    return np.asarray(sign, x.dtype), np.asarray(log, x.dtype)


SLOGDET = define(
    "slogdet(x)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_sign_and_log,
    abstract=lambda avals, attrs: (_numbers_aval(avals, attrs),) * 2,
    vjp=lambda g, _out, x: (_scaled(g[1], matrix_transpose_of(apply(INVERSE, x))),),
    multiple=True,
    domain=("invertible",),
)


def _pseudo_inverse(x: Array, *, cutoff: float) -> Array:
    result: Array = by_lapack("pinv", np.linalg.pinv, x, rcond=cutoff)
    return result


def _pseudo_inverse_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    x = matrices("pinv", avals[0], square=False)
    return Aval((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


def _pseudo_inverse_vjp(g: Tensor, out: Tensor, x: Tensor, *, cutoff: float) -> Tensor:
    """For a rank that does not change (G. H. Golub, V. Pereyra, SIAM J. Numer. Anal. 10, 1973, equation 4.12)."""
    g_t, out_t = matrix_transpose_of(g), matrix_transpose_of(out)
    inside = negative(matmul(matmul(out_t, g), out_t))
    rows = matmul(matmul(g_t, out), out_t)
    columns = matmul(matmul(out_t, out), g_t)
    rows = subtract(rows, matmul(matmul(x, out), rows))
    columns = subtract(columns, matmul(columns, matmul(out, x)))
    return add(inside, add(rows, columns))


PSEUDO_INVERSE = define(
    "pseudo_inverse(x, *, cutoff)",
    kind=Kind.OPAQUE,
    eager=_pseudo_inverse,
    abstract=_pseudo_inverse_aval,
    vjp=(_pseudo_inverse_vjp,),
    domain=("invertible",),
    sample_attrs={"cutoff": 1e-15},
)

# --- decompositions ------------------------------------------------------------------------------------------------


def _cholesky(x: Array) -> Array:
    result: Array = by_lapack("cholesky", np.linalg.cholesky, x)
    return result


def _half_diagonal(x: Tensor) -> Tensor:
    with beside(x):
        weights = subtract(1.0, multiply(0.5, eye(x.shape[-1], dtype=x.dtype)))
    return tril(multiply(x, weights))


def _cholesky_vjp(g: Tensor, out: Tensor, _x: Any) -> Tensor:
    """I. Murray, "Differentiation of the Cholesky decomposition", arXiv 1602.07527, equation 10."""
    upper = matrix_transpose_of(out)
    middle = _half_diagonal(matmul(upper, tril(g)))
    left = triangular_solve(upper, middle, upper=True)
    return _of_lower_triangle(matrix_transpose_of(triangular_solve(upper, matrix_transpose_of(left), upper=True)))


CHOLESKY = define(  # reads the lower triangle
    "cholesky(x)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_cholesky,
    abstract=_same_aval("cholesky"),
    vjp=(_cholesky_vjp,),
    domain=("positive_definite",),
)


def _eigh(x: Array) -> tuple[Array, Array]:
    values, vectors = by_lapack("eigh", np.linalg.eigh, x)
    return values, vectors


def _eigh_avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("eigh", avals[0])
    return Aval(x.shape[:-1], x.dtype), Aval(x.shape, x.dtype)


def _reciprocal_gaps(values: Tensor) -> Tensor:
    """``1 / (values[j] - values[i])``, 0 where they are equal."""
    gaps = subtract(expand_dims(values, -2), expand_dims(values, -1))
    none = equal(gaps, 0)
    return where(none, 0.0, divide(1.0, where(none, 1.0, gaps)))


def _columns_times(x: Tensor, factors: Tensor) -> Tensor:
    return multiply(x, expand_dims(factors, -2))


def _diagonal_matrix(x: Tensor) -> Tensor:
    with beside(x):
        return multiply(expand_dims(x, -1), eye(x.shape[-1], dtype=x.dtype))


def _eigh_vjp(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], _x: Any) -> tuple[Tensor]:
    """M. B. Giles, "Collected matrix derivative results", 2008, section 3.1."""
    values, vectors = out
    transposed = matrix_transpose_of(vectors)
    middle = add(_diagonal_matrix(g[0]), multiply(_reciprocal_gaps(values), matmul(transposed, g[1])))
    return (_of_lower_triangle(matmul(matmul(vectors, middle), transposed)),)


EIGH = define(  # reads the lower triangle
    "eigh(x)",
    kind=Kind.OPAQUE,
    eager=_eigh,
    abstract=_eigh_avals,
    vjp=_eigh_vjp,
    multiple=True,
    domain=("positive_definite",),
)


def _svd(x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = by_lapack("svd", np.linalg.svd, x, full_matrices=full_matrices)
    return u, s, vh


def _svd_avals(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, Aval, Aval]:
    x = matrices("svd", avals[0], square=False)
    *batch, m, n = x.shape
    k = min(m, n)
    left, right = (m, n) if attrs["full_matrices"] else (k, k)
    return tuple(Aval((*batch, *shape), x.dtype) for shape in ((m, left), (k,), (right, n)))  # type: ignore[return-value]


def _antisymmetric(x: Tensor) -> Tensor:
    return subtract(x, matrix_transpose_of(x))


def _svd_vjp(g: Any, out: Any, x: Tensor, *, full_matrices: bool) -> tuple[Tensor]:
    """J. Townsend, "Differentiating the singular value decomposition", 2016."""
    m, n = x.shape[-2:]
    if full_matrices and m != n:
        raise AutogradError(f"svd of {x.aval} with full_matrices=True has no gradient; pass full_matrices=False")
    (u, s, vh), (gu, gs, gvh) = out, g
    ut, v, gv = matrix_transpose_of(u), matrix_transpose_of(vh), matrix_transpose_of(gvh)
    gaps = _reciprocal_gaps(multiply(s, s))
    left = _columns_times(multiply(gaps, _antisymmetric(matmul(ut, gu))), s)
    right = multiply(expand_dims(s, -1), multiply(gaps, _antisymmetric(matmul(vh, gv))))
    gx = matmul(matmul(u, add(_diagonal_matrix(gs), add(left, right))), vh)
    zero = equal(s, 0)
    inverse = where(zero, 0.0, divide(1.0, where(zero, 1.0, s)))
    if m > n:
        outside = subtract(gu, matmul(u, matmul(ut, gu)))
        gx = add(gx, matmul(_columns_times(outside, inverse), vh))
    if n > m:
        outside = subtract(gv, matmul(v, matmul(vh, gv)))
        gx = add(gx, matmul(_columns_times(u, inverse), matrix_transpose_of(outside)))
    return (gx,)


SVD = define(
    "svd(x, *, full_matrices)",
    kind=Kind.OPAQUE,
    eager=_svd,
    abstract=_svd_avals,
    vjp=_svd_vjp,
    multiple=True,
    domain=("invertible",),
    sample_attrs={"full_matrices": False},
)


def _qr(x: Array) -> tuple[Array, Array]:
    q, r = by_lapack("qr", np.linalg.qr, x)
    return q, r


def _qr_avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("qr", avals[0], square=False)
    *batch, m, n = x.shape
    if m < n:
        raise ShapeError(f"qr of {x}: the op takes matrices with at least as many rows as columns")
    return Aval(x.shape, x.dtype), Aval((*batch, n, n), x.dtype)


def _qr_vjp(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], _x: Any) -> tuple[Tensor]:
    """H. Liao et al., "Differentiable programming tensor networks", Phys. Rev. X 9, 2019, appendix."""
    q, r = out
    middle = subtract(matmul(r, matrix_transpose_of(g[1])), matmul(matrix_transpose_of(g[0]), q))
    lower = tril(middle)
    symmetric = add(lower, matrix_transpose_of(tril(middle, -1)))
    total = add(g[0], matmul(q, symmetric))
    return (matrix_transpose_of(triangular_solve(r, matrix_transpose_of(total), upper=True)),)


QR = define(
    "qr(x)",
    kind=Kind.OPAQUE,
    eager=_qr,
    abstract=_qr_avals,
    vjp=_qr_vjp,
    multiple=True,
    domain=("invertible",),
)


def qr(x: Tensor) -> tuple[Tensor, Tensor]:
    """The reduced QR decomposition of matrices of any shape."""
    m, n = x.shape[-2:] if x.ndim > 1 else (0, 0)
    if m >= n:
        q, r = apply_op(QR, x)
        return q, r
    first, rest = cut(x, x.ndim - 1, 0, m), cut(x, x.ndim - 1, m, n)
    q, r = apply_op(QR, first)
    return q, concat([r, matmul(matrix_transpose_of(q), rest)], -1)
