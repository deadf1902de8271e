"""The uniform distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, parameters
from jitgrad.ops.arithmetic import clip, square
from jitgrad.ops.comparison import equal, greater, greater_equal, less, logical_and, where
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.transcendental import log


class Uniform(Distribution):
    """Between ``low`` and ``high``."""

    arg_constraints: ClassVar[constraints.Conditions] = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Operand, high: Operand, validate_args: bool | None = None) -> None:
        least, largest = parameters(low, high)
        self.low: Tensor = least
        self.high: Tensor = largest
        super().__init__(least.shape, (), validate_args, {"low": least, "high": largest})
        if self.validates and not constraints.less_than(largest).holds_for(least):
            raise ArgumentError("Uniform: low must be less than high; validate_args=False leaves that out")

    @property
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) * 0.5

    @property
    def variance(self) -> Tensor:
        return square(self.high - self.low) / 12.0

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        with beside(self.low):
            drawn = rand(*self.extended(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        inside = logical_and(greater_equal(value, self.low), greater(self.high, value))
        density = where(inside, -log(self.high - self.low), -math.inf)
        if not self.gives_nan:
            return density
        return where(logical_and(equal(value, value), less(self.low, self.high)), density, math.nan)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return log(self.high - self.low)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return clip((value - self.low) / (self.high - self.low), 0.0, 1.0)
