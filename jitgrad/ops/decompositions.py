"""Decompositions of matrices by LAPACK, with gradients in ops; leading axes are batches.

Gradients of vjps are those of the bilinear product, dL = Re(g dz). The formulas here are for their conjugates, which
the literature prefers: so they have ``conjugated`` at both ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, complex_dtype_of, real_dtype_of
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import AutogradError, ShapeError
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, conjugated, divide, multiply, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.complex_parts import is_complex, real
from jitgrad.ops.creation import eye
from jitgrad.ops.inverses import solve
from jitgrad.ops.joining import concat
from jitgrad.ops.lapack import by_lapack, matrices, square_aval
from jitgrad.ops.linalg import adjoint_of, matmul, matrix_transpose_of
from jitgrad.ops.movement import cut, expand_dims
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.triangles import tril
from jitgrad.ops.triangular import triangular_solve


def symmetrised(x: Tensor) -> Tensor:
    """The mean of ``x`` and its conjugate transpose."""
    return multiply(add(x, adjoint_of(x)), 0.5)


def _of_lower_triangle(g: Tensor) -> Tensor:
    """The gradient of the lower triangle, which stands for both, from that of a Hermitian matrix."""
    with beside(g):
        weights = subtract(2.0, eye(g.shape[-1], dtype=g.dtype))
    return tril(multiply(symmetrised(g), weights))


def _cholesky(x: Array) -> Array:
    result: Array = by_lapack("cholesky", np.linalg.cholesky, x)
    return result


def _half_diagonal(x: Tensor) -> Tensor:
    with beside(x):
        weights = subtract(1.0, multiply(0.5, eye(x.shape[-1], dtype=x.dtype)))
    return tril(multiply(x, weights))


def _cholesky_vjp(g: Tensor, out: Tensor, _x: Any) -> Tensor:
    """I. Murray, "Differentiation of the Cholesky decomposition", arXiv 1602.07527, equation 10."""
    upper = adjoint_of(out)
    middle = _half_diagonal(matmul(upper, tril(conjugated(g))))
    left = triangular_solve(upper, middle, upper=True)
    return conjugated(_of_lower_triangle(adjoint_of(triangular_solve(upper, adjoint_of(left), upper=True))))  # type: ignore[no-any-return]


CHOLESKY = define(  # reads the lower triangle
    "cholesky(x)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_cholesky,
    abstract=square_aval("cholesky"),
    vjp=(_cholesky_vjp,),
    domain=("positive_definite",),
    takes_complex=True,
)


def _failing_minor(x: Array) -> Array:
    """By bisection: if a leading minor is not positive definite, no longer one is."""
    order = np.zeros(x.shape[:-2], np.int32)
    for index in np.ndindex(*order.shape):
        low, high = 0, x.shape[-1] + 1  # the minor of order low is positive definite, that of order high is not
        while high - low > 1:
            middle = (low + high) // 2 if low or high <= x.shape[-1] else x.shape[-1]  # the whole matrix first
            try:
                np.linalg.cholesky(x[index][:middle, :middle])
                low = middle
            except np.linalg.LinAlgError:
                high = middle
        order[index] = high if high <= x.shape[-1] else 0
    return order


def _failing_minor_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    return Aval(matrices("cholesky_ex", avals[0]).shape[:-2], np.dtype(np.int32))


FAILING_MINOR = define(  # the order of the first leading minor that is not positive definite, 0 if all are
    "failing_minor(x)", kind=Kind.OPAQUE, eager=_failing_minor, abstract=_failing_minor_aval, takes_complex=True
)


def _eigh(x: Array) -> tuple[Array, Array]:
    values, vectors = by_lapack("eigh", np.linalg.eigh, x)
    return values, vectors


def _eigh_avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("eigh", avals[0])
    return Aval(x.shape[:-1], real_dtype_of(x.dtype)), Aval(x.shape, x.dtype)


def _reciprocal(x: Tensor) -> Tensor:
    """``1 / x``, 0 where ``x`` is."""
    zero = equal(x, 0)
    return where(zero, 0.0, divide(1.0, where(zero, 1.0, x)))


def _reciprocal_gaps(values: Tensor) -> Tensor:
    """``1 / (values[j] - values[i])``, 0 where they are equal."""
    return _reciprocal(subtract(expand_dims(values, -2), expand_dims(values, -1)))


def _columns_times(x: Tensor, factors: Tensor) -> Tensor:
    return multiply(x, expand_dims(factors, -2))


def _diagonal_matrix(x: Tensor) -> Tensor:
    with beside(x):
        return multiply(expand_dims(x, -1), eye(x.shape[-1], dtype=x.dtype))


def _eigh_vjp(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], _x: Any) -> tuple[Tensor]:
    """M. B. Giles, "Collected matrix derivative results", 2008, section 3.1."""
    values, vectors = out
    adjoint = adjoint_of(vectors)
    middle = add(_diagonal_matrix(g[0]), multiply(_reciprocal_gaps(values), matmul(adjoint, conjugated(g[1]))))
    return (conjugated(_of_lower_triangle(matmul(matmul(vectors, middle), adjoint))),)


EIGH = define(  # reads the lower triangle
    "eigh(x)",
    kind=Kind.OPAQUE,
    eager=_eigh,
    abstract=_eigh_avals,
    vjp=_eigh_vjp,
    multiple=True,
    domain=("positive_definite",),
    takes_complex=True,
)


def _eig(x: Array) -> tuple[Array, Array]:
    """As complex numbers also where NumPy returns real ones, which it does if all eigenvalues are real."""
    values, vectors = by_lapack("eig", np.linalg.eig, x)
    dtype = complex_dtype_of(x.dtype)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def _eig_avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("eig", avals[0])
    dtype = complex_dtype_of(x.dtype)
    return Aval(x.shape[:-1], dtype), Aval(x.shape, dtype)


def _eig_vjp(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], _x: Any) -> tuple[Tensor]:
    """C. Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum
    beamforming", arXiv 1701.00392, section 4.3.1, for vectors of length 1 without a direction in the complex plane."""
    values, vectors = out
    adjoint, g_vectors = adjoint_of(vectors), conjugated(g[1])
    turned = matmul(adjoint, g_vectors)
    lengths = real(sum_(multiply(conjugated(vectors), g_vectors), -2))
    turned = subtract(turned, _columns_times(matmul(adjoint, vectors), lengths))
    middle = add(_diagonal_matrix(conjugated(g[0])), multiply(conjugated(_reciprocal_gaps(values)), turned))
    return (conjugated(solve(adjoint, matmul(middle, adjoint))),)


