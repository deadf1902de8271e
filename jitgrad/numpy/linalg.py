"""numpy.linalg: inverses, decompositions, norms and products of matrices, with gradients; leading axes are batches."""

# ruff: noqa: PLC0414, I001 - names imported as themselves are public here, too
from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from jitgrad.core.aval import normalize_axes
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import floating, in_dtype, tensor_of, tensors_of
from jitgrad.numpy.products import (
    cross as cross,
    diagonal as diagonal,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vecdot as vecdot,
)
from jitgrad.numpy.shapes import matrix_transpose as matrix_transpose
from jitgrad.numpy.factors import (
    householder_product as householder_product,
    lu as lu,
    lu_factor as lu_factor,
    lu_factor_ex as lu_factor_ex,
    lu_solve as lu_solve,
    vander as vander,
)
from jitgrad.numpy.reported import cholesky_ex as cholesky_ex, inv_ex as inv_ex, solve_ex as solve_ex
from jitgrad.numpy.systems import (
    cholesky as cholesky,
    inv as inv,
    solve as solve,
    solve_triangular as solve_triangular,
    symmetric,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
from jitgrad.ops import decompositions, inverses, linalg, norms, reduce
from jitgrad.ops.arithmetic import abs, add, astype, divide, maximum, multiply, subtract
from jitgrad.ops.comparison import greater
from jitgrad.ops.complex_parts import squared_size
from jitgrad.ops.creation import eye
from jitgrad.ops.triangles import tril
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.matrix_exponential import matrix_exp as matrix_exp  # torch's, beside NumPy's functions
from jitgrad.ops.movement import broadcast_to, expand_dims, moveaxis, reshape
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside

LinAlgError = np.linalg.LinAlgError


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors of length 1 in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """An orthogonal (of complex matrices: a unitary) and an upper triangular matrix."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values, and right singular vectors in rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SlogdetResult(NamedTuple):
    """The sign of the determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


def _of_lower_triangle(a: Any) -> Tensor:
    """The Hermitian matrix of which ``a`` holds the lower triangle; both triangles of ``a`` get half of the gradient."""
    x = floating(a)
    whole = add(tril(x), linalg.adjoint_of(tril(x, -1)))
    mean = decompositions.symmetrised(x)
    return add(mean, apply(STOP_GRADIENT, subtract(whole, mean)))


def det(a: Any) -> Tensor:
    """The determinant."""
    return apply(inverses.DETERMINANT, floating(a))


def slogdet(a: Any) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its absolute value."""
    return SlogdetResult(*inverses.slogdet(floating(a)))


def eig(a: Any) -> EigResult:
    """Eigenvalues in no order, and eigenvectors, of any square matrix; complex, also of a real one.

    The gradient of the vectors of equal eigenvalues is not defined; here they add nothing to it. A defective matrix, which
    has fewer vectors than rows, has no gradient: it is a LinAlgError, or as large as rounding makes it. A vector is one
    but for a factor ``exp(1j * phi)``, which has no gradient: a loss must not depend on it.
    """
    return EigResult(*apply_op(decompositions.EIG, floating(a)))


def eigvals(a: Any) -> Tensor:
    """The eigenvalues of any square matrix in no order; complex, also of a real one."""
    return eig(a).eigenvalues


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues in ascending order and eigenvectors of a symmetric or Hermitian matrix, of which one triangle is read.

    The gradient of the vectors of equal eigenvalues is not defined; here they add nothing to it. A vector of a complex
    matrix is one but for a factor ``exp(1j * phi)``, which has no gradient: a loss must not depend on it.
    """
    if UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"eigh: UPLO must be 'L' or 'U', got {shown(UPLO)}")
    return EighResult(*apply_op(decompositions.EIGH, symmetric(a, UPLO.upper() == "U")))


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix in ascending order."""
    return eigh(a, UPLO).eigenvalues


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition; with ``compute_uv=False`` the singular values.

    With ``hermitian`` only the lower triangle is read, for both. Gradients of matrices that are not square need
    ``full_matrices=False``.
    """
    x = _of_lower_triangle(a) if hermitian else floating(a)
    square = x.ndim > 1 and x.shape[-1] == x.shape[-2]
    out = SVDResult(*apply_op(decompositions.SVD, x, full_matrices=full_matrices and compute_uv and not square))
    return out if compute_uv else out.S


