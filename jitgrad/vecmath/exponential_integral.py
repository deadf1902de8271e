"""The exponential integrals E1 and Ei.

E1 is ``-log x`` and a polynomial up to 1, and ``exp(-x) / x`` times a polynomial in ``(x - 2) / (x + 2)`` beyond. Ei is
``log(x / zero)`` and a polynomial times ``x - zero`` up to 6, ``exp(x) / x`` times polynomials in ``1 / x`` beyond
(Cody and Thacher, Mathematics of Computation 22, 1968, and 23, 1969, for these forms), and ``-E1(-x)`` below 0. float32
is computed in float64. No step is fused, because sums cancel.
"""

from __future__ import annotations

from jitgrad.vecmath import bessel_coefficients as coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly
from jitgrad.vecmath.exponential import exp_sum, exp_times, lower_bounded, upper_bounded
from jitgrad.vecmath.logarithm import log, log1p
from jitgrad.vecmath.macdonald import half_line

_INFINITY = float("inf")
_E1_NEAR, _EI_NEAR, _EI_MIDDLE = 1.0, 6.0, 3.0
_ZERO, _ZERO_LOW, _LOG_ZERO = 0.3725074107813666, 1.3140183414386028e-17, -0.9874983466453419
# exp(x) overflows where Ei(x), by a factor of x smaller, does not: exp(x - 5) serves
_BACK, _EXP_BACK = 5.0, 148.4131591025766
# beginnings of the intervals of x, and their polynomials in 1 / x
_LARGE = (
    (6.0, 12.0, coefficients.EI_6_TERMS),
    (12.0, 24.0, coefficients.EI_12_TERMS),
    (24.0, 48.0, coefficients.EI_24_TERMS),
    (48.0, _INFINITY, coefficients.EI_48_TERMS),
)


def _e1(m: Algebra, precision: int, x: MathValue) -> MathValue:
    """E1, inf at 0 and NaN below."""
    close = upper_bounded(m, x, _E1_NEAR)
    near = poly(m, close, coefficients.E1_NEAR_TERMS[precision]) - log(m, close)
    factor = poly(m, half_line(m, x, 2.0), coefficients.E1_FAR_TERMS[precision]) / lower_bounded(m, x, _E1_NEAR)
    zero = m.const(0.0)
    return m.select(x <= _E1_NEAR, near, exp_times(m, -x, zero, factor, zero))


def _ei_near(m: Algebra, precision: int, x: MathValue) -> MathValue:
    """Ei for ``0 < x <= 6``."""
    distance = (x - _ZERO) - _ZERO_LOW
    ratio = distance / _ZERO
    close = m.abs(ratio) < 0.5
    logarithm = m.select(close, log1p(m, m.select(close, ratio, m.const(0.0))), log(m, x) - _LOG_ZERO)
    return logarithm + distance * poly(m, x - _EI_MIDDLE, coefficients.EI_NEAR_TERMS[precision])


def _ei_far(m: Algebra, precision: int, x: MathValue) -> MathValue:
    """Ei from 6 on."""
    x = lower_bounded(m, x, _EI_NEAR)
    inverse = m.const(1.0) / x
    factor = m.const(0.0)
    for start, end, terms in _LARGE:
        centre, radius = (1 / start + 1 / end) / 2, (1 / start - 1 / end) / 2
        inside = m.select(x >= start, lower_bounded(m, inverse, 1 / end), m.const(centre))
        factor = m.select(x >= start, poly(m, (inside - centre) * (1 / radius), terms[precision]), factor)
    power = exp_sum(m, x - _BACK, m.const(0.0))
    return m.select(x < _INFINITY, power * (factor * inverse * _EXP_BACK), x)


def _ei(m: Algebra, precision: int, x: MathValue) -> MathValue:
    positive = m.select(x > 0.0, x, m.const(1.0))
    near = _ei_near(m, precision, upper_bounded(m, positive, _EI_NEAR))
    result = m.select(x <= _EI_NEAR, near, _ei_far(m, precision, x))
    return m.select(x > 0.0, result, -_e1(m, precision, -x))


def exp1(m: Algebra, x: MathValue) -> MathValue:
    """The integral of ``exp(-t) / t`` from ``x`` to infinity; NaN for negative ``x``."""
    e = m.unfused()
    return _e1(e, 64, x) if m.width == 64 else m.narrow(_e1(e.wide(), 32, m.widen(x)))


def expi(m: Algebra, x: MathValue) -> MathValue:
    """The principal value of the integral of ``exp(t) / t`` from -infinity to ``x``."""
    e = m.unfused()
    return _ei(e, 64, x) if m.width == 64 else m.narrow(_ei(e.wide(), 32, m.widen(x)))
