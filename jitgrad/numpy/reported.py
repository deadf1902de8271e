"""torch.linalg's functions that report singular matrices in place of raising an error."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import floating
from jitgrad.numpy.factors import first_zero
from jitgrad.numpy.systems import cholesky, inv, solve
from jitgrad.ops.comparison import greater, where
from jitgrad.ops.creation import eye
from jitgrad.ops.decompositions import FAILING_MINOR
from jitgrad.ops.linalg import adjoint_of
from jitgrad.ops.lu import lu
from jitgrad.ops.movement import expand_dims
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside


class InvExResult(NamedTuple):
    """Inverses, NaN where a matrix has none, and the number of the first zero on the diagonal of U, 0 if there is none."""

    inverse: Tensor
    info: Tensor


class CholeskyExResult(NamedTuple):
    """Factors, NaN where a matrix has none, and the order of its first minor that is not positive definite, or 0."""

    L: Tensor
    info: Tensor


class SolveExResult(NamedTuple):
    """Solutions, NaN where a matrix is singular, and the number of the first zero on the diagonal of U, or 0."""

    result: Tensor
    info: Tensor



def _regular(x: Tensor, info: Tensor) -> Tensor:
    """``x`` with the unit matrix in place of those that ``info`` reports."""
    with beside(x):
        ones = eye(x.shape[-1], dtype=x.dtype)
    return where(greater(expand_dims(info, (-2, -1)), 0), ones, x)


def _nan_where_reported(x: Tensor, info: Tensor) -> Tensor:
    return where(greater(expand_dims(info, (-2, -1)), 0), math.nan, x)


def inv_ex(A: Any, *, check_errors: bool = False) -> InvExResult:
    """The inverse, and which matrices have none; with ``check_errors`` these are a LinAlgError."""
    x = floating(A)
    info = first_zero(lu(x, regular=check_errors)[0])
    return InvExResult(_nan_where_reported(inv(_regular(x, info)), info), info)


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> CholeskyExResult:
    """The Cholesky factor, and which matrices have none; with ``check_errors`` these are a LinAlgError."""
    x = floating(A)
    info = apply(FAILING_MINOR, adjoint_of(x) if upper else x)
    factor = cholesky(x if check_errors else _regular(x, info), upper=upper)
    return CholeskyExResult(_nan_where_reported(factor, info), info)


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> SolveExResult:
    """The solution as of `linalg.solve`, and which matrices are singular; with ``check_errors`` these are a LinAlgError."""
    x, right = floating(A), floating(B)
    info = first_zero(lu(x, regular=check_errors)[0])
    solution = solve(_regular(x, info), right, left=left)
    shown = expand_dims(info, (-1,) if right.ndim == 1 else (-2, -1))
    return SolveExResult(where(greater(shown, 0), math.nan, solution), info)
