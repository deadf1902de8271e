"""Kullback-Leibler divergences of distributions of two families: minus the entropy of p, and the mean of -log q."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.distributions.bernoulli import Bernoulli
from jitgrad.distributions.beta import Beta
from jitgrad.distributions.binomial import Binomial
from jitgrad.distributions.distribution import Distribution
from jitgrad.distributions.exponential import Exponential
from jitgrad.distributions.gamma import Gamma
from jitgrad.distributions.laplace import Laplace
from jitgrad.distributions.normal import Normal
from jitgrad.distributions.poisson import Poisson
from jitgrad.distributions.uniform import Uniform
from jitgrad.ops.arithmetic import square
from jitgrad.ops.comparison import logical_and, where
from jitgrad.ops.creation import full
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import digamma, gammaln
from jitgrad.ops.special import erf
from jitgrad.ops.transcendental import exp, log


def _mean_of_logarithms(p: Any) -> Tensor:
    """The mean of log(x) over the values x of ``p``, which are positive."""
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Uniform):
        return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1.0
    assert isinstance(p, Exponential)
    return -np.euler_gamma - log(p.rate)


def _to_normal(p: Any, q: Normal) -> Tensor:
    distance = p.variance + square(p.mean - q.loc)
    return 0.5 * (distance / q.variance + log(2.0 * math.pi * q.variance)) - p.entropy()  # type: ignore[no-any-return]


def _to_laplace(p: Normal, q: Laplace) -> Tensor:
    away = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2.0 / math.pi) * exp(-0.5 * square(away)) + away * erf(away / math.sqrt(2.0)))
    return distance / q.scale + log(2.0 * q.scale) - p.entropy()


def _to_exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate * p.mean - log(q.rate) - p.entropy()  # type: ignore[no-any-return]


def _to_gamma(p: Any, q: Gamma) -> Tensor:
    a = q.concentration
    return gammaln(a) - a * log(q.rate) - (a - 1.0) * _mean_of_logarithms(p) + q.rate * p.mean - p.entropy()  # type: ignore[no-any-return]


def _positive(formula: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """``formula`` for a uniform distribution; infinite where that has negative values."""
    return lambda p, q: where(p.low >= 0.0, formula(p, q), math.inf)


def _uniform_to_beta(p: Uniform, q: Beta) -> Tensor:
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    below, above = 1.0 - p.high, 1.0 - p.low
    of_rest = (xlogy(above, above) - xlogy(below, below)) / width - 1.0  # the mean of log(1 - x)
    density = (a - 1.0) * _mean_of_logarithms(p) + (b - 1.0) * of_rest + gammaln(a + b) - gammaln(a) - gammaln(b)
    return where(logical_and(p.low >= 0.0, p.high <= 1.0), -density - log(width), math.inf)


def _beta_to_uniform(p: Beta, q: Uniform) -> Tensor:
    inside = logical_and(q.low <= 0.0, q.high >= 1.0)
    return where(inside, log(q.high - q.low) - p.entropy(), math.inf)


def _bernoulli_to_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * log(q.rate) - p.entropy()


def _infinite(p: Any, q: Any) -> Tensor:
    """For ``p`` with values that ``q`` cannot have."""
    return full(np.broadcast_shapes(p.batch_shape, q.batch_shape), math.inf, dtype=p.mean.dtype)


FORMULAS_ACROSS: Mapping[tuple[type[Distribution], type[Distribution]], Callable[[Any, Any], Tensor]] = {
    **{(family, Normal): _to_normal for family in (Beta, Exponential, Gamma, Laplace, Uniform)},
    (Normal, Laplace): _to_laplace,
    (Beta, Exponential): _to_exponential,
    (Gamma, Exponential): _to_exponential,
    (Uniform, Exponential): _positive(_to_exponential),
    (Beta, Gamma): _to_gamma,
    (Exponential, Gamma): _to_gamma,
    (Uniform, Gamma): _positive(_to_gamma),
    (Uniform, Beta): _uniform_to_beta,
    (Beta, Uniform): _beta_to_uniform,
    (Bernoulli, Poisson): _bernoulli_to_poisson,
    **{(family, other): _infinite for family in (Normal, Laplace) for other in (Beta, Exponential, Gamma, Uniform)},
    **{(family, other): _infinite for family in (Exponential, Gamma) for other in (Beta, Uniform)},
    **{(Poisson, other): _infinite for other in (Bernoulli, Binomial)},
}
