"""Kullback-Leibler divergences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions.bernoulli import Bernoulli
from jitgrad.distributions.beta import Beta
from jitgrad.distributions.binomial import Binomial
from jitgrad.distributions.categorical import Categorical
from jitgrad.distributions.cauchy import Cauchy
from jitgrad.distributions.dirichlet import Dirichlet
from jitgrad.distributions.distribution import Distribution, OfProbability
from jitgrad.distributions.exponential import Exponential
from jitgrad.distributions.folded import HalfNormal
from jitgrad.distributions.gamma import Gamma
from jitgrad.distributions.geometric import Geometric
from jitgrad.distributions.gumbel import Gumbel
from jitgrad.distributions.independent import Independent
from jitgrad.distributions.kl_across import FORMULAS_ACROSS
from jitgrad.distributions.laplace import Laplace
from jitgrad.distributions.log_normal import LogNormal
from jitgrad.distributions.multivariate_normal import MultivariateNormal, distances
from jitgrad.distributions.normal import Normal
from jitgrad.distributions.one_hot_categorical import OneHotCategorical
from jitgrad.distributions.poisson import Poisson
from jitgrad.distributions.uniform import Uniform
from jitgrad.ops.activations import softplus
from jitgrad.ops.arithmetic import abs, square
from jitgrad.ops.comparison import less_equal, logical_and, where
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import digamma, gammaln
from jitgrad.ops.reduce import sum
from jitgrad.ops.transcendental import exp, log
from jitgrad.ops.triangular import triangular_solve

_EULER = 0.5772156649015329  # Euler's constant


def _normal(p: Normal | LogNormal, q: Normal | LogNormal) -> Tensor:
    ratio = square(p.scale / q.scale)
    return (ratio + square((p.loc - q.loc) / q.scale) - 1.0 - log(ratio)) * 0.5


def _bernoulli(p: OfProbability, q: OfProbability) -> Tensor:
    return softplus(q.logits) - softplus(p.logits) + p.probs * (p.logits - q.logits)


def _binomial(p: Binomial, q: Binomial) -> Tensor:
    """Infinite if ``p`` has more trials, as then it can have more successes."""
    return where(less_equal(p.total_count, q.total_count), p.total_count * _bernoulli(p, q), math.inf)


def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, abs(p.loc - q.loc)
    return -log(ratio) + away / q.scale + ratio * exp(-away / p.scale) - 1.0


def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1.0 - log(ratio)


def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    first = b * log(p.rate / q.rate) + gammaln(b) - gammaln(a)
    return first + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


def _dirichlet_of(a: Tensor, b: Tensor) -> Tensor:
    total = sum(a, -1, keepdims=True)
    first = gammaln(sum(a, -1)) - gammaln(sum(b, -1)) + sum(gammaln(b) - gammaln(a), -1)
    return first + sum((a - b) * (digamma(a) - digamma(total)), -1)


def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet_of(p._pair.concentration, q._pair.concentration)


def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return log(square(p.scale + q.scale) + square(p.loc - q.loc)) - log(4.0 * p.scale * q.scale)


def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() + softplus(q.logits) / p.probs - q.logits


def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    grown = exp(gammaln(ratio + 1.0) - away)
    return ratio * _EULER - log(ratio) + away - _EULER - 1.0 + grown


def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = logical_and(less_equal(q.low, p.low), less_equal(p.high, q.high))
    return where(inside, log((q.high - q.low) / (p.high - p.low)), math.inf)


def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    spread = sum(square(triangular_solve(q.scale_tril, p.scale_tril, upper=False)), (-2, -1))
    excess = spread + distances(q.scale_tril, q.loc - p.loc) - p.event_shape[0]
    return q.half_log_determinant() - p.half_log_determinant() + 0.5 * excess


_FORMULAS: Mapping[type[Distribution], Callable[[Any, Any], Tensor]] = {
    Normal: _normal,
    LogNormal: _normal,
    Bernoulli: _bernoulli,
    Binomial: _binomial,
    Categorical: lambda p, q: sum(p.probs * (p.logits - q.logits), -1),
    OneHotCategorical: lambda p, q: kl_divergence(p.choice, q.choice),
    Laplace: _laplace,
    Exponential: _exponential,
    Gamma: _gamma,
    Beta: _beta,
    Dirichlet: lambda p, q: _dirichlet_of(p.concentration, q.concentration),
    Cauchy: _cauchy,
    Geometric: _geometric,
    Poisson: lambda p, q: xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate),
    Uniform: _uniform,
    Gumbel: _gumbel,
    HalfNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    MultivariateNormal: _multivariate_normal,
}


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of ``p`` from ``q``, per element of their batch.

    Raises ArgumentError unless there is a formula for their families, or they are Independent of such.
    """
    if isinstance(p, Independent) and isinstance(q, Independent) and p.event_shape == q.event_shape:
        return p.summed(kl_divergence(p.base_dist, q.base_dist))
    for family, formula in _FORMULAS.items():
        if isinstance(p, family) and isinstance(q, family):
            return formula(p, q)
    for (family, other), formula in FORMULAS_ACROSS.items():
        if isinstance(p, family) and isinstance(q, other):
            return formula(p, q)
    raise ArgumentError(f"kl_divergence: no formula for {p!r} and {q!r}: estimate it, (p.log_prob(x) - q.log_prob(x)).mean() "
                        "of samples x of p")  # fmt: skip
