"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, parameters
from jitgrad.ops.arithmetic import square
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.transcendental import log, log1p
from jitgrad.ops.trigonometric import atan, tan


class Cauchy(Distribution):
    """Around ``loc``, with half of its values within ``scale``; it has no mean and no finite variance."""

    arg_constraints: ClassVar[constraints.Conditions] = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        centre, width = parameters(loc, scale)
        self.loc: Tensor = centre
        self.scale: Tensor = width
        super().__init__(centre.shape, (), validate_args, {"loc": centre, "scale": width})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.real

    @property
    def mean(self) -> Tensor:
        return self.loc * math.nan

    @property
    def mode(self) -> Tensor:
        return self.loc

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
