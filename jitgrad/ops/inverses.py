"""Inverses, systems of equations and determinants of matrices by LAPACK, with gradients in ops; leading axes are batches.

Gradients of vjps are those of the bilinear product, dL = Re(g dz). Formulas for the conjugates of these, which the
literature prefers, have ``conjugated`` at both ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, broadcast_shapes, real_dtype_of
from jitgrad.core.dispatch import apply_op, aval_of
from jitgrad.core.errors import ShapeError
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, conjugated, multiply, negative, subtract
from jitgrad.ops.complex_parts import complex, imag, is_complex
from jitgrad.ops.factors import SLOGDET_BY_FACTORS, has_factors, lu_factors, solve_by_factors
from jitgrad.ops.lapack import by_lapack, matrices, square_aval
from jitgrad.ops.linalg import adjoint_of, matmul, matrix_transpose_of
from jitgrad.ops.movement import expand_dims
from jitgrad.ops.operand import Operand, apply


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
    abstract=square_aval("inv"),
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
    """The ``x`` with ``a @ x == b`` for matrices ``b``. Large matrices are factored once for it and its gradients."""
    if has_factors(SOLVE, a, b):
        _solve_aval([aval_of(SOLVE, x) for x in (a, b)], {})
        return solve_by_factors(a, *lu_factors(a), b, transposed=False)
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
    return np.asarray(sign, x.dtype), np.asarray(log, real_dtype_of(x.dtype))


def _sign_and_log_avals(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    sign = _numbers_aval(avals, attrs)
    return sign, Aval(sign.shape, real_dtype_of(sign.dtype))


def _sign_and_log_vjp(g: tuple[Tensor, Tensor], out: tuple[Tensor, Tensor], x: Tensor) -> tuple[Tensor]:
    """Of ``d log(det) = trace(inverse(x) @ dx)`` the real part changes the logarithm, and the imaginary one the sign."""
    turned = complex(g[1], imag(multiply(g[0], out[0]))) if is_complex(x) else g[1]
    return (_scaled(turned, matrix_transpose_of(apply(INVERSE, x))),)


SLOGDET = define(
    "slogdet(x)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=_sign_and_log,
    abstract=_sign_and_log_avals,
    vjp=_sign_and_log_vjp,
    multiple=True,
    domain=("invertible",),
    takes_complex=True,
)


def slogdet(x: Operand) -> tuple[Tensor, Tensor]:
    """The signs of determinants, and the logarithms of their absolute values. Large matrices are factored as for `solve`."""
    by_factors = has_factors(SLOGDET, x)
    sign, log = apply_op(SLOGDET_BY_FACTORS, x, *lu_factors(x)) if by_factors else apply_op(SLOGDET, x)
    return sign, log


def _pseudo_inverse(x: Array, *, cutoff: float) -> Array:
    result: Array = by_lapack("pinv", np.linalg.pinv, x, rcond=cutoff)
    return result


def _pseudo_inverse_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    x = matrices("pinv", avals[0], square=False)
    return Aval((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


def _pseudo_inverse_vjp(g: Tensor, out: Tensor, x: Tensor, *, cutoff: float) -> Tensor:
    """For a rank that does not change (G. H. Golub, V. Pereyra, SIAM J. Numer. Anal. 10, 1973, equation 4.12)."""
    g = conjugated(g)
    g_t, out_t = adjoint_of(g), adjoint_of(out)
    inside = negative(matmul(matmul(out_t, g), out_t))
    rows = matmul(matmul(g_t, out), out_t)
    columns = matmul(matmul(out_t, out), g_t)
    rows = subtract(rows, matmul(matmul(x, out), rows))
    columns = subtract(columns, matmul(columns, matmul(out, x)))
    return conjugated(add(inside, add(rows, columns)))  # type: ignore[no-any-return]


PSEUDO_INVERSE = define(
    "pseudo_inverse(x, *, cutoff)",
    kind=Kind.OPAQUE,
    eager=_pseudo_inverse,
    abstract=_pseudo_inverse_aval,
    vjp=(_pseudo_inverse_vjp,),
    domain=("invertible",),
    sample_attrs={"cutoff": 1e-15},
    takes_complex=True,
)
