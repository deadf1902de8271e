"""Discrete distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, maximum, negative, subtract
from jitgrad.ops.comparison import (
    equal,
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from jitgrad.ops.entropy import xlog1py, xlogy
from jitgrad.ops.gamma import gammainc, gammaincc, gammaln
from jitgrad.ops.rounding import floor
from jitgrad.ops.transcendental import exp, expm1, log, log1p
from jitgrad.scipy.special.beta import betaln
from jitgrad.scipy.special.incomplete_beta import betainc, betaincc
from jitgrad.scipy.stats.continuous import log_of
from jitgrad.scipy.stats.distribution import NAN, Distribution


def _probability(*shapes: Any) -> Tensor:
    p = shapes[-1]
    return logical_and(greater_equal(p, 0.0), less_equal(p, 1.0))


def _bernoulli_cdf(k: Any, p: Any) -> Tensor:
    value = where(less(k, 0.0), 0.0, where(less(k, 1.0), subtract(1.0, p), 1.0))
    return where(isnan(k), NAN, value)


bernoulli: Distribution = Distribution(
    "bernoulli",
    log_density=lambda k, p: add(xlogy(k, p), xlog1py(subtract(1.0, k), negative(p))),
    shapes=("p",),
    inside=lambda k, _p: logical_and(greater_equal(k, 0.0), less_equal(k, 1.0)),
    valid=_probability,
    centre=0.0,
    discrete=True,
    distribution=_bernoulli_cdf,
    survival=lambda k, p: subtract(1.0, _bernoulli_cdf(k, p)),
)


def _binom_log_mass(k: Any, n: Any, p: Any) -> Tensor:
    rest = subtract(n, k)
    ways = add(betaln(add(rest, 1.0), add(k, 1.0)), log1p(n))
    return subtract(add(xlogy(k, p), xlog1py(rest, negative(p))), ways)


def _binom_at_most(function: Callable[..., Tensor], below: float, k: Any, n: Any, p: Any) -> Tensor:
    """``function(floor(k) + 1, n - floor(k), p)``; ``below`` for ``k < 0``, its complement from ``n`` on."""
    successes = floor(k)
    inside = logical_not(logical_or(less(successes, 0.0), greater_equal(successes, n)))  # NaN is inside
    successes = where(inside, successes, 0.0)
    value = function(add(successes, 1.0), where(inside, subtract(n, successes), 1.0), p)
    return where(inside, value, where(less(k, 0.0), below, 1.0 - below))


binom: Distribution = Distribution(
    "binom",
    log_density=_binom_log_mass,
    shapes=("n", "p"),
    inside=lambda k, n, _p: logical_and(greater_equal(k, 0.0), less_equal(k, n)),
    valid=lambda n, p: logical_and(logical_and(greater_equal(n, 0.0), equal(n, floor(n))), _probability(p)),
    centre=0.0,
    discrete=True,
    distribution=lambda k, n, p: _binom_at_most(betaincc, 0.0, k, n, p),
    log_distribution=lambda k, n, p: log_of(
        _binom_at_most(betaincc, 0.0, k, n, p), _binom_at_most(betainc, 1.0, k, n, p)
    ),
    survival=lambda k, n, p: _binom_at_most(betainc, 1.0, k, n, p),
    log_survival=lambda k, n, p: log_of(
        _binom_at_most(betainc, 1.0, k, n, p), _binom_at_most(betaincc, 0.0, k, n, p)
    ),
)

def _poisson_at_most(function: Callable[..., Tensor], below: float, k: Any, mu: Any) -> Tensor:
    """``function(floor(k) + 1, mu)``, and ``below`` for ``k < 0``."""
    negative_k = less(k, 0.0)
    return where(negative_k, below, function(add(floor(where(negative_k, 0.0, k)), 1.0), mu))


poisson: Distribution = Distribution(
    "poisson",
    log_density=lambda k, mu: subtract(subtract(xlogy(k, mu), gammaln(add(k, 1.0))), mu),
    shapes=("mu",),
    inside=lambda k, _mu: greater_equal(k, 0.0),
    valid=lambda mu: greater_equal(mu, 0.0),
    centre=0.0,
    discrete=True,
    distribution=lambda k, mu: _poisson_at_most(gammaincc, 0.0, k, mu),
    log_distribution=lambda k, mu: log_of(
        _poisson_at_most(gammaincc, 0.0, k, mu), _poisson_at_most(gammainc, 1.0, k, mu)
    ),
    survival=lambda k, mu: _poisson_at_most(gammainc, 1.0, k, mu),
    log_survival=lambda k, mu: log_of(
        _poisson_at_most(gammainc, 1.0, k, mu), _poisson_at_most(gammaincc, 0.0, k, mu)
    ),
)

def _geom_logsf(k: Any, p: Any) -> Tensor:
    return xlog1py(maximum(floor(k), 0.0), negative(p))


geom: Distribution = Distribution(
    "geom",
    log_density=lambda k, p: add(xlog1py(subtract(k, 1.0), negative(p)), xlogy(1.0, p)),
    shapes=("p",),
    inside=lambda k, _p: greater_equal(k, 1.0),
    valid=_probability,
    centre=1.0,
    discrete=True,
    distribution=lambda k, p: negative(expm1(_geom_logsf(k, p))),
    survival=lambda k, p: exp(_geom_logsf(k, p)),
    log_survival=lambda k, p: _geom_logsf(k, p),
)


nbinom: Distribution = Distribution(
    "nbinom",
    log_density=lambda k, n, p: subtract(
        add(xlogy(n, p), xlog1py(k, negative(p))), add(betaln(n, add(k, 1.0)), log(add(n, k)))
    ),
    shapes=("n", "p"),
    inside=lambda k, _n, _p: greater_equal(k, 0.0),
    valid=lambda n, p: logical_and(greater(n, 0.0), _probability(p)),
    centre=0.0,
    discrete=True,
)
