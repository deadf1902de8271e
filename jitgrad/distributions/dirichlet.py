"""Dirichlet's distribution, of probabilities that sum to 1."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops.draws import standard_gamma
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import digamma, gammaln
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import sum


class Dirichlet(Distribution):
    """Of ``concentration`` [..., K], over vectors of K probabilities."""

    arg_constraints: ClassVar[constraints.Conditions] = {"concentration": constraints.independent(constraints.positive, 1)}
    has_rsample = True

    def __init__(self, concentration: Operand, validate_args: bool | None = None) -> None:
        (weights,) = floating(concentration)
        if not weights.ndim:
            raise ShapeError("Dirichlet: concentration must have an axis of probabilities, got a number")
        self.concentration: Tensor = weights
        super().__init__(weights.shape[:-1], weights.shape[-1:], validate_args, {"concentration": weights})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.simplex

    @property
    def mean(self) -> Tensor:
        return self.concentration / sum(self.concentration, -1, keepdims=True)

    @property
    def variance(self) -> Tensor:
        total = sum(self.concentration, -1, keepdims=True)
        return self.mean * (1.0 - self.mean) / (total + 1.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples, whose gradients have no gradients of their own."""
        wide = broadcast_to(self.concentration, self.extended(sample_shape)).astype(np.float64)
        drawn = standard_gamma(wide)  # in float64: of small concentrations float32 would round all to 0
        return (drawn / sum(drawn, -1, keepdims=True)).astype(self.concentration.dtype)  # type: ignore[no-any-return]

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        a = self.concentration
        return sum(xlogy(a - 1.0, value), -1) + gammaln(sum(a, -1)) - sum(gammaln(a), -1)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        a = self.concentration
        total, count = sum(a, -1), a.shape[-1]
        spread = sum(gammaln(a), -1) - gammaln(total)
        return spread - (count - total) * digamma(total) - sum((a - 1.0) * digamma(a), -1)
