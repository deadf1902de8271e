"""Distributions of powers of uniform and exponential variables: Pareto, Weibull and Kumaraswamy."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops.arithmetic import maximum, square, subtract
from jitgrad.ops.comparison import greater, less, logical_or, where
from jitgrad.ops.entropy import xlog1py, xlogy
from jitgrad.ops.gamma import digamma, gammaln
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.transcendental import exp, expm1, log, log1p

_EULER = float(np.euler_gamma)


class _OfTwo(Distribution):
    """A distribution by two positive parameters, sampled by a function of a uniform number."""

    has_rsample = True

    def _uniform(self, sample_shape: Any, like: Tensor) -> Tensor:
        """Numbers in (0, 1)."""
        with beside(like):
            u = rand(*self.extended(sample_shape), dtype=like.dtype)
        return maximum(u, float(np.finfo(like.dtype).tiny))


class Pareto(_OfTwo):
    """Of values above ``scale``, whose density falls with the power ``alpha + 1``."""

    arg_constraints: ClassVar[constraints.Conditions] = {"scale": constraints.positive, "alpha": constraints.positive}

    def __init__(self, scale: Operand, alpha: Operand, validate_args: bool | None = None) -> None:
        self.scale: Tensor
        self.alpha: Tensor
        self.scale, self.alpha = floating(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args, {"scale": self.scale, "alpha": self.alpha})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = maximum(self.alpha, 1.0)
        return where(greater(a, 1.0), a * self.scale / where(greater(a, 1.0), a - 1.0, 1.0), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a, finite = self.alpha, greater(self.alpha, 2.0)
        away = where(finite, square(a - 1.0) * (a - 2.0), 1.0)
        return where(finite, square(self.scale) * a / away, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.scale * exp(-log(self._uniform(sample_shape, self.scale)) / self.alpha)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return log(self.alpha) + self.alpha * log(self.scale) - (self.alpha + 1.0) * log(value)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return log(self.scale / self.alpha) + 1.0 + 1.0 / self.alpha

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return -expm1(self.alpha * log(self.scale / value))


class Weibull(_OfTwo):
    """Of ``scale`` times an exponential variable to the power ``1 / concentration``."""

    arg_constraints: ClassVar[constraints.Conditions] = {"scale": constraints.positive, "concentration": constraints.positive}

    def __init__(self, scale: Operand, concentration: Operand, validate_args: bool | None = None) -> None:
        self.scale: Tensor
        self.concentration: Tensor
        self.scale, self.concentration = floating(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args, {"scale": self.scale, "concentration": self.concentration})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.positive

    @property
    def mean(self) -> Tensor:
        return self.scale * exp(gammaln(1.0 + 1.0 / self.concentration))

    @property
    def mode(self) -> Tensor:
        k, rises = self.concentration, greater(self.concentration, 1.0)
        return where(rises, self.scale * exp(log1p(-1.0 / where(rises, k, 2.0)) / k), 0.0)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return square(self.scale) * (exp(gammaln(1.0 + 2.0 / k)) - exp(2.0 * gammaln(1.0 + 1.0 / k)))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.scale * exp(log(-log(self._uniform(sample_shape, self.scale))) / self.concentration)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        k, ratio = self.concentration, value / self.scale
        return log(k / self.scale) + xlogy(k - 1.0, ratio) - exp(k * log(ratio))

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return _EULER * (1.0 - 1.0 / self.concentration) + log(self.scale / self.concentration) + 1.0

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        return -expm1(-exp(self.concentration * log(value / self.scale)))


class Kumaraswamy(_OfTwo):
    """On [0, 1], much like the beta distribution: ``1 - (1 - x**concentration1)**concentration0`` is uniform."""

    arg_constraints: ClassVar[constraints.Conditions] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive
    }  # fmt: skip

    def __init__(self, concentration1: Operand, concentration0: Operand, validate_args: bool | None = None) -> None:
        self.concentration1: Tensor
        self.concentration0: Tensor
        self.concentration1, self.concentration0 = a, b = floating(concentration1, concentration0)
        super().__init__(a.shape, (), validate_args, {"concentration1": a, "concentration0": b})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.unit_interval

    def _moment(self, n: float) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return exp(log(b) + gammaln(1.0 + n / a) + gammaln(b) - gammaln(1.0 + n / a + b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1.0)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        flat = logical_or(less(a, 1.0), less(b, 1.0))
        high, low = where(flat, 2.0, a), where(flat, 2.0, b)
        top = exp(log((high - 1.0) / (high * low - 1.0)) / high)
        return where(flat, math.nan, top)

    @property
    def variance(self) -> Tensor:
        return self._moment(2.0) - square(self.mean)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        rest = log(self._uniform(sample_shape, self.concentration1)) / self.concentration0
        return exp(log(-expm1(rest)) / self.concentration1)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        a, b = self.concentration1, self.concentration0
        return log(a) + log(b) + xlogy(a - 1.0, value) + xlog1py(b - 1.0, -exp(a * log(value)))

    def entropy(self) -> Tensor:
        """The differential entropy."""
        a, b = self.concentration1, self.concentration0
        return subtract(1.0, 1.0 / b) + (1.0 - 1.0 / a) * (digamma(b + 1.0) + _EULER) - log(a) - log(b)
