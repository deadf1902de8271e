"""The exponential distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops.arithmetic import negative, square
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.transcendental import expm1, log, log1p


class Exponential(Distribution):
    """Times between events that happen at ``rate``."""

    arg_constraints: ClassVar[constraints.Conditions] = {"rate": constraints.positive}
    has_rsample = True

    def __init__(self, rate: Operand, validate_args: bool | None = None) -> None:
        (frequency,) = floating(rate)
        self.rate: Tensor = frequency
        super().__init__(frequency.shape, (), validate_args, {"rate": frequency})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.nonnegative

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate * 0.0

    @property
    def variance(self) -> Tensor:
        return 1.0 / square(self.rate)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        with beside(self.rate):
            u = rand(*self.extended(sample_shape), dtype=self.rate.dtype)
        return self.icdf(u)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return log(self.rate) - self.rate * value

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return 1.0 - log(self.rate)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return -expm1(-self.rate * value)

    def icdf(self, value: Operand) -> Tensor:
        """What the distribution is at most with probability ``value``."""
        return -log1p(negative(value)) / self.rate
