"""The exponential of square matrices, by scaling and squaring of a Padé approximant.

N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26
(2005). Its derivative is a block of the exponential of a matrix of twice the size (R. Mathias, "A chain rule for matrix
functions", SIAM J. Matrix Anal. Appl. 17, 1996).
"""

from __future__ import annotations

import numpy as np

from jitgrad.core.aval import Array
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import zeros_like
from jitgrad.ops.joining import concat
from jitgrad.ops.lapack import by_lapack, square_aval
from jitgrad.ops.linalg import matrix_transpose_of
from jitgrad.ops.operand import Operand, apply

# Coefficients of the [13/13] Padé approximant, and the norm up to which it is exact in float64: Higham, section 2.
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
    670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_LARGEST_NORM = 5.371920351148152
_MOST_SQUARINGS = 1100  # more than float64's exponents need


def _approximant(a: Array) -> Array:
    """exp of matrices whose norms are at most `_LARGEST_NORM`."""
    b, one = _PADE, np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a2 @ a4
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    result: Array = by_lapack("matrix_exp", np.linalg.solve, even - odd, even + odd)
    return result


def _exponential(x: Array) -> Array:
    """exp of each matrix of ``x``: all NaN where an element is not finite."""
    wide = x.astype(np.result_type(x.dtype, np.float64))
    if not x.size:
        return np.array(x)
    norms = np.abs(wide).sum(axis=-2).max(axis=-1)
    finite = np.isfinite(norms)
    wide = np.where(finite[..., None, None], wide, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        squarings = np.ceil(np.log2(np.where(finite, norms, 0.0) / _LARGEST_NORM)).clip(0, _MOST_SQUARINGS).astype(int)
        result = _approximant(np.ldexp(1.0, -squarings)[..., None, None] * wide)
        for k in range(squarings.max(initial=0)):
            result = np.where((squarings > k)[..., None, None], result @ result, result)
        result[~finite] = np.nan
        return result.astype(x.dtype)


def _exponential_vjp(g: Tensor, _out: Tensor, x: Tensor) -> Tensor:
    transposed, n = matrix_transpose_of(x), x.shape[-1]
    upper = concat([transposed, g], axis=-1)
    lower = concat([zeros_like(transposed), transposed], axis=-1)
    return apply(MATRIX_EXP, concat([upper, lower], axis=-2))[..., :n, n:]


MATRIX_EXP = define(
    "matrix_exp(x)",
    kind=Kind.OPAQUE,
    eager=_exponential,
    abstract=square_aval("matrix_exp"),
    vjp=(_exponential_vjp,),
    domain=("invertible",),
    takes_complex=True,
)


def matrix_exp(A: Operand) -> Tensor:
    """exp(A) = 1 + A + A @ A / 2 + ... of square matrices, real or complex, in the last two axes.

    Computed in float64. A matrix with an element that is not finite gives NaN.

    Raises:
        ShapeError: the last two axes are not those of square matrices.
        DtypeError: the dtype is none of float32, float64 and their complex ones.
    """
    return apply(MATRIX_EXP, A)


