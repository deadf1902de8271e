"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops.arithmetic import sqrt, square
from jitgrad.ops.comparison import greater, where
from jitgrad.ops.draws import standard_gamma
from jitgrad.ops.gamma import digamma, gammaln
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import randn
from jitgrad.ops.transcendental import log, log1p


class StudentT(Distribution):
    """Of ``df`` degrees of freedom, around ``loc`` and stretched by ``scale``."""

    arg_constraints: ClassVar[constraints.Conditions] = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive
    }  # fmt: skip
    has_rsample = True

    def __init__(self, df: Operand, loc: Operand = 0.0, scale: Operand = 1.0, validate_args: bool | None = None) -> None:
        degrees, centre, width = floating(df, loc, scale)
        self.df: Tensor = degrees
        self.loc: Tensor = centre
        self.scale: Tensor = width
        super().__init__(degrees.shape, (), validate_args, {"df": degrees, "loc": centre, "scale": width})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.real

    @property
    def mean(self) -> Tensor:
        return where(greater(self.df, 1.0), self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite from ``df`` 1 to 2, and NaN up to 1."""
        finite = greater(self.df, 2.0)
        known = square(self.scale) * self.df / (where(finite, self.df, 3.0) - 2.0)
        return where(finite, known, where(greater(self.df, 1.0), math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples, whose gradients by ``df`` have no gradients of their own."""
        shape = self.extended(sample_shape)
        with beside(self.loc):
            noise = randn(*shape, dtype=self.df.dtype)
        half = 0.5 * self.df
        return self.loc + self.scale * noise * sqrt(half / standard_gamma(broadcast_to(half, shape)))

    def _log_scale(self) -> Tensor:
        """The logarithm of one over the density at ``loc``."""
        half = 0.5 * self.df
        return log(self.scale) + 0.5 * log(self.df) + 0.5 * math.log(math.pi) + gammaln(half) - gammaln(half + 0.5)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        away = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * log1p(square(away) / self.df) - self._log_scale()

    def entropy(self) -> Tensor:
        """The differential entropy."""
        half = 0.5 * self.df
        return self._log_scale() + (half + 0.5) * (digamma(half + 0.5) - digamma(half))
