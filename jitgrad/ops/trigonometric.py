"""Trigonometric and hyperbolic functions, their inverses, hypot and atan2."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import like_ufunc
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import on_floats
from jitgrad.ops.arithmetic import add, divide, multiply, negative, sqrt, square, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.operand import Operand, apply

# --- circle ------------------------------------------------------------------------------------------------------

SIN = define_elementwise(
    "sin(x)", scalar="sin(x)", eager=np.sin, vjp=(lambda g, _out, x: multiply(g, cos(x)),), domain=("real",), takes_complex=True
)
COS = define_elementwise(
    "cos(x)",
    scalar="cos(x)",
    eager=np.cos,
    vjp=(lambda g, _out, x: negative(multiply(g, sin(x))),),
    domain=("real",),
    takes_complex=True,
)
TAN = define_elementwise(
    "tan(x)",
    scalar="tan(x)",
    eager=on_floats("tan", np.tan),
    vjp=(lambda g, out, _x: multiply(g, add(1.0, square(out))),),
    domain=("within_one",),
    one_loop=True,
    takes_complex=True,
)


def _one_minus_square(x: Any) -> Tensor:
    """``1 - x**2`` without cancellation near 1."""
    return multiply(subtract(1.0, x), add(1.0, x))


ASIN = define_elementwise(
    "asin(x)",
    scalar="asin(x)",
    eager=on_floats("asin", np.arcsin),
    vjp=(lambda g, _out, x: divide(g, sqrt(_one_minus_square(x))),),
    domain=("within_one",),
    one_loop=True,
    takes_complex=True,
)
ACOS = define_elementwise(
    "acos(x)",
    scalar="acos(x)",
    eager=on_floats("acos", np.arccos),
    vjp=(lambda g, _out, x: negative(divide(g, sqrt(_one_minus_square(x)))),),
    domain=("within_one",),
    one_loop=True,
    takes_complex=True,
)
ATAN = define_elementwise(
    "atan(x)",
    scalar="atan(x)",
    eager=on_floats("atan", np.arctan),
    vjp=(lambda g, _out, x: divide(g, add(1.0, square(x))),),
    domain=("real",),
    one_loop=True,
    takes_complex=True,
)


def sin(x: Operand) -> Tensor:
    """The sine of an angle in radians, floating."""
    return apply(SIN, x)


def cos(x: Operand) -> Tensor:
    """The cosine of an angle in radians, floating."""
    return apply(COS, x)


def tan(x: Operand) -> Tensor:
    """The tangent of an angle in radians, floating."""
    return apply(TAN, x)


def asin(x: Operand) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is ``x``; NaN outside [-1, 1]."""
    return apply(ASIN, x)


def acos(x: Operand) -> Tensor:
    """The angle in [0, pi] whose cosine is ``x``; NaN outside [-1, 1]."""
    return apply(ACOS, x)


