"""Continuous distributions on the line."""

from __future__ import annotations

import math
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.ops.activations import logsigmoid, softplus
from jitgrad.ops.arithmetic import abs, add, clip, divide, maximum, minimum, multiply, negative, square, subtract
from jitgrad.ops.comparison import greater, greater_equal, less, less_equal, logical_and, where
from jitgrad.ops.entropy import logit, xlog1py, xlogy
from jitgrad.ops.gamma import GAMMAINC, GAMMAINCC, cotangent_of_half_turns, gammainc, gammaincc, gammaln
from jitgrad.ops.incomplete_beta import define_student
from jitgrad.ops.normal_distribution import log_ndtr, ndtr, ndtri
from jitgrad.ops.operand import apply
from jitgrad.ops.transcendental import exp, expm1, log, log1p, sigmoid
from jitgrad.ops.trigonometric import atan2
from jitgrad.scipy.special.beta import betaln
from jitgrad.scipy.special.incomplete_beta import BETAINC, BETAINCC, betainc, betaincc
from jitgrad.scipy.stats.distribution import INFINITY, NAN, Distribution
from jitgrad.scipy.stats.quantiles import define_quantile

_LOG_2 = math.log(2.0)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def positive(*shapes: Any) -> Any:
    first, *rest = [greater(shape, 0.0) for shape in shapes]
    return logical_and(first, rest[0]) if rest else first


def _unit(z: Any, *_shapes: Any) -> Tensor:
    return logical_and(greater_equal(z, 0.0), less_equal(z, 1.0))


def not_negative(z: Any, *_shapes: Any) -> Tensor:
    return greater_equal(z, 0.0)


def in_range(q: Any, value: Tensor) -> Tensor:
    """``value`` for probabilities ``q``, else NaN."""
    return where(_unit(q), value, NAN)


def log_of(probability: Tensor, complement: Tensor) -> Tensor:
    """``log(probability)``, by its complement where it is near 1."""
    small = less(probability, 0.5)
    return where(small, log(where(small, probability, 0.5)), log1p(negative(complement)))


norm: Distribution = Distribution(
    "norm",
    log_density=lambda z: subtract(multiply(-0.5, square(z)), _HALF_LOG_2PI),
    distribution=ndtr,
    log_distribution=log_ndtr,
    survival=lambda z: ndtr(negative(z)),
    log_survival=lambda z: log_ndtr(negative(z)),
    quantile=ndtri,
)


def _t_log_density(z: Any, df: Any) -> Tensor:
    half = multiply(0.5, df)
    constant = add(multiply(0.5, log(df)), betaln(half, 0.5))
    return subtract(multiply(negative(add(half, 0.5)), log1p(divide(square(z), df))), constant)


_STUDENT = define_student("student_cdf", lambda g, _out, z, df: multiply(g, exp(_t_log_density(z, df))))


_STUDENT_QUANTILE = define_quantile(
    "student_quantile", "df", _STUDENT.eager, lambda z, df: _STUDENT.eager(-z, df), INFINITY,
    lambda z, df: exp(_t_log_density(z, df)), symmetric=True,
)  # fmt: skip


def _t_cdf(z: Any, df: Any) -> Tensor:
    return apply(_STUDENT, z, df)


t: Distribution = Distribution(
    "t",
    log_density=_t_log_density,
    shapes=("df",),
    valid=positive,
    distribution=_t_cdf,
    log_distribution=lambda z, df: log_of(_t_cdf(z, df), _t_cdf(negative(z), df)),
    survival=lambda z, df: _t_cdf(negative(z), df),
    log_survival=lambda z, df: log_of(_t_cdf(negative(z), df), _t_cdf(z, df)),
    quantile=lambda q, df: apply(_STUDENT_QUANTILE, q, df),
)

def _log_gamma_cdf(a: Any, z: Any) -> Tensor:
    z = maximum(z, 0.0)
    return log_of(gammainc(a, z), gammaincc(a, z))


def _log_gamma_sf(a: Any, z: Any) -> Tensor:
    z = maximum(z, 0.0)
    return log_of(gammaincc(a, z), gammainc(a, z))


def _gamma_log_density(z: Any, a: Any) -> Tensor:
    return subtract(subtract(xlogy(subtract(a, 1.0), z), z), gammaln(a))


_GAMMA_QUANTILE = define_quantile(
    "gamma_quantile", "a", lambda x, a: GAMMAINC.eager(a, x), lambda x, a: GAMMAINCC.eager(a, x), INFINITY,
    lambda x, a: exp(_gamma_log_density(x, a)),
)  # fmt: skip

gamma: Distribution = Distribution(
    "gamma",
    log_density=_gamma_log_density,
    shapes=("a",),
    inside=not_negative,
    valid=positive,
    distribution=lambda z, a: gammainc(a, maximum(z, 0.0)),
    log_distribution=lambda z, a: _log_gamma_cdf(a, z),
    survival=lambda z, a: gammaincc(a, maximum(z, 0.0)),
    log_survival=lambda z, a: _log_gamma_sf(a, z),
    quantile=lambda q, a: apply(_GAMMA_QUANTILE, q, a),
)

