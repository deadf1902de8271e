"""Gumbel's distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.distributions.distribution import OfLocationAndScale
from jitgrad.ops.arithmetic import maximum, square
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.transcendental import exp, log


class Gumbel(OfLocationAndScale):
    """Of the largest of many values, around its mode ``loc``."""

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * float(np.euler_gamma)

    @property
    def variance(self) -> Tensor:
        return square(self.scale) * (math.pi**2 / 6.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        with beside(self.loc):
            u = rand(*self.extended(sample_shape), dtype=self.loc.dtype)
        return self.icdf(maximum(u, float(np.finfo(self.loc.dtype).tiny)))  # 0 would be minus infinity

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        away = (value - self.loc) / self.scale
        return -away - exp(-away) - log(self.scale)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return log(self.scale) + (1.0 + float(np.euler_gamma))

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return exp(-exp((self.loc - value) / self.scale))

    def icdf(self, value: Operand) -> Tensor:
        """What the distribution is at most with probability ``value``."""
        return self.loc - self.scale * log(-log(asarray(value)))