EIG = define(
    "eig(x)",
    kind=Kind.OPAQUE,
    eager=_eig,
    abstract=_eig_avals,
    vjp=_eig_vjp,
    multiple=True,
    domain=("invertible",),
    takes_complex=True,
)


def _svd(x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = by_lapack("svd", np.linalg.svd, x, full_matrices=full_matrices)
    return u, s, vh


def _svd_avals(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, Aval, Aval]:
    x = matrices("svd", avals[0], square=False)
    *batch, m, n = x.shape
    k = min(m, n)
    left, right = (m, n) if attrs["full_matrices"] else (k, k)
    return Aval((*batch, m, left), x.dtype), Aval((*batch, k), real_dtype_of(x.dtype)), Aval((*batch, right, n), x.dtype)


def _skew(x: Tensor) -> Tensor:
    return subtract(x, adjoint_of(x))


def _diagonal_of(x: Tensor) -> Tensor:
    """``x`` without what is beside its diagonal."""
    with beside(x):
        return multiply(x, eye(x.shape[-1], dtype=x.dtype))


def _svd_vjp(g: Any, out: Any, x: Tensor, *, full_matrices: bool) -> tuple[Tensor]:
    """J. Townsend, "Differentiating the singular value decomposition", 2016; of complex matrices Z.-Q. Wan and S.-X. Zhang,
    "Automatic differentiation for complex valued SVD", arXiv 1909.02659."""
    m, n = x.shape[-2:]
    if full_matrices and m != n:
        raise AutogradError(f"svd of {x.aval} with full_matrices=True has no gradient; pass full_matrices=False")
    (u, s, vh), gu, gs, gv = out, conjugated(g[0]), g[1], matrix_transpose_of(g[2])
    uh, v = adjoint_of(u), adjoint_of(vh)
    gaps, inverse = _reciprocal_gaps(multiply(s, s)), _reciprocal(s)
    of_left, of_right = _skew(matmul(uh, gu)), _skew(matmul(vh, gv))
    middle = _columns_times(multiply(gaps, of_left), s)
    middle = add(middle, multiply(expand_dims(s, -1), multiply(gaps, of_right)))
    middle = add(middle, _diagonal_matrix(gs))
    if is_complex(x):  # a common phase of two vectors is free, half of their difference is each one's
        middle = add(middle, multiply(_diagonal_of(subtract(of_left, of_right)), multiply(expand_dims(inverse, -2), 0.25)))
    gx = matmul(matmul(u, middle), vh)
    if m > n:
        outside = subtract(gu, matmul(u, matmul(uh, gu)))
        gx = add(gx, matmul(_columns_times(outside, inverse), vh))
    if n > m:
        outside = subtract(gv, matmul(v, matmul(vh, gv)))
        gx = add(gx, matmul(_columns_times(u, inverse), adjoint_of(outside)))
    return (conjugated(gx),)


SVD = define(
    "svd(x, *, full_matrices)",
    kind=Kind.OPAQUE,
    eager=_svd,
    abstract=_svd_avals,
    vjp=_svd_vjp,
    multiple=True,
    domain=("invertible",),
    sample_attrs={"full_matrices": False},
    takes_complex=True,
)


def _qr(x: Array, *, complete: bool) -> tuple[Array, Array]:
    q, r = by_lapack("qr", np.linalg.qr, x, mode="complete" if complete else "reduced")
    return q, r


def _qr_avals(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("qr", avals[0], square=False)
    *batch, m, n = x.shape
    if m < n:
        raise ShapeError(f"qr of {x}: the op takes matrices with at least as many rows as columns")
    k = m if attrs["complete"] else n
    return Aval((*batch, m, k), x.dtype), Aval((*batch, k, n), x.dtype)


def _qr_vjp(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], _x: Any, *, complete: bool) -> tuple[Tensor]:
    """H. Liao et al., "Differentiable programming tensor networks", Phys. Rev. X 9, 2019, appendix.

    The diagonal of ``r`` is real, which LAPACK sees to.
    """
    if complete and out[0].shape[-1] != out[1].shape[-1]:
        raise AutogradError('qr with mode="complete" of more rows than columns has no gradient; use mode="reduced"')
    (q, r), gq, gr = out, conjugated(g[0]), conjugated(g[1])
    half = _half_diagonal(subtract(matmul(r, adjoint_of(gr)), matmul(adjoint_of(gq), q)))
    total = add(gq, matmul(q, add(half, adjoint_of(half))))
    return (matrix_transpose_of(triangular_solve(r, adjoint_of(total), upper=True)),)


QR = define(
    "qr(x, *, complete)",
    kind=Kind.OPAQUE,
    eager=_qr,
    abstract=_qr_avals,
    vjp=_qr_vjp,
    multiple=True,
    domain=("invertible",),
    sample_attrs={"complete": False},
    takes_complex=True,
)


def qr(x: Tensor, *, complete: bool = False) -> tuple[Tensor, Tensor]:
    """The QR decomposition of matrices [m, n], with min(m, n) columns in Q, or ``complete`` with m."""
    m, n = x.shape[-2:] if x.ndim > 1 else (0, 0)
    if m >= n:
        q, r = apply_op(QR, x, complete=complete and m > n)
        return q, r
    first, rest = cut(x, x.ndim - 1, 0, m), cut(x, x.ndim - 1, m, n)
    q, r = apply_op(QR, first, complete=False)
    return q, concat([r, matmul(adjoint_of(q), rest)], -1)


def _reflections(x: Array) -> tuple[Array, Array]:
    turned, factors = np.linalg.qr(x, mode="raw")
    return np.swapaxes(turned, -1, -2), factors


def _reflections_avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("geqrf", avals[0], square=False)
    return Aval(x.shape, x.dtype), Aval((*x.shape[:-2], min(x.shape[-2:])), x.dtype)


REFLECTIONS = define(  # LAPACK's geqrf: R, below it the vectors of Householder's reflections, and their factors
    "reflections(x)",
    kind=Kind.OPAQUE,
    eager=_reflections,
    abstract=_reflections_avals,
    multiple=True,
    takes_complex=True,
)
