"""gammaln, gamma, digamma, trigamma and Hurwitz's zeta function.

Stirling's formula with a fitted remainder serves large arguments. Between, a polynomial in ``(x -
c) / (x + c)`` is fitted to the function divided by the factors of its zeros, so that the error
stays relative. One step of the recurrence leads there from below, reflection from the negative
axis. float32 is computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable

from jitgrad.vecmath import special_coefficients as coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly, two_product, two_sum
from jitgrad.vecmath.exponential import LOG2_HIGH, LOG2_LOW, exp_sum, upper_bounded
from jitgrad.vecmath.logarithm import log, log_pair
from jitgrad.vecmath.power import log_double, magnitude64
from jitgrad.vecmath.trigonometric import sin_cos_half_turns

Log = Callable[[Algebra, MathValue], tuple[MathValue, MathValue]]

_INFINITY, _NAN = float("inf"), float("nan")
_PI = 3.141592653589793
_HALF_LOG_2PI_LESS_HALF = 0.4189385332046727
# where the polynomials are centred, and where gammaln leaves its polynomial below and above
_LOG_GAMMA_CENTRE, _DIGAMMA_CENTRE = 1.32, 1.4140625
STIRLING_MIDDLE, _DIGAMMA_MIDDLE, _TRIGAMMA_MIDDLE = 0.703125, 0.671875, 0.5
_LOG_GAMMA_LOW, _LOG_GAMMA_HIGH = 0.7, 2.5
# the positive root of digamma as a head and a tail
_DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)


def in_double(function: Callable[..., MathValue], m: Algebra, *operands: MathValue) -> MathValue:
    """``function(float64 algebra, precision, *operands)``, in the format of ``m``."""
    if m.width == 64:
        return function(m, 64, *operands)
    return m.narrow(function(m.wide(), 32, *[m.widen(x) for x in operands]))


def in_equal_bits(function: Callable[..., MathValue], m: Algebra, *operands: MathValue) -> MathValue:
    """`in_double`, with the same bits on every machine and in NumPy for float64.

    For functions that cancel by themselves. Where they do, two roundings instead of one would show
    as many units in the last place, which nothing outside of the function explains.
    """
    return in_double(function, m.unfused() if m.width == 64 else m, *operands)


def mapped(x: MathValue, centre: float) -> MathValue:
    return (x - centre) / (x + centre)


def _to_nearest_integer(m: Algebra, x: MathValue) -> MathValue:
    """``x`` less the nearest integer: exact, NaN for infinity."""
    return x - m.rint(x)


# --- gammaln and gamma ---------------------------------------------------------------------------


def log_gamma_near(m: Algebra, precision: int, y: MathValue, less_one: MathValue) -> MathValue:
    """log gamma(y) for 0.7 <= y <= 2.5; ``less_one`` is ``y - 1`` without a rounding."""
    ratio = poly(m, mapped(y, _LOG_GAMMA_CENTRE), coefficients.LOG_GAMMA_TERMS[precision])
    return less_one * (y - 2.0) * ratio


def _log_less_one(m: Algebra, y: MathValue) -> tuple[MathValue, MathValue]:
    """``log(y) - 1`` as head and tail, with an absolute error near 2**-60."""
    k, log_head, log_tail = log_pair(m, y)
    head, low = two_sum(m.mad(k, m.const(LOG2_HIGH[64]), m.const(-1.0)), log_head)
    return head, low + m.mad(k, m.const(LOG2_LOW[64]), log_tail)


def _precise_log_less_one(m: Algebra, y: MathValue) -> tuple[MathValue, MathValue]:
    """The same with a relative error near 2**-64, which exp of a large multiple needs."""
    log_head, log_tail = log_double(m, y)
    head, low = two_sum(log_head, m.const(-1.0))
    return head, low + log_tail


def _log_gamma_far(m: Algebra, precision: int, y: MathValue, log_less_one: Log) -> tuple[MathValue, MathValue]:
    """log gamma(y) for y >= 2.5 as head and tail: ``(y - 1/2) (log(y) - 1) + c + R / y``."""
    head, low = log_less_one(m, y)
    factor = y - 0.5
    product, lost = two_product(m, factor, head)
    lost = m.mad(factor, low, lost)
    rest = poly(m, mapped(y, 1.0) - STIRLING_MIDDLE, coefficients.STIRLING_TERMS[precision]) / y
    total, tail = two_sum(product, rest + _HALF_LOG_2PI_LESS_HALF)
    finite = product < _INFINITY
    return m.select(finite, total, product), m.select(finite, tail + lost, m.const(0.0))


def _log_gamma(m: Algebra, precision: int, a: MathValue, log_less_one: Log) -> tuple[MathValue, MathValue]:
    """log gamma(a) from 0.7 on, log gamma(1 + a) for smaller ``a >= 0``, as head and tail."""
    small = a < _LOG_GAMMA_LOW
    y = m.select(small, a + 1.0, a)
    near = log_gamma_near(m, precision, y, m.select(small, a, a - 1.0))
    head, tail = _log_gamma_far(m, precision, y, log_less_one)
    middle = y < _LOG_GAMMA_HIGH
    return m.select(middle, near, head), m.select(middle, m.const(0.0), tail)


def _gammaln(m: Algebra, precision: int, x: MathValue) -> MathValue:
    a = m.abs(x)
    head, tail = _log_gamma(m, precision, a, _log_less_one)
    sine, _ = sin_cos_half_turns(m, m.abs(_to_nearest_integer(m, x)))
    # a gamma(a) = gamma(1 + a), and gamma(-a) gamma(1 + a) = -pi / sin(pi a)
    factor = m.select(a < _LOG_GAMMA_LOW, m.const(1.0), a)
    reflected = -log(m, sine * (1.0 / _PI) * factor) - (head + tail)
    small = head - log(m, a)
    result = m.select(x < 0.0, reflected, m.select(a < _LOG_GAMMA_LOW, small, head + tail))
    return m.select(a == _INFINITY, x, result)


def gammaln(m: Algebra, x: MathValue) -> MathValue:
    """log |gamma(x)|; infinite at 0, -1, -2, ...

    For ``x < 0`` the error is relative to the larger of the terms of the reflection.
    """
    return in_equal_bits(_gammaln, m, x)


def _gamma(m: Algebra, precision: int, x: MathValue) -> MathValue:
    negative, a = x < 0.0, m.abs(x)
    precise = _precise_log_less_one if precision == 64 else _log_less_one
    head, tail = _log_gamma(m, precision, upper_bounded(m, a, 200.0), precise)
    power = exp_sum(m, m.select(negative, -head, head), m.select(negative, -tail, tail))
    rest = _to_nearest_integer(m, x)
    whole = (x - rest) * 0.5
    sine, _ = sin_cos_half_turns(m, m.abs(rest))
    sine = m.copysign(sine, m.select(whole != m.rint(whole), -rest, rest))
    # gamma(a) = gamma(1 + a) / a, and gamma(-a) gamma(1 + a) = -pi / sin(pi a)
    small = a < _LOG_GAMMA_LOW
    reflected = (m.const(_PI) / sine) * power / m.select(small, m.const(1.0), a)
    result = m.select(negative, reflected, m.select(small, power / x, power))
    result = m.select(negative & (rest == 0.0), m.const(_NAN), result)
    return m.select(x == _INFINITY, x, result)


def gamma(m: Algebra, x: MathValue) -> MathValue:
    """Euler's gamma function; NaN at -1, -2, ..., infinite at 0 with the sign of the zero."""
    return in_double(_gamma, m, x)