def svdvals(x: Any, /) -> Tensor:
    """The singular values, the largest first."""
    out: Tensor = svd(x, compute_uv=False)
    return out


def qr(a: Any, mode: str = "reduced") -> Any:
    """The QR decomposition; with ``mode="r"`` only R. ``mode="complete"`` makes Q square, which has a gradient only if
    there are no more rows than columns."""
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode must be 'reduced', 'complete' or 'r', got {shown(mode)}")
    out = QRResult(*decompositions.qr(floating(a), complete=mode == "complete"))
    return out.R if mode == "r" else out


def pinv(a: Any, rcond: float | None = None, hermitian: bool = False, *, rtol: float | None = None) -> Tensor:
    """The pseudo-inverse, without singular values up to ``rcond`` times the largest; its gradient is that of full rank.

    By default a few roundings of the largest are left out: in float32 NumPy's 1e-15 leaves out none. With ``hermitian``
    only the lower triangle is read, for both.
    """
    x = _of_lower_triangle(a) if hermitian else floating(a)
    given = rcond if rtol is None else rtol
    if given is None:
        given = np.finfo(x.dtype).eps * builtins.max(x.shape[-2:], default=0)
    return apply(inverses.PSEUDO_INVERSE, x, cutoff=float(given))


class LeastSquares(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(a: Any, b: Any, rcond: float | None = None) -> LeastSquares:
    """The ``x`` with the least ``|a @ x - b|``, the sums of squares that are left, the rank, and the singular values.

    The sums of squares are returned if there are more rows than columns, whatever the rank.
    """
    x, y = floating(a), floating(b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ShapeError(f"lstsq: {x.aval} and {y.aval}: a matrix, and a vector or matrix with as many rows")
    m, n = x.shape
    cutoff = np.finfo(x.dtype).eps * builtins.max(m, n) if rcond is None else rcond
    solution = linalg.matmul(pinv(x, float(cutoff)), y)
    singular = svdvals(x)
    rank = reduce.sum(greater(singular, multiply(singular[:1], float(cutoff))), dtype=np.int32)
    rest = subtract(linalg.matmul(x, solution), y)
    columns = rest if rest.ndim > 1 else expand_dims(rest, 1)
    squares = reduce.sum(squared_size(columns), 0) if m > n else astype(tensor_of(np.empty(0)), singular.dtype)
    return LeastSquares(solution, squares, rank, singular)


def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None, atol: Any = None
) -> Tensor:
    """The number of singular values above ``tol``, by default a few roundings of the largest.

    ``rtol`` is a share of the largest one, ``atol`` torch's name of ``tol``; of both the larger limit holds.
    """
    x = floating(A)
    s = svd(x, compute_uv=False, hermitian=hermitian)
    limit = tol if atol is None else atol
    if limit is not None and rtol is None:
        return reduce.sum(greater(s, _per_matrix(limit)), -1)
    if not s.shape[-1]:
        return reduce.sum(greater(s, 0), -1)
    share = np.finfo(x.dtype).eps * builtins.max(x.shape[-2:]) if rtol is None else _per_matrix(rtol)
    relative = multiply(reduce.max(s, axis=-1, keepdims=True), share)
    return reduce.sum(greater(s, relative if limit is None else maximum(relative, _per_matrix(limit))), -1)


def _per_matrix(limit: Any) -> Any:
    """One number for each matrix beside its singular values, or one for all."""
    given = tensor_of(limit)
    return expand_dims(given, -1) if given.ndim else given


def cond(x: Any, p: Any = None) -> Tensor:
    """The condition number in the norm ``p``, by default the quotient of the largest and the least singular value."""
    given = floating(x)
    if p is None or p in (2, -2):
        s = svdvals(given)
        return divide(s[..., -1], s[..., 0]) if p == -2 else divide(s[..., 0], s[..., -1])
    return multiply(norm(given, p, (-2, -1)), norm(inv(given), p, (-2, -1)))


def matrix_power(a: Any, n: int) -> Tensor:
    """``a`` multiplied with itself ``n`` times; a negative ``n`` is a power of the inverse."""
    x = tensor_of(a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power of {x.aval}: the last two axes must be those of square matrices")
    base, count = (x, n) if n >= 0 else (inv(x), -n)
    out: Tensor | None = None
    while count:
        if count % 2:
            out = base if out is None else linalg.matmul(out, base)
        count //= 2
        base = linalg.matmul(base, base) if count else base
    if out is not None:
        return out
    with beside(x):
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)


def multi_dot(arrays: Sequence[Any], *, out: None = None) -> Tensor:
    """The product of matrices in the order that takes the fewest multiplications; the ends may be vectors."""
    given = tensors_of(arrays)
    if len(given) < 2 or out is not None:
        raise ArgumentError("multi_dot takes at least two matrices, and no out=")
    first, last = given[0].ndim == 1, given[-1].ndim == 1
    given[0] = expand_dims(given[0], 0) if first else given[0]
    given[-1] = expand_dims(given[-1], 1) if last else given[-1]
    product = _chain(given)
    return reshape(product, tuple(n for n, gone in zip(product.shape, (first, last), strict=True) if not gone))


def _chain(given: list[Tensor]) -> Tensor:
    """The product by dynamic programming over all ways to put brackets."""
    sizes = [x.shape[0] for x in given] + [given[-1].shape[1]]
    best: dict[tuple[int, int], tuple[int, int]] = {(k, k): (0, k) for k in range(len(given))}
    for length in range(1, len(given)):
        for i in range(len(given) - length):
            j = i + length
            best[i, j] = builtins.min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        k = best[i, j][1]
        return given[i] if i == j else linalg.matmul(product(i, k), product(k + 1, j))

    return product(0, len(given) - 1)


@takes_dim()
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of vectors (one axis), of matrices (two axes), or without ``ord`` and ``axis`` of all elements.

    Elements are converted to ``dtype`` first, if one is given.
    """
    given = in_dtype(floating(x), dtype)
    if axis is None and (ord is None or given.ndim == 1):
        return norms.norm(given, ord, None, keepdims)
    axes = normalize_axes("norm", axis, given.ndim)
    if len(axes) == 1:
        return norms.norm(given, ord, axes, keepdims)
    if len(axes) != 2:
        raise ArgumentError(f"norm of {given.aval} over {len(axes)} axes: give one axis for vectors, two for matrices")
    axes = axes if axis is None else tuple(k % given.ndim for k in axis)
    out = _matrix_norm(moveaxis(given, axes, (-2, -1)), ord)
    return expand_dims(out, tuple(sorted(axes))) if keepdims else out


def _matrix_norm(x: Tensor, ord: Any) -> Tensor:
    if ord is None or ord == "fro":
        return norms.norm(x, None, (-2, -1))
    if ord == "nuc":
        return reduce.sum(svdvals(x), -1)
    if ord in (1, -1, 2, -2, math.inf, -math.inf):
        values = svdvals(x) if builtins.abs(ord) == 2 else reduce.sum(abs(x), -2 if builtins.abs(ord) == 1 else -1)
        if ord > 0 and not values.shape[-1]:
            return reduce.sum(values, -1)  # an empty matrix has the norm 0
        if builtins.abs(ord) == 2:
            return values[..., 0 if ord == 2 else -1]
        return reduce.max(values, axis=-1) if ord > 0 else reduce.min(values, axis=-1)
    raise ArgumentError(f"norm: ord of matrices must be None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {shown(ord)}")


@takes_dim()
def matrix_norm(
    x: Any, /, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices, over the last two axes or those named; in ``dtype`` if one is given."""
    return norm(x, ord, tuple(axis), keepdims, dtype=dtype)


@takes_dim()
def vector_norm(
    x: Any, /, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of vectors over ``axis`` (None: all axes), in ``dtype`` if one is given."""
    return norms.vector_norm(in_dtype(floating(x), dtype), ord, axis, keepdims)


def __getattr__(name: str) -> NoReturn:
    remedy = f"and neither has NumPy{meant(name, globals())}"
    if hasattr(np.linalg, name):
        remedy = f"compose it of the functions here, or jg.custom_op(forward=numpy.linalg.{name}, vjp=...)"
    raise AttributeError(f"jitgrad.numpy.linalg has no {shown(name)}: {remedy}", name=name)
