"""Functions that NumPy does not have: eager execution runs vecmath's definitions on arrays."""

from __future__ import annotations

import math

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import on_floats
from jitgrad.ops.arithmetic import multiply, negative, square
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.transcendental import exp

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


ERF = define_elementwise(
    "erf(x)",
    scalar="erf(x)",
    eager=on_floats("erf"),
    vjp=(lambda g, _out, x: multiply(g, multiply(TWO_OVER_SQRT_PI, exp(negative(square(x))))),),
    domain=("real",),
    one_loop=True,
)
ERFC = define_elementwise(
    "erfc(x)",
    scalar="erfc(x)",
    eager=on_floats("erfc"),
    vjp=(lambda g, _out, x: multiply(g, multiply(-TWO_OVER_SQRT_PI, exp(negative(square(x))))),),
    domain=("real",),
    one_loop=True,
)


def erf(x: Operand) -> Tensor:
    """``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``, floating."""
    return apply(ERF, x)


def erfc(x: Operand) -> Tensor:
    """``1 - erf(x)``, accurate where ``erf(x)`` is near 1."""
    return apply(ERFC, x)