# --- digamma and trigamma ------------------------------------------------------------------------


def _digamma(m: Algebra, precision: int, x: MathValue) -> MathValue:
    negative, small = x < 0.0, x < 1.0
    y = m.select(negative, m.const(1.0) - x, m.select(small, x + 1.0, x))
    ratio = poly(m, mapped(y, _DIGAMMA_CENTRE), coefficients.DIGAMMA_TERMS[precision])
    lost = m.select(negative, (m.const(1.0) - y) - x, m.const(0.0))
    near = ((y - _DIGAMMA_ROOT[0]) + (lost - _DIGAMMA_ROOT[1])) * ratio
    positive = m.select(y < 2.0, near, _digamma_far(m, precision, y))
    rest = _to_nearest_integer(m, x)
    sine, cosine = sin_cos_half_turns(m, m.abs(rest))
    # digamma(1 - x) - pi / tan(pi x), and digamma(1 + x) - 1 / x
    quotient = m.select(negative, cosine * _PI, m.const(1.0)) / m.select(negative, m.copysign(sine, rest), x)
    result = m.select(small, positive - quotient, positive)
    result = m.select(negative & (rest == 0.0), m.const(_NAN), result)
    return m.select(x == _INFINITY, x, result)


def _digamma_far(m: Algebra, precision: int, y: MathValue) -> MathValue:
    """``log(y) - 1 / (2 y) - R / y**2`` for y >= 2."""
    k, log_head, log_tail = log_pair(m, y)
    head, low = two_sum(k * LOG2_HIGH[64], log_head)
    low = low + m.mad(k, m.const(LOG2_LOW[64]), log_tail)
    inverse = m.const(1.0) / y
    rest = poly(m, mapped(y, 1.0) - _DIGAMMA_MIDDLE, coefficients.DIGAMMA_TAIL_TERMS[precision])
    return head + (low - inverse * m.mad(inverse, rest, m.const(0.5)))


