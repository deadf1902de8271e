"""The regularised incomplete beta function and Student's distribution function, by a continued fraction.

The number of its terms depends on the operands, so these ops have no form for kernels: they run as
calls of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import Array
from jitgrad.core.errors import AutogradError
from jitgrad.core.op import OpDef, Vjp, define_elementwise
from jitgrad.vecmath import numpy_namespace

_gammaln = numpy_namespace()["gammaln"]
# B(2k) / (2k (2k - 1)): Stirling's series for log gamma, in float64 from 8 on
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_LARGE = 8.0
_MOST_TERMS = 100_000
_TINY = 1e-290


def _stirling_rest(x: Array) -> Any:
    inverse = 1.0 / x
    total = np.full_like(x, _STIRLING[-1])
    for term in reversed(_STIRLING[:-1]):
        total = total * (inverse * inverse) + term
    return total * inverse


def _deviation(change: Array, ratio: Array) -> Array:
    """``change - log(ratio)`` for ``ratio = 1 + change``, without cancellation near 0."""
    near = np.abs(change) < 0.3
    s = np.where(near, change, 0.0) / (2.0 + np.where(near, change, 0.0))
    z, series = s * s, np.zeros_like(s)
    for k in range(25, 1, -2):  # 2 (s**3 / 3 + s**5 / 5 + ...)
        series = series * z + 2.0 / k
    return np.where(near, s * (change - z * series), change - np.log(np.where(near, 1.0, ratio)))


def _log_beta(small: Array, large: Array) -> Any:
    """``log beta(small, large)``, by Stirling's series where ``large`` is."""
    big, both = np.maximum(large, _LARGE), np.maximum(large, _LARGE) + small
    change = (big - 0.5) * np.log1p(small / big) + small * (np.log(both) - 1.0)
    series = _gammaln(small) - change + _stirling_rest(big) - _stirling_rest(both)
    return np.where(large < _LARGE, _gammaln(small) + _gammaln(large) - _gammaln(small + large), series)


def _density(a: Array, b: Array, x: Array, y: Array) -> Any:
    """``x**a y**b / beta(a, b)`` for ``y = 1 - x`` (DiDonato and Morris, ACM TOMS 18, 1992: BRCOMP)."""
    large = np.minimum(a, b) >= _LARGE
    p, q = np.where(large, a, _LARGE), np.where(large, b, _LARGE)
    both, gap = p + q, p * y - q * x
    exponent = p * _deviation(-gap / p, both * x / p) + q * _deviation(gap / q, both * y / q)
    correction = _stirling_rest(p) + _stirling_rest(q) - _stirling_rest(both)
    peak = np.sqrt(p * q / (both * (2.0 * math.pi))) * np.exp(-exponent - correction)
    log_x = np.where(x < 0.5, np.log(x), np.log1p(-y))
    log_y = np.where(y < 0.5, np.log(y), np.log1p(-x))
    plain = np.exp(a * log_x + b * log_y - _log_beta(np.minimum(a, b), np.maximum(a, b)))
    return np.where(large, peak, plain)


def _continued_fraction(a: Array, b: Array, x: Array) -> Array:
    """DLMF 8.17.22 by the modified method of Lentz; NaN where it does not end."""
    result, where = np.full_like(x, np.nan), np.arange(x.size)
    state: list[Any]
    c, d = np.ones_like(x), 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d.copy()
    for m in range(1, _MOST_TERMS if x.size else 1):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value = value * (c * d)
        done = ~(np.abs(c * d - 1.0) >= 9e-16)  # four steps of rounding: one or two may stay for ever; NaN is final, too
        if done.any():
            result[where[done]] = value[done]
            left = ~done
            state = [v[left] for v in (where, a, b, x, c, d, value)]
            where, a, b, x, c, d, value = state
            if not where.size:
                break
    return result


def _away_from_zero(x: Array) -> Array:
    return np.where(np.abs(x) < _TINY, _TINY, x)


def _betainc_pair(a: Array, b: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """I and 1 - I at ``x`` for finite ``a, b > 0`` and ``0 < x < 1``, ``y = 1 - x``; flat float64."""
    swapped = x > (a + 1.0) / (a + b + 2.0)
    p, q = np.where(swapped, b, a), np.where(swapped, a, b)
    u, v = np.where(swapped, y, x), np.where(swapped, x, y)
    tail = _density(p, q, u, v) * _continued_fraction(p, q, u) / p
    return np.where(swapped, 1.0 - tail, tail), np.where(swapped, tail, 1.0 - tail)


def _in_float64(function: Callable[..., Array]) -> Callable[..., Array]:
    """``function`` of flat float64 arrays, on broadcast arrays of any float dtype."""

    def call(*operands: Array) -> Array:
        arrays = np.broadcast_arrays(*operands)
        with np.errstate(all="ignore"):
            result = function(*[x.astype(np.float64).reshape(-1) for x in arrays])
        return result.reshape(arrays[0].shape).astype(operands[0].dtype)

    return call


def _regularised(which: int) -> Callable[..., Array]:
    def function(a: Array, b: Array, x: Array) -> Array:
        inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
        exists = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~((a == 0) & (b == 0)) & ~(np.isinf(a) & np.isinf(b))
        low = (x == 0) | (b == 0) | np.isinf(a)
        limits = np.where(low & (x < 1) | (x == 0), float(which), float(1 - which))
        result = np.where(exists, limits, np.nan)
        result[inside] = _betainc_pair(a[inside], b[inside], x[inside], 1.0 - x[inside])[which]
        return result

    return _in_float64(function)


def _student_cdf(z: Array, df: Array) -> Array:
    square = z * z
    near = square < df
    p, q = np.where(near, 0.5, 0.5 * df), np.where(near, 0.5 * df, 0.5)
    x = np.where(near, square, df) / (df + square)
    y = np.where(near, df, square) / (df + square)
    inside = (df > 0) & np.isfinite(df) & (x > 0) & (y > 0)
    half = np.where(np.isnan(z) | ~(df > 0), np.nan, np.zeros_like(z))
    rest = 0.5 - half
    pair = _betainc_pair(p[inside], q[inside], x[inside], y[inside])
    half[inside], rest[inside] = 0.5 * pair[0], 0.5 * pair[1]
    tail = np.where(near, rest, half)  # not 0.5 - half, which has no digits far out
    result = np.where(z < 0, tail, np.where(near, 0.5 + half, 1.0 - half))
    return np.where(np.isposinf(df), numpy_namespace()["ndtr"](z), result)


def no_slope_by_shape(_g: Any, _out: Any, *_operands: Any) -> Any:
    """The vjp of a shape parameter of an incomplete integral, or of the exponent of zeta: an error."""
    raise AutogradError(
        "the incomplete gamma and beta functions have no gradient with respect to their shape parameters (a, b, df), and "
        "zeta none with respect to its exponent; pass numbers or detached tensors, such as a.detach()"
    )


def define_betainc(name: str, which: int, slope: Vjp) -> OpDef:
    """The op of I (``which`` 0) or 1 - I (1), with the gradient ``slope`` with respect to ``x``."""
    return define_elementwise(
        f"{name}(a, b, x)", scalar=None, eager=_regularised(which), vjp=(no_slope_by_shape, no_slope_by_shape, slope)
    )


def define_student(name: str, slope: Vjp) -> OpDef:
    """The op of Student's distribution function, with the gradient ``slope`` with respect to ``z``."""
    return define_elementwise(
        f"{name}(z, df)", scalar=None, eager=_in_float64(_student_cdf), vjp=(slope, no_slope_by_shape)
    )
