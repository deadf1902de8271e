"""Initial values of parameters, drawn from the default generator."""

from __future__ import annotations

from math import sqrt
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Parameter
from jitgrad.ops.random import randn, uniform


def uniform_parameter(shape: Any, fan_in: int, dtype: Any) -> Tensor:
    """Uniform in +-1 / sqrt(fan_in).

    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015, with torch's slope
    sqrt(5): sqrt(6 / ((1 + 5) fan_in)).
    """
    bound = 1.0 / sqrt(fan_in) if fan_in > 0 else 0.0
    return Parameter(uniform(-bound, bound, shape, dtype=dtype))


def normal_parameter(shape: Any, dtype: Any) -> Tensor:
    """Normal with mean 0 and standard deviation 1."""
    return Parameter(randn(shape, dtype=dtype))
