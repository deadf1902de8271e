"""The error functions beyond erf and erfc, and the standard normal distribution."""

from __future__ import annotations

import math

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import on_floats
from jitgrad.ops.arithmetic import divide, multiply, negative, square, subtract
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.special import TWO_OVER_SQRT_PI
from jitgrad.ops.transcendental import exp

_HALF_SQRT_PI = 0.5 * math.sqrt(math.pi)
_SQRT_TWO_PI = math.sqrt(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)

ERFINV = define_elementwise(
    "erfinv(x)",
    scalar="erfinv(x)",
    eager=on_floats("erfinv"),
    vjp=(lambda g, out, _x: multiply(g, multiply(_HALF_SQRT_PI, exp(square(out)))),),
    domain=("within_one",),
    one_loop=True,
)
ERFCINV = define_elementwise(
    "erfcinv(x)",
    scalar="erfcinv(x)",
    eager=on_floats("erfcinv"),
    vjp=(lambda g, out, _x: multiply(g, multiply(-_HALF_SQRT_PI, exp(square(out)))),),
    domain=("probability",),
    one_loop=True,
)
ERFCX = define_elementwise(
    "erfcx(x)",
    scalar="erfcx(x)",
    eager=on_floats("erfcx"),
    vjp=(lambda g, out, x: multiply(g, subtract(multiply(multiply(2.0, x), out), TWO_OVER_SQRT_PI)),),
    domain=("within_one",),
    one_loop=True,
)
NDTR = define_elementwise(
    "ndtr(x)",
    scalar="ndtr(x)",
    eager=on_floats("ndtr"),
    vjp=(lambda g, _out, x: multiply(g, multiply(1.0 / _SQRT_TWO_PI, exp(multiply(-0.5, square(x))))),),
    domain=("real",),
    one_loop=True,
)
NDTRI = define_elementwise(
    "ndtri(x)",
    scalar="ndtri(x)",
    eager=on_floats("ndtri"),
    vjp=(lambda g, out, _x: multiply(g, multiply(_SQRT_TWO_PI, exp(multiply(0.5, square(out))))),),
    domain=("probability",),
    one_loop=True,
)
LOG_NDTR = define_elementwise(
    "log_ndtr(x)",
    scalar="log_ndtr(x)",
    eager=on_floats("log_ndtr"),
    # density over distribution function, which are both 0 far to the left
    vjp=(lambda g, _out, x: multiply(g, divide(_SQRT_TWO_OVER_PI, erfcx(multiply(negative(x), _SQRT_HALF)))),),
    domain=("real",),
    one_loop=True,
)


def erfinv(x: Operand) -> Tensor:
    """The inverse of `erf`; infinite at -1 and 1, NaN beyond."""
    return apply(ERFINV, x)


def erfcinv(x: Operand) -> Tensor:
    """The inverse of `erfc`, accurate for small ``x``; NaN outside of 0 to 2."""
    return apply(ERFCINV, x)


def erfcx(x: Operand) -> Tensor:
    """``exp(x**2) * erfc(x)`` without underflow."""
    return apply(ERFCX, x)


def ndtr(x: Operand) -> Tensor:
    """The distribution function of the standard normal distribution."""
    return apply(NDTR, x)


def ndtri(x: Operand) -> Tensor:
    """The quantile of the standard normal distribution; NaN outside of 0 to 1."""
    return apply(NDTRI, x)


def log_ndtr(x: Operand) -> Tensor:
    """``log(ndtr(x))`` without underflow."""
    return apply(LOG_NDTR, x)
