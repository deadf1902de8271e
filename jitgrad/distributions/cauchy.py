"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.distributions.distribution import OfLocationAndScale
from jitgrad.ops.arithmetic import square
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.transcendental import log, log1p
from jitgrad.ops.trigonometric import atan, tan


class Cauchy(OfLocationAndScale):
    """Around ``loc``, with half of its values within ``scale``; it has no mean and no finite variance."""

    @property
    def mean(self) -> Tensor:
        return self.loc * math.nan

    @property
    def variance(self) -> Tensor:
        return self.loc * 0.0 + math.inf

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        with beside(self.loc):
            u = rand(*self.extended(sample_shape), dtype=self.loc.dtype)
        return self.icdf(u)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return -math.log(math.pi) - log(self.scale) - log1p(square((value - self.loc) / self.scale))

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return log(self.scale) + math.log(4.0 * math.pi)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Operand) -> Tensor:
        """What the distribution is at most with probability ``value``."""
        return self.loc + self.scale * tan((asarray(value) - 0.5) * math.pi)
