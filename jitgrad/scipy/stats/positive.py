"""More continuous distributions on the positive half line, and Gumbel's."""

from __future__ import annotations

import math
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, maximum, multiply, negative, square, subtract
from jitgrad.ops.comparison import greater, greater_equal, less_equal, where
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import gammainc, gammaincc, gammaln
from jitgrad.ops.normal_distribution import log_ndtr, ndtr, ndtri
from jitgrad.ops.special import erf, erfc
from jitgrad.ops.transcendental import exp, expm1, log, log1p, pow
from jitgrad.scipy.stats.continuous import in_range, log_of, log_one_minus_exp, not_negative, positive
from jitgrad.scipy.stats.distribution import Distribution

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)


def _above_zero(z: Any, *_shapes: Any) -> Tensor:
    return greater(z, 0.0)


def _log_over(z: Any, s: Any) -> Tensor:
    """``log(z) / s``; -inf for ``z <= 0``, without a gradient."""
    outside = less_equal(z, 0.0)
    return where(outside, -math.inf, divide(log(where(outside, 1.0, z)), s))


def _lognorm_log_density(z: Any, s: Any) -> Tensor:
    logarithm = log(z)
    return negative(add(add(multiply(0.5, square(divide(logarithm, s))), add(log(s), logarithm)), _HALF_LOG_2PI))


lognorm: Distribution = Distribution(
    "lognorm",
    log_density=_lognorm_log_density,
    shapes=("s",),
    inside=_above_zero,
    valid=positive,
    distribution=lambda z, s: ndtr(_log_over(z, s)),
    log_distribution=lambda z, s: log_ndtr(_log_over(z, s)),
    survival=lambda z, s: ndtr(negative(_log_over(z, s))),
    log_survival=lambda z, s: log_ndtr(negative(_log_over(z, s))),
    quantile=lambda q, s: exp(multiply(s, ndtri(q))),
)

halfnorm: Distribution = Distribution(
    "halfnorm",
    log_density=lambda z: subtract(multiply(-0.5, square(z)), _HALF_LOG_2PI - math.log(2.0)),
    inside=not_negative,
    distribution=lambda z: erf(multiply(_SQRT_HALF, maximum(z, 0.0))),
    log_distribution=lambda z: log_of(
        erf(multiply(_SQRT_HALF, maximum(z, 0.0))), erfc(multiply(_SQRT_HALF, maximum(z, 0.0)))
    ),
    survival=lambda z: erfc(multiply(_SQRT_HALF, maximum(z, 0.0))),
    log_survival=lambda z: add(math.log(2.0), log_ndtr(negative(maximum(z, 0.0)))),
    quantile=lambda q: in_range(q, negative(ndtri(multiply(0.5, subtract(1.0, q))))),
)


def _hazard(z: Any, c: Any) -> Tensor:
    """``max(z, 0)**c``, without a gradient below 0."""
    outside = less_equal(z, 0.0)
    return where(outside, 0.0, pow(where(outside, 1.0, z), c))


weibull_min: Distribution = Distribution(
    "weibull_min",
    log_density=lambda z, c: subtract(add(log(c), xlogy(subtract(c, 1.0), z)), pow(z, c)),
    shapes=("c",),
    inside=not_negative,
    valid=positive,
    distribution=lambda z, c: negative(expm1(negative(_hazard(z, c)))),
    log_distribution=lambda z, c: log_one_minus_exp(_hazard(z, c)),
    survival=lambda z, c: exp(negative(_hazard(z, c))),
    log_survival=lambda z, c: negative(_hazard(z, c)),
    quantile=lambda q, c: in_range(q, pow(negative(log1p(negative(q))), divide(1.0, c))),
)

pareto: Distribution = Distribution(
    "pareto",
    log_density=lambda z, b: subtract(log(b), multiply(add(b, 1.0), log(z))),
    shapes=("b",),
    inside=lambda z, _b: greater_equal(z, 1.0),
    valid=positive,
    centre=2.0,
    distribution=lambda z, b: negative(expm1(multiply(negative(b), log(maximum(z, 1.0))))),
    log_distribution=lambda z, b: log_one_minus_exp(multiply(b, log(maximum(z, 1.0)))),
    survival=lambda z, b: exp(multiply(negative(b), log(maximum(z, 1.0)))),
    log_survival=lambda z, b: multiply(negative(b), log(maximum(z, 1.0))),
    quantile=lambda q, b: in_range(q, exp(negative(divide(log1p(negative(q)), b)))),
)


def _inverse(z: Any) -> Tensor:
    """``1 / z``, infinite for ``z <= 0``."""
    outside = less_equal(z, 0.0)
    return where(outside, math.inf, divide(1.0, where(outside, 1.0, z)))


invgamma: Distribution = Distribution(
    "invgamma",
    log_density=lambda z, a: negative(add(add(multiply(add(a, 1.0), log(z)), gammaln(a)), divide(1.0, z))),
    shapes=("a",),
    inside=_above_zero,
    valid=positive,
    distribution=lambda z, a: gammaincc(a, _inverse(z)),
    log_distribution=lambda z, a: log_of(gammaincc(a, _inverse(z)), gammainc(a, _inverse(z))),
    survival=lambda z, a: gammainc(a, _inverse(z)),
    log_survival=lambda z, a: log_of(gammainc(a, _inverse(z)), gammaincc(a, _inverse(z))),
)

gumbel_r: Distribution = Distribution(
    "gumbel_r",
    log_density=lambda z: negative(add(z, exp(negative(z)))),
    distribution=lambda z: exp(negative(exp(negative(z)))),
    log_distribution=lambda z: negative(exp(negative(z))),
    survival=lambda z: negative(expm1(negative(exp(negative(z))))),
    log_survival=lambda z: log_one_minus_exp(exp(negative(z))),
    quantile=lambda q: in_range(q, negative(log(negative(log(q))))),
)
