"""The Bessel functions J0, J1, Y0 and Y1.

Up to 1 the power series of J; up to 8 polynomials without the zeros of the function, times the
distances to these zeros, so that results beside them are accurate. Beyond, the factors P and Q of
Hankel's expansion are polynomials in ``(8 / x)**2`` (Watson, "Theory of Bessel functions", 7.3; the
intervals are those of Hart, "Computer approximations", 1968), and the error is relative to
``sqrt(2 / (pi x))``, the amplitude. float32 is computed in float64. No step is fused, because sums
cancel.
"""

from __future__ import annotations

import math
from functools import partial

from jitgrad.vecmath import bessel_coefficients as coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly
from jitgrad.vecmath.exponential import lower_bounded, upper_bounded
from jitgrad.vecmath.gamma import in_double
from jitgrad.vecmath.logarithm import log, log1p
from jitgrad.vecmath.trigonometric import cos, sin

_INFINITY = float("inf")
_TWO_OVER_PI, _INVERSE_ROOT_PI = 0.6366197723675814, 0.5641895835477563
_J_NEAR, _Y_NEAR, _FAR = 4.0, 3.0, 8.0
_J_MIDDLE, _Y_MIDDLE = 6.0, 5.5
# zeros as a head and a tail, by order
_J_ZEROS = (
    ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17)),
    ((3.8317059702075125, -1.5269184090088067e-16), (7.015586669815619, -9.414165653410389e-17)),
)
_Y_ZEROS = (
    (
        (0.8935769662791675, 2.6596231539720385e-17),
        (3.957678419314858, -1.0764340697562706e-16),
        (7.086051060301773, -8.835285723085408e-17),
    ),
    ((2.197141326031017, -4.8259835876454966e-17), (5.429681040794135, 4.162514026670377e-16)),
)
_LOG_Y_ZEROS = (-0.11252280788079415, 0.7871571181569951)
_J_NEAR_TERMS = (coefficients.J0_NEAR_TERMS, coefficients.J1_NEAR_TERMS)
_J_MID_TERMS = (coefficients.J0_MID_TERMS, coefficients.J1_MID_TERMS)
_Y_NEAR_TERMS = (coefficients.Y0_NEAR_TERMS, coefficients.Y1_NEAR_TERMS)
_Y_MID_TERMS = (coefficients.Y0_MID_TERMS, coefficients.Y1_MID_TERMS)
_P_TERMS = (coefficients.P0_FAR_TERMS, coefficients.P1_FAR_TERMS)
_Q_TERMS = (coefficients.Q0_FAR_TERMS, coefficients.Q1_FAR_TERMS)
# the power series, for up to 1: exact at 0
_J_SERIES = tuple(
    tuple((-0.25) ** k / (2**order * math.factorial(k) * math.factorial(k + order)) for k in range(9)) for order in (0, 1)
)


def _distance(x: MathValue, zero: tuple[float, float]) -> MathValue:
    return (x - zero[0]) - zero[1]


def _first_kind_near(m: Algebra, precision: int, a: MathValue, order: int) -> MathValue:
    """J for ``0 <= a <= 4``."""
    zero, z = _J_ZEROS[order][0], a * a
    factor = _distance(a, zero) * (a + zero[0]) * poly(m, z * 0.125 - 1.0, _J_NEAR_TERMS[order][precision])
    factor = m.select(a <= 1.0, poly(m, upper_bounded(m, z, 1.0), _J_SERIES[order]), factor)
    return factor if order == 0 else factor * a


def _hankel(m: Algebra, precision: int, a: MathValue, order: int) -> tuple[MathValue, MathValue]:
    """J and Y from 8 on."""
    x = lower_bounded(m, a, _FAR)
    inverse = m.const(_FAR) / x
    w = inverse * inverse
    p = poly(m, w, _P_TERMS[order][precision])
    q = poly(m, w, _Q_TERMS[order][precision]) * inverse
    sine, cosine = sin(m, x), cos(m, x)
    amplitude = m.const(_INVERSE_ROOT_PI) / m.sqrt(x)
    both, difference = sine + cosine, sine - cosine
    if order == 0:
        return (p * both - q * difference) * amplitude, (p * difference + q * both) * amplitude
    return (p * difference + q * both) * amplitude, (q * difference - p * both) * amplitude


def _first_kind(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    a = m.abs(x)
    near = _first_kind_near(m, precision, upper_bounded(m, a, _J_NEAR), order)
    middle = upper_bounded(m, a, _FAR)
    mid = _distance(middle, _J_ZEROS[order][1]) * poly(m, middle - _J_MIDDLE, _J_MID_TERMS[order][precision])
    far, _ = _hankel(m, precision, a, order)
    result = m.select(a <= _J_NEAR, near, m.select(a <= _FAR, mid, far))
    result = m.select(a == _INFINITY, m.const(0.0), result)
    return result if order == 0 else m.from_bits(m.bits(result) ^ (m.bits(x) & -(1 << 63)))


def _second_kind_near(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    """Y for ``0 < x <= 3``: a multiple of ``log(x / zero) J(x)``, and a rest with the same zero."""
    zero = _Y_ZEROS[order][0]
    distance = _distance(x, zero)
    ratio = distance / zero[0]
    close = m.abs(ratio) < 0.5
    logarithm = m.select(close, log1p(m, m.select(close, ratio, m.const(0.0))), log(m, x) - _LOG_Y_ZEROS[order])
    rest = distance * (x + zero[0]) * poly(m, x * x, _Y_NEAR_TERMS[order][precision])
    rest = rest if order == 0 else rest / x
    return _first_kind_near(m, precision, x, order) * logarithm * _TWO_OVER_PI + rest


def _second_kind(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    near = _second_kind_near(m, precision, upper_bounded(m, x, _Y_NEAR), order)
    middle = upper_bounded(m, x, _FAR)
    mid = poly(m, middle - _Y_MIDDLE, _Y_MID_TERMS[order][precision])
    for zero in _Y_ZEROS[order][1:]:
        mid = mid * _distance(middle, zero)
    _, far = _hankel(m, precision, x, order)
    result = m.select(x <= _Y_NEAR, near, m.select(x <= _FAR, mid, far))
    result = m.select(x == _INFINITY, m.const(0.0), result)
    result = m.select(x == 0.0, m.const(-_INFINITY), result)
    return m.select(x < 0.0, m.const(float("nan")), result)


def j0(m: Algebra, x: MathValue) -> MathValue:
    """The Bessel function of the first kind of order 0."""
    return in_double(partial(_first_kind, order=0), m.unfused(), x)


def j1(m: Algebra, x: MathValue) -> MathValue:
    """The Bessel function of the first kind of order 1."""
    return in_double(partial(_first_kind, order=1), m.unfused(), x)


def y0(m: Algebra, x: MathValue) -> MathValue:
    """The Bessel function of the second kind of order 0; NaN for negative ``x``."""
    return in_double(partial(_second_kind, order=0), m.unfused(), x)


def y1(m: Algebra, x: MathValue) -> MathValue:
    """The Bessel function of the second kind of order 1; NaN for negative ``x``."""
    return in_double(partial(_second_kind, order=1), m.unfused(), x)
