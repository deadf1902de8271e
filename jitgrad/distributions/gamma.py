"""The gamma distribution, its inverse, and chi-squared."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops.arithmetic import maximum, reciprocal, square
from jitgrad.ops.comparison import greater, where
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


class InverseGamma(Distribution):
    """Of the inverse of a variable of the distribution `Gamma` with these parameters."""

    arg_constraints: ClassVar[constraints.Conditions] = Gamma.arg_constraints
    has_rsample = True

    def __init__(self, concentration: Operand, rate: Operand, validate_args: bool | None = None) -> None:
        self.base: Gamma = Gamma(concentration, rate, validate_args=False)
        self.concentration: Tensor = self.base.concentration
        self.rate: Tensor = self.base.rate
        given = {"concentration": self.concentration, "rate": self.rate}
        super().__init__(self.base.batch_shape, (), validate_args, given)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.positive

    @property
    def mean(self) -> Tensor:
        finite = greater(self.concentration, 1.0)
        return where(finite, self.rate / where(finite, self.concentration - 1.0, 1.0), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1.0)

    @property
    def variance(self) -> Tensor:
        a, finite = self.concentration, greater(self.concentration, 2.0)
        return where(finite, square(self.rate) / where(finite, square(a - 1.0) * (a - 2.0), 1.0), math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples, whose gradients have no gradients of their own."""
        return reciprocal(self.base.rsample(sample_shape))

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return self.base.log_prob(reciprocal(value)) - 2.0 * log(value)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        a = self.concentration
        return a + log(self.rate) + gammaln(a) - (1.0 + a) * digamma(a)


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
