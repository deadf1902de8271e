"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x).

Whichever is the smaller is computed without cancellation: P by its power series for ``x <= a``, Q
by Legendre's continued fraction for larger ``x`` (both with a fixed number of terms), either by
Temme's expansion where ``a >= 20`` and ``x`` is near ``a`` (SIAM Journal on Mathematical Analysis
10, 1979), and Q by its own series where both are small. float32 is computed in float64.
"""

from __future__ import annotations

from jitgrad.vecmath import coefficients, special_coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly
from jitgrad.vecmath.exponential import exp, exp_nonpositive, expm1
from jitgrad.vecmath.gamma import STIRLING_MIDDLE, in_equal_bits, log_gamma_near, mapped
from jitgrad.vecmath.gaussian import scaled_erfc
from jitgrad.vecmath.logarithm import log
from jitgrad.vecmath.temme_coefficients import TEMME_TERMS

_INFINITY, _NAN = float("inf"), float("nan")
_TWO_PI = 6.283185307179586
_LARGE = 20.0  # from here on Temme's expansion has 53 bits
_SMALL_A, _SMALL_X = 1.0, 1.5
_SERIES, _FRACTION, _SMALL_SERIES = 52, 58, 24


def _deviation(m: Algebra, a: MathValue, x: MathValue) -> MathValue:
    """``mu - log(1 + mu)`` for ``mu = x / a - 1``; near 0 by the arrangement of log itself, which
    does not cancel."""
    mu = (x - a) / a
    s = mu / (mu + 2.0)
    z = s * s
    near = s * (mu - z * poly(m, z, coefficients.LOG_TERMS[64]))
    return m.select((mu > -0.29) & (mu < 0.41), near, mu - log(m, x / a))


def _density(m: Algebra, a: MathValue, x: MathValue, power: MathValue) -> MathValue:
    """``x**a exp(-x) / gamma(a + 1)``, by Stirling's formula from 2.5 on; ``power`` is ``exp(-a
    (mu - log(1 + mu)))`` for ``mu = x / a - 1``."""
    rest = poly(m, mapped(a, 1.0) - STIRLING_MIDDLE, special_coefficients.STIRLING_TERMS[64]) / a
    large = power * exp(m, -rest) / m.sqrt(a * _TWO_PI)
    below = m.select(a < 2.5, a, m.const(1.0))
    small = below < 1.5
    shifted = m.select(small, below, below - 1.0)
    log_gamma = log_gamma_near(m, 64, shifted + 1.0, shifted)
    scale = m.select(small, m.const(1.0), below)
    direct = exp(m, (below * log(m, x) - x) - log_gamma) / scale
    return m.select(a < 2.5, direct, large)


def _power_series(m: Algebra, a: MathValue, x: MathValue) -> MathValue:
    """``sum(x**k / ((a + 1) ... (a + k)))``: P over the density."""
    term, total = m.const(1.0), m.const(1.0)
    for k in range(1, _SERIES):
        term = term * (x / (a + float(k)))
        total = total + term
    return total


def _continued_fraction(m: Algebra, a: MathValue, x: MathValue) -> MathValue:
    """Q over ``a`` times the density."""
    shifted = x - a
    value = shifted + float(2 * _FRACTION + 1)
    for k in range(_FRACTION, 0, -1):
        value = (shifted + float(2 * k - 1)) + (a - float(k)) * float(k) / value
    return m.const(1.0) / value


def _temme(m: Algebra, a: MathValue, deviation: MathValue, upper: MathValue, power: MathValue) -> MathValue:
    """P, or Q where ``upper``, for ``a >= 20`` and a deviation up to 1/2."""
    eta = m.sqrt(deviation + deviation)
    eta = m.select(upper, eta, -eta)
    inverse, total = m.const(1.0) / a, m.const(0.0)
    for row in reversed(TEMME_TERMS):
        total = m.mad(total, inverse, poly(m, eta, row))
    quotient, rest = scaled_erfc(m, m.sqrt(a * deviation), coefficients.ERFC_TERMS[64])
    correction = total / m.sqrt(a * _TWO_PI)
    return power * ((quotient * 0.5 + rest * 0.5) + m.select(upper, correction, -correction))


def _small_complement(m: Algebra, a: MathValue, x: MathValue) -> MathValue:
    """Q for ``a < 1`` and ``x <= 1.5``: with ``u = x**a / gamma(a + 1)``, ``1 - u`` and the rest of
    the alternating series of ``P``."""
    bounded = m.select(a < _SMALL_A, a, m.const(_SMALL_A))
    exponent = bounded * log(m, x) - log_gamma_near(m, 64, bounded + 1.0, bounded)
    term, total = m.const(1.0), m.const(0.0)
    for k in range(1, _SMALL_SERIES):
        term = term * x * (-1.0 / k)
        total = total + term / (bounded + float(k))
    return -expm1(m, exponent) - exp(m, exponent) * bounded * total


def _pair(m: Algebra, a: MathValue, x: MathValue) -> tuple[MathValue, MathValue]:
    """P and Q for finite positive ``a`` and ``x``."""
    deviation = _deviation(m, a, x)
    power = exp_nonpositive(m, -(a * deviation))
    density = _density(m, a, x, power)
    upper = (x > a) & (x > _SMALL_X)
    lower_value = density * _power_series(m, a, m.select(upper, m.const(1.0), x))
    upper_value = density * a * _continued_fraction(m, a, m.select(upper, x, a + 2.0))
    value = m.select(upper, upper_value, lower_value)
    near = (a >= _LARGE) & (deviation <= 0.5)
    value = m.select(near, _temme(m, a, m.select(near, deviation, m.const(0.5)), upper, power), value)
    complement = m.const(1.0) - value
    small = (a < _SMALL_A) & (x <= _SMALL_X)
    other = m.select(small, _small_complement(m, a, m.select(small, x, m.const(1.0))), complement)
    return m.select(upper, complement, value), m.select(upper, value, other)


def _regularised(m: Algebra, which: int, a: MathValue, x: MathValue) -> MathValue:
    usable = (a > 0.0) & (a < _INFINITY) & (x > 0.0) & (x < _INFINITY)
    ordinary = _pair(m, m.select(usable, a, m.const(1.0)), m.select(usable, x, m.const(1.0)))[which]
    at_zero, at_infinity = (0.0, 1.0) if which == 0 else (1.0, 0.0)
    zero = (x == 0.0) & (a > 0.0) | ((a == _INFINITY) & (x >= 0.0) & (x < _INFINITY))
    infinite = (x == _INFINITY) & (a >= 0.0) & (a < _INFINITY) | ((a == 0.0) & (x > 0.0))
    limit = m.select(zero, m.const(at_zero), m.select(infinite, m.const(at_infinity), m.const(_NAN)))
    return m.select(usable, ordinary, limit)


def gammainc(m: Algebra, a: MathValue, x: MathValue) -> MathValue:
    """P(a, x), the integral of ``t**(a - 1) exp(-t) / gamma(a)`` up to ``x``; NaN for negative operands.

    The error is a few units in the last place and as many per unit of ``log P``.
    """
    return in_equal_bits(lambda wide, _, *xs: _regularised(wide, 0, *xs), m, a, x)


def gammaincc(m: Algebra, a: MathValue, x: MathValue) -> MathValue:
    """Q(a, x) = 1 - P(a, x), likewise."""
    return in_equal_bits(lambda wide, _, *xs: _regularised(wide, 1, *xs), m, a, x)
