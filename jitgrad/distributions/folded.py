"""Distributions of absolute values: half of a symmetric one around 0."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.cauchy import Cauchy
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.distributions.normal import Normal
from jitgrad.ops.arithmetic import abs, square
from jitgrad.ops.comparison import greater_equal, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand


class _Folded(Distribution):
    """The absolute value of a variable around 0 that ``symmetric(0, scale)`` describes."""

    arg_constraints: ClassVar[constraints.Conditions] = {"scale": constraints.positive}
    has_rsample = True
    symmetric: ClassVar[type[Normal] | type[Cauchy]]

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        (width,) = floating(scale)
        self.base_dist: Normal | Cauchy = self.symmetric(width * 0.0, width, validate_args=False)
        super().__init__(width.shape, (), validate_args, {"scale": width})

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def support(self) -> constraints.Constraint:
        return constraints.nonnegative

    @property
    def mode(self) -> Tensor:
        return self.scale * 0.0

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return abs(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return where(greater_equal(value, 0.0), self.base_dist.log_prob(value) + math.log(2.0), -math.inf)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return self.base_dist.entropy() - math.log(2.0)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return 2.0 * self.base_dist.cdf(asarray(value)) - 1.0

    def icdf(self, value: Operand) -> Tensor:
        """What the distribution is at most with probability ``value``."""
        return self.base_dist.icdf((asarray(value) + 1.0) / 2.0)


class HalfNormal(_Folded):
    """The absolute value of a normal variable of mean 0 and standard deviation ``scale``."""

    symmetric: ClassVar[type[Normal] | type[Cauchy]] = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2.0 / math.pi)

    @property
    def variance(self) -> Tensor:
        return square(self.scale) * (1.0 - 2.0 / math.pi)


class HalfCauchy(_Folded):
    """The absolute value of Cauchy's variable around 0; its mean and its variance are infinite."""

    symmetric: ClassVar[type[Normal] | type[Cauchy]] = Cauchy

    @property
    def mean(self) -> Tensor:
        return self.scale * 0.0 + math.inf

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
