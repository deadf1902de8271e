"""The gamma distribution, and chi-squared."""

from __future__ import annotations

from typing import Any, ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops.arithmetic import maximum, square
from jitgrad.ops.draws import standard_gamma
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import digamma, gammainc, gammaln
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.transcendental import log


class Gamma(Distribution):
    """Of the shape ``concentration`` and the inverse scale ``rate``."""

    arg_constraints: ClassVar[constraints.Conditions] = {"concentration": constraints.positive, "rate": constraints.positive}
    has_rsample = True

    def __init__(self, concentration: Operand, rate: Operand, validate_args: bool | None = None) -> None:
        shape, frequency = floating(concentration, rate)
        self.concentration: Tensor = shape
        self.rate: Tensor = frequency
        super().__init__(shape.shape, (), validate_args, {"concentration": shape, "rate": frequency})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.nonnegative

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return maximum(self.concentration - 1.0, 0.0) / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / square(self.rate)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples, whose gradients have no gradients of their own."""
        return standard_gamma(broadcast_to(self.concentration, self.extended(sample_shape))) / self.rate

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        a, b = self.concentration, self.rate
        return xlogy(a, b) + xlogy(a - 1.0, value) - b * value - gammaln(a)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        a = self.concentration
        return a - log(self.rate) + gammaln(a) + (1.0 - a) * digamma(a)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return gammainc(self.concentration, self.rate * value)


class Chi2(Gamma):
    """The sum of the squares of ``df`` standard normal numbers."""

    arg_constraints: ClassVar[constraints.Conditions] = {"df": constraints.positive}

    def __init__(self, df: Operand, validate_args: bool | None = None) -> None:
        (degrees,) = floating(df)
        super().__init__(0.5 * degrees, 0.5, False)
        Distribution.__init__(self, degrees.shape, (), validate_args, {"df": degrees})

    @property
    def df(self) -> Tensor:
        return self.concentration * 2.0