def atan(x: Operand) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is ``x``."""
    return apply(ATAN, x)


# --- hyperbola ---------------------------------------------------------------------------------------------------

SINH = define_elementwise(
    "sinh(x)",
    scalar="sinh(x)",
    eager=on_floats("sinh", np.sinh),
    vjp=(lambda g, _out, x: multiply(g, cosh(x)),),
    domain=("real",),
    one_loop=True,
    takes_complex=True,
)
COSH = define_elementwise(
    "cosh(x)",
    scalar="cosh(x)",
    eager=on_floats("cosh", np.cosh),
    vjp=(lambda g, _out, x: multiply(g, sinh(x)),),
    domain=("real",),
    one_loop=True,
    takes_complex=True,
)
TANH = define_elementwise(
    "tanh(x)",
    scalar="tanh(x)",
    eager=np.tanh,
    vjp=(lambda g, out, _x: multiply(g, subtract(1.0, multiply(out, out))),),
    domain=("real",),
    takes_complex=True,
)
def _root_of_one_plus_square(x: Any) -> Tensor:
    """``sqrt(1 + x**2)``, which would overflow for a large real ``x``."""
    return sqrt(add(square(x), 1.0)) if x.dtype.kind == "c" else hypot(x, 1.0)


ASINH = define_elementwise(
    "asinh(x)",
    scalar="asinh(x)",
    eager=on_floats("asinh", np.arcsinh),
    vjp=(lambda g, _out, x: divide(g, _root_of_one_plus_square(x)),),
    domain=("real",),
    one_loop=True,
    takes_complex=True,
)
ACOSH = define_elementwise(
    "acosh(x)",
    scalar="acosh(x)",
    eager=on_floats("acosh", np.arccosh),
    vjp=(lambda g, _out, x: divide(g, multiply(sqrt(subtract(x, 1.0)), sqrt(add(x, 1.0)))),),
    domain=("above_one",),
    one_loop=True,
    takes_complex=True,
)
ATANH = define_elementwise(
    "atanh(x)",
    scalar="atanh(x)",
    eager=on_floats("atanh", np.arctanh),
    vjp=(lambda g, _out, x: divide(g, _one_minus_square(x)),),
    domain=("within_one",),
    one_loop=True,
    takes_complex=True,
)


def sinh(x: Operand) -> Tensor:
    """The hyperbolic sine, floating."""
    return apply(SINH, x)


def cosh(x: Operand) -> Tensor:
    """The hyperbolic cosine, floating."""
    return apply(COSH, x)


def tanh(x: Operand) -> Tensor:
    """The hyperbolic tangent, floating."""
    return apply(TANH, x)


def asinh(x: Operand) -> Tensor:
    """The inverse of ``sinh``."""
    return apply(ASINH, x)


def acosh(x: Operand) -> Tensor:
    """The inverse of ``cosh``; NaN below 1."""
    return apply(ACOSH, x)


def atanh(x: Operand) -> Tensor:
    """The inverse of ``tanh``; infinite at -1 and 1, NaN beyond."""
    return apply(ATANH, x)


# --- triangles ---------------------------------------------------------------------------------------------------


def _over_length(x: Any, length: Any) -> Tensor:
    """``x / length``, and 0 at the origin, where neither function has a derivative."""
    return divide(x, where(equal(length, 0.0), 1.0, length))


def _angle_gradient(g: Tensor, side: Any, x: Any, y: Any) -> Tensor:
    """``g * side / (x**2 + y**2)``, divided twice by the length so that no square overflows."""
    length = hypot(x, y)
    return multiply(g, _over_length(_over_length(side, length), length))


HYPOT = define_elementwise(
    "hypot(x, y)",
    scalar="hypot(x, y)",
    eager=np.hypot,
    dtypes=like_ufunc(np.hypot),
    vjp=(
        lambda g, out, x, _y: multiply(g, _over_length(x, out)),
        lambda g, out, _x, y: multiply(g, _over_length(y, out)),
    ),
    domain=("nonzero", "nonzero"),
)
ATAN2 = define_elementwise(
    "atan2(x, y)",
    scalar="atan2(x, y)",
    eager=on_floats("atan2"),
    dtypes=like_ufunc(np.arctan2),
    vjp=(
        lambda g, _out, x, y: _angle_gradient(g, y, x, y),
        lambda g, _out, x, y: negative(_angle_gradient(g, x, x, y)),
    ),
    domain=("nonzero", "nonzero"),
    one_loop=True,
)


def hypot(x: Operand, y: Operand) -> Tensor:
    """``sqrt(x**2 + y**2)`` without overflow; its gradient at the origin is 0."""
    return apply(HYPOT, x, y)


def atan2(x: Operand, y: Operand) -> Tensor:
    """The angle in [-pi, pi] of the point with abscissa ``y`` and ordinate ``x``; gradient 0 at 0."""
    return apply(ATAN2, x, y)


arcsin = asin
arccos = acos
arctan = atan
arcsinh = asinh
arccosh = acosh
arctanh = atanh
arctan2 = atan2
