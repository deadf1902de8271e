"""Functions that NumPy does not have: eager execution runs vecmath's definitions on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import blockwise
from jitgrad.ops.arithmetic import multiply, negative, square
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.transcendental import exp
from jitgrad.vecmath import numpy_namespace

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


def on_floats(name: str) -> Callable[..., Any]:
    """The NumPy meaning of the kernel function ``name``, on float32 or float64."""
    return blockwise(numpy_namespace()[name])


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