def digamma(m: Algebra, x: MathValue) -> MathValue:
    """The derivative of gammaln; NaN at -1, -2, ..., infinite at 0.

    For ``x < 0`` the error is relative to the larger of the terms of the reflection.
    """
    return in_equal_bits(_digamma, m, x)


def _trigamma(m: Algebra, precision: int, x: MathValue) -> MathValue:
    negative, small = x < 0.0, x < 1.0
    y = m.select(negative, m.const(1.0) - x, m.select(small, x + 1.0, x))
    inverse = m.const(1.0) / y
    rest = poly(m, mapped(upper_bounded(m, y, 1e300), 1.0) - _TRIGAMMA_MIDDLE, coefficients.TRIGAMMA_TAIL_TERMS[precision])
    positive = m.mad(inverse * inverse, m.mad(inverse, rest, m.const(0.5)), inverse)
    sine, _ = sin_cos_half_turns(m, m.abs(_to_nearest_integer(m, x)))
    root = m.select(negative, m.const(_PI), m.const(1.0)) / m.select(negative, sine, x)
    square = root * root
    result = m.select(negative, square - positive, m.select(small, square + positive, positive))
    return m.select(x == -_INFINITY, m.const(_INFINITY), result)


def trigamma(m: Algebra, x: MathValue) -> MathValue:
    """The derivative of digamma; infinite at 0, -1, -2, ..."""
    return in_double(_trigamma, m, x)


# --- Hurwitz zeta --------------------------------------------------------------------------------

_SHIFT = 10
# B(2j) / (2j)!: what Euler and Maclaurin's series multiplies the derivatives of t**-s with
_EULER_MACLAURIN = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812524e-19,
)  # fmt: skip


def _inverse_power(m: Algebra, s: MathValue, q: MathValue, k: int) -> MathValue:
    """``(q + k)**-s``, with the rounding error of the sum, which the power multiplies by ``s``."""
    if k == 0:
        return magnitude64(m, q, -s)
    base, lost = two_sum(q, m.const(float(k)))
    power = magnitude64(m, base, -s)
    return power - power * (s * lost / base)


def _zeta(m: Algebra, precision: int, s: MathValue, q: MathValue) -> MathValue:
    terms = len(_EULER_MACLAURIN) if precision == 64 else 6
    usable = (s > 1.0) & (q > 0.0) & (q < _INFINITY) & (s < _INFINITY)
    order, start = m.select(usable, s, m.const(2.0)), m.select(usable, q, m.const(1.0))
    total = _inverse_power(m, order, start, 0)
    for k in range(1, _SHIFT):
        total = total + _inverse_power(m, order, start, k)
    a, power = start + float(_SHIFT), _inverse_power(m, order, start, _SHIFT)
    square = a * a
    factor, rest = order / a, m.const(0.0)
    for j in range(terms):
        rest = rest + factor * _EULER_MACLAURIN[j]
        factor = factor * ((order + float(2 * j + 1)) * (order + float(2 * j + 2)) / square)
    # where the power is 0, the factors may have overflowed
    total = total + m.select(power > 0.0, power * ((a / (order - 1.0) + 0.5) + rest), power)
    pole = ((s == 1.0) & (q == q)) | ((s > 1.0) & (q <= 0.0) & (m.floor(q) == q))  # noqa: PLR0124
    other = m.select((s > 1.0) & (q == _INFINITY), m.const(0.0), m.const(_NAN))
    result = m.select(usable, total, m.select(pole, m.const(_INFINITY), other))
    limit = m.select(q > 1.0, m.const(0.0), m.select(q == 1.0, m.const(1.0), m.const(_INFINITY)))
    return m.select((s == _INFINITY) & (q > 0.0), limit, result)


def zeta(m: Algebra, s: MathValue, q: MathValue) -> MathValue:
    """``sum((q + k)**-s for k = 0, 1, ...)`` for ``s > 1`` and ``q > 0``, by Euler and Maclaurin's
    formula; infinite for ``s = 1`` and ``q = 0, -1, ...``, else NaN."""
    return in_double(_zeta, m, s, q)
