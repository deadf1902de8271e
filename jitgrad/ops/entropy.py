"""Products with logarithms, which are 0 where the factor is, and other functions of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import Array
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import blockwise, on_floats
from jitgrad.ops.arithmetic import add, clip, divide, multiply, subtract
from jitgrad.ops.comparison import equal, except_where, less, logical_and, where
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.transcendental import exp, log, log1p

# NumPy's own round differently for other strides
_log, _log1p, _expm1 = on_floats("log"), on_floats("log1p"), on_floats("expm1")


def _both_zero(x: Any, y: Any, zero: float) -> Tensor:
    return logical_and(equal(x, 0.0), equal(y, zero))


@blockwise
def _xlogy(x: Array, y: Array) -> Any:
    with np.errstate(all="ignore"):
        return np.where((x == 0) & (y == y), x.dtype.type(0), x * _log(y))  # noqa: PLR0124


@blockwise
def _xlog1py(x: Array, y: Array) -> Any:
    with np.errstate(all="ignore"):
        return np.where((x == 0) & (y == y), x.dtype.type(0), x * _log1p(y))  # noqa: PLR0124


# Where x is 0, the gradient of x has the logarithm of 1 instead of 0, and that of y no 0 / 0.
XLOGY = define_elementwise(
    "xlogy(x, y)",
    scalar="0.0 if x == 0.0 and y == y else x * log(y)",
    eager=_xlogy,
    vjp=(
        lambda g, _out, x, y: multiply(g, log(where(_both_zero(x, y, 0.0), 1.0, y))),
        lambda g, _out, x, y: except_where(equal(x, 0.0), multiply(g, divide(x, y))),
    ),
    domain=("nonzero", "positive"),
    one_loop=True,
)
XLOG1PY = define_elementwise(
    "xlog1py(x, y)",
    scalar="0.0 if x == 0.0 and y == y else x * log1p(y)",
    eager=_xlog1py,
    vjp=(
        lambda g, _out, x, y: multiply(g, log1p(where(_both_zero(x, y, -1.0), 0.0, y))),
        lambda g, _out, x, y: except_where(equal(x, 0.0), multiply(g, divide(x, add(1.0, y)))),
    ),
    domain=("nonzero", "positive"),
    one_loop=True,
)


def xlogy(x: Operand, y: Operand) -> Tensor:
    """``x * log(y)``; 0 where ``x`` is 0, with finite gradients."""
    return apply(XLOGY, x, y)


def xlog1py(x: Operand, y: Operand) -> Tensor:
    """``x * log1p(y)``; 0 where ``x`` is 0, with finite gradients."""
    return apply(XLOG1PY, x, y)


def _log_of_odds(x: Array) -> Any:
    """Near 1/2, where the logarithm is near 0, from the exact difference to 1/2."""
    near = (x > 0.25) & (x < 0.75)
    with np.errstate(all="ignore"):
        return np.where(near, _log1p((x + x - 1) / (1 - x)), _log(x / (1 - x)))


LOGIT = define_elementwise(
    "logit(x)",
    scalar="log1p((x + x - 1.0) / (1.0 - x)) if x > 0.25 and x < 0.75 else log(x / (1.0 - x))",
    eager=blockwise(_log_of_odds),
    vjp=(lambda g, _out, x: divide(g, multiply(x, subtract(1.0, x))),),
    domain=("probability",),
    one_loop=True,
)


def logit(x: Operand, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, the inverse of the logistic function; NaN outside of 0 to 1, or cut to [eps, 1 - eps] before."""
    return apply(LOGIT, x if eps is None else clip(x, eps, 1.0 - eps))


_SERIES_BOUND = 0.5
# (k + 1) / (k + 2)!: the power series of the derivative of (exp(x) - 1) / x
_SLOPE_SERIES = (
    0.5, 0.3333333333333333, 0.125, 0.03333333333333333, 0.006944444444444444, 0.0011904761904761906,
    0.00017361111111111112, 2.2045855379188714e-05, 2.48015873015873e-06, 2.505210838544172e-07,
    2.2964432686654909e-08, 1.9270852604185938e-09, 1.491196927704864e-10,
)  # fmt: skip


@blockwise
def _exprel(x: Array) -> Any:
    with np.errstate(all="ignore"):
        return np.where(x == 0, x.dtype.type(1), np.where(x < x.dtype.type(np.inf), _expm1(x) / x, x))


def _exprel_gradient(g: Tensor, out: Any, x: Any) -> Tensor:
    """``(exp(x) - out) / x``; near 0, where that cancels, its power series."""
    near = logical_and(less(x, _SERIES_BOUND), less(-_SERIES_BOUND, x))
    small = where(near, x, 0.0)
    total = multiply(small, 0.0)
    for term in reversed(_SLOPE_SERIES):
        total = add(multiply(total, small), term)
    far = divide(subtract(exp(x), out), where(near, 1.0, x))
    return multiply(g, where(near, total, far))


EXPREL = define_elementwise(
    "exprel(x)",
    scalar="1.0 if x == 0.0 else (expm1(x) / x if x - x == 0.0 or x < 0.0 else x)",
    eager=_exprel,
    vjp=(_exprel_gradient,),
    domain=("real",),
    one_loop=True,
)


def exprel(x: Operand) -> Tensor:
    """``(exp(x) - 1) / x``, accurate near 0 and 1 at 0."""
    return apply(EXPREL, x)
