"""Laplace's distribution."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.distributions.distribution import OfLocationAndScale
from jitgrad.ops.arithmetic import abs, sign, square
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.transcendental import expm1, log, log1p


class Laplace(OfLocationAndScale):
    """Exponential on both sides of ``loc``, with the mean distance ``scale``."""

    @property
    def variance(self) -> Tensor:
        return 2.0 * square(self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        with beside(self.loc):
            u = rand(*self.extended(sample_shape), dtype=self.loc.dtype) * 2.0 - 1.0
        return self.icdf_of_sides(u)

    def icdf_of_sides(self, u: Tensor) -> Tensor:
        """What is reached at ``u``, which runs from -1 to 1 and is 0 at ``loc``."""
        return self.loc - self.scale * sign(u) * log1p(-abs(u))

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return -log(2.0 * self.scale) - abs(value - self.loc) / self.scale

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return 1.0 + log(2.0 * self.scale)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        away = (value - self.loc) / self.scale
        return 0.5 - 0.5 * sign(away) * expm1(-abs(away))

    def icdf(self, value: Operand) -> Tensor:
        """What the distribution is at most with probability ``value``."""
        return self.icdf_of_sides(asarray(value) * 2.0 - 1.0)
