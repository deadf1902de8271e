"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.distributions.distribution import OfLocationAndScale
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import square
from jitgrad.ops.normal_distribution import ndtr, ndtri
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import randn
from jitgrad.ops.transcendental import log

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class Normal(OfLocationAndScale):
    """Of mean ``loc`` and standard deviation ``scale``."""

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return square(self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        with beside(self.loc):
            noise = randn(*self.extended(sample_shape), dtype=self.loc.dtype)
        return self.loc + noise * self.scale

    def log_prob(self, value: Operand) -> Tensor:
        return _log_density(self.checked(value), self.loc, self.scale)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return log(self.scale) + (0.5 + _HALF_LOG_2PI)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return ndtr((value - self.loc) / self.scale)

    def icdf(self, value: Operand) -> Tensor:
        """What the distribution is at most with probability ``value``."""
        return self.loc + self.scale * ndtri(value)


@composed
def _log_density(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -square((value - loc) / scale) * 0.5 - log(scale) - _HALF_LOG_2PI