chi2: Distribution = Distribution(
    "chi2",
    log_density=lambda z, df: subtract(
        subtract(xlogy(subtract(multiply(0.5, df), 1.0), z), multiply(0.5, z)),
        add(multiply(0.5 * _LOG_2, df), gammaln(multiply(0.5, df))),
    ),
    shapes=("df",),
    inside=not_negative,
    valid=positive,
    distribution=lambda z, df: gammainc(multiply(0.5, df), multiply(0.5, maximum(z, 0.0))),
    log_distribution=lambda z, df: _log_gamma_cdf(multiply(0.5, df), multiply(0.5, z)),
    survival=lambda z, df: gammaincc(multiply(0.5, df), multiply(0.5, maximum(z, 0.0))),
    log_survival=lambda z, df: _log_gamma_sf(multiply(0.5, df), multiply(0.5, z)),
    quantile=lambda q, df: multiply(2.0, apply(_GAMMA_QUANTILE, q, multiply(0.5, df))),
)


def _beta_log_density(z: Any, a: Any, b: Any) -> Tensor:
    return subtract(add(xlogy(subtract(a, 1.0), z), xlog1py(subtract(b, 1.0), negative(z))), betaln(a, b))


_BETA_QUANTILE = define_quantile(
    "beta_quantile", "a, b", lambda x, a, b: BETAINC.eager(a, b, x), lambda x, a, b: BETAINCC.eager(a, b, x), 1.0,
    lambda x, a, b: exp(_beta_log_density(x, a, b)),
)  # fmt: skip

beta: Distribution = Distribution(
    "beta",
    log_density=_beta_log_density,
    shapes=("a", "b"),
    inside=_unit,
    valid=positive,
    distribution=lambda z, a, b: betainc(a, b, clip(z, 0.0, 1.0)),
    log_distribution=lambda z, a, b: log_of(betainc(a, b, clip(z, 0.0, 1.0)), betaincc(a, b, clip(z, 0.0, 1.0))),
    survival=lambda z, a, b: betaincc(a, b, clip(z, 0.0, 1.0)),
    log_survival=lambda z, a, b: log_of(betaincc(a, b, clip(z, 0.0, 1.0)), betainc(a, b, clip(z, 0.0, 1.0))),
    quantile=lambda q, a, b: apply(_BETA_QUANTILE, q, a, b),
)


def log_one_minus_exp(y: Any) -> Tensor:
    """``log(1 - exp(-y))`` for ``y >= 0`` (Maechler, "Accurately Computing log(1 - exp(-|a|))", 2012)."""
    near = less(y, _LOG_2)
    return where(near, log(negative(expm1(negative(where(near, y, _LOG_2))))), log1p(negative(exp(negative(y)))))


expon: Distribution = Distribution(
    "expon",
    log_density=negative,
    inside=not_negative,
    distribution=lambda z: negative(expm1(negative(maximum(z, 0.0)))),
    log_distribution=lambda z: log_one_minus_exp(maximum(z, 0.0)),
    survival=lambda z: exp(negative(maximum(z, 0.0))),
    log_survival=lambda z: negative(maximum(z, 0.0)),
    quantile=lambda q: in_range(q, negative(log1p(negative(q)))),
)

uniform: Distribution = Distribution(
    "uniform",
    log_density=lambda z: multiply(z, 0.0),
    inside=_unit,
    distribution=lambda z: clip(z, 0.0, 1.0),
    log_distribution=lambda z: log(clip(z, 0.0, 1.0)),
    survival=lambda z: subtract(1.0, clip(z, 0.0, 1.0)),
    log_survival=lambda z: log1p(negative(clip(z, 0.0, 1.0))),
    quantile=lambda q: in_range(q, add(q, 0.0)),
)


def _laplace_cdf(z: Any) -> Tensor:
    half = multiply(0.5, exp(negative(abs(z))))
    return where(less(z, 0.0), half, subtract(1.0, half))


def _laplace_logcdf(z: Any) -> Tensor:
    return where(less(z, 0.0), subtract(z, _LOG_2), log1p(multiply(-0.5, exp(negative(abs(z))))))


def _laplace_ppf(q: Any) -> Tensor:
    tail = minimum(q, subtract(1.0, q))
    distance = log(multiply(2.0, tail))
    return in_range(q, where(less(q, 0.5), distance, negative(distance)))


laplace: Distribution = Distribution(
    "laplace",
    log_density=lambda z: subtract(negative(abs(z)), _LOG_2),
    distribution=_laplace_cdf,
    log_distribution=_laplace_logcdf,
    survival=lambda z: _laplace_cdf(negative(z)),
    log_survival=lambda z: _laplace_logcdf(negative(z)),
    quantile=_laplace_ppf,
)

logistic: Distribution = Distribution(
    "logistic",
    log_density=lambda z: negative(add(abs(z), multiply(2.0, softplus(negative(abs(z)), 1.0, INFINITY)))),
    distribution=sigmoid,
    log_distribution=logsigmoid,
    survival=lambda z: sigmoid(negative(z)),
    log_survival=lambda z: logsigmoid(negative(z)),
    quantile=logit,
)


def _cauchy_sf(z: Any) -> Tensor:
    """``1/2 - atan(z) / pi`` without cancellation."""
    return divide(atan2(1.0, z), math.pi)


def _cauchy_ppf(q: Any) -> Tensor:
    value = cotangent_of_half_turns(minimum(q, subtract(1.0, q)))
    return in_range(q, where(less(q, 0.5), negative(value), value))


cauchy: Distribution = Distribution(
    "cauchy",
    log_density=lambda z: negative(add(math.log(math.pi), log1p(square(z)))),
    distribution=lambda z: _cauchy_sf(negative(z)),
    log_distribution=lambda z: log(_cauchy_sf(negative(z))),
    survival=_cauchy_sf,
    log_survival=lambda z: log(_cauchy_sf(z)),
    quantile=_cauchy_ppf,
)
