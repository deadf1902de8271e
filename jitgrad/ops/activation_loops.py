"""Activations written in ops that have the bits of their eager functions: what their loops of machine code compute."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import abs, add, divide, maximum, multiply, negative
from jitgrad.ops.comparison import greater, where
from jitgrad.ops.transcendental import SIGMOID, exp, expm1, log1p
from jitgrad.ops.trigonometric import tanh

TWICE_SQRT_TWO_OVER_PI = 1.5957691216057308

_sigmoid: Any = SIGMOID.one_loop


def elu_in_ops(x: Tensor, alpha: Tensor) -> Tensor:
    """``x`` where it is positive, else ``alpha * (e**x - 1)``."""
    return where(greater(x, 0), x, multiply(alpha, expm1(x)))


def celu_in_ops(x: Tensor, alpha: Tensor) -> Tensor:
    """``elu`` with the slope 1 at 0."""
    return where(greater(x, 0), x, multiply(alpha, expm1(divide(x, alpha))))


def selu_in_ops(x: Tensor) -> Tensor:
    """The self-normalising ``elu``."""
    return where(greater(x, 0), multiply(1.0507009873554805, x), multiply(1.7580993408473768, expm1(x)))


def _softplus(x: Tensor) -> Tensor:
    return add(maximum(x, 0.0), log1p(exp(negative(abs(x)))))


def softplus_in_ops(x: Tensor, beta: Tensor, threshold: Tensor) -> Tensor:
    """Linear where ``beta * x > threshold``."""
    z = multiply(x, beta)
    return where(greater(z, threshold), x, divide(_softplus(z), beta))


def logsigmoid_in_ops(x: Tensor) -> Tensor:
    """``log(sigmoid(x))``."""
    return negative(_softplus(negative(x)))


def silu_in_ops(x: Tensor) -> Tensor:
    """``x * sigmoid(x)``."""
    return multiply(x, _sigmoid(x))


def mish_in_ops(x: Tensor) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return multiply(x, tanh(_softplus(x)))


def gelu_tanh_in_ops(x: Tensor) -> Tensor:
    """``gelu`` with its approximation."""
    cube = multiply(multiply(multiply(0.044715, x), x), x)
    return multiply(x, _sigmoid(multiply(TWICE_SQRT_TWO_OVER_PI, add(x, cube))))
