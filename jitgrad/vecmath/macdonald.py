"""Macdonald's functions K0 and K1, the modified Bessel functions of the second kind, and the same times ``exp(x)``.

Up to 1 a logarithm times I and a polynomial in ``x*x``; beyond, ``sqrt(x) exp(x) K(x)`` is a polynomial in
``(x - 1) / (x + 1)`` (Shepherd and Laframboise, Mathematics of Computation 36, 1981, for the variable). float32 is
computed in float64.
"""

from __future__ import annotations

from functools import partial

from jitgrad.vecmath import bessel_coefficients as coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly
from jitgrad.vecmath.exponential import exp, exp_times, lower_bounded, upper_bounded
from jitgrad.vecmath.gamma import in_double
from jitgrad.vecmath.logarithm import log

_INFINITY = float("inf")
_NEAR = 1.0
_MOST = 1e17  # from here on the variable is 1
_LOG_TERMS = (coefficients.K0_LOG_TERMS, coefficients.K1_LOG_TERMS)
_NEAR_TERMS = (coefficients.K0_NEAR_TERMS, coefficients.K1_NEAR_TERMS)
_FAR_TERMS = (coefficients.K0_FAR_TERMS, coefficients.K1_FAR_TERMS)


def half_line(m: Algebra, x: MathValue, centre: float) -> MathValue:
    """``(x - centre) / (x + centre)`` from 1 on."""
    x = upper_bounded(m, lower_bounded(m, x, _NEAR), _MOST)
    return (x - centre) / (x + centre)


def _near(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    """K for ``0 < x <= 1``."""
    x = upper_bounded(m, x, _NEAR)
    z = x * x
    product = log(m, x) * poly(m, z, _LOG_TERMS[order][precision])
    rest = poly(m, z, _NEAR_TERMS[order][precision])
    return rest - product if order == 0 else (product + rest) * x + m.const(1.0) / x


def _far(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    """``exp(x) K(x)`` from 1 on."""
    return poly(m, half_line(m, x, 1.0), _FAR_TERMS[order][precision]) / m.sqrt(lower_bounded(m, x, _NEAR))


def _bessel(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    zero = m.const(0.0)
    far = exp_times(m, -x, zero, _far(m, precision, x, order), zero)
    result = m.select(x <= _NEAR, _near(m, precision, x, order), far)
    return m.select(x == 0.0, m.const(_INFINITY), result)


def _scaled(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    near = exp(m, upper_bounded(m, x, _NEAR)) * _near(m, precision, x, order)
    result = m.select(x <= _NEAR, near, _far(m, precision, x, order))
    return m.select(x == 0.0, m.const(_INFINITY), result)


def k0(m: Algebra, x: MathValue) -> MathValue:
    """Macdonald's function of order 0; NaN for negative ``x``."""
    return in_double(partial(_bessel, order=0), m, x)


def k1(m: Algebra, x: MathValue) -> MathValue:
    """Macdonald's function of order 1; NaN for negative ``x``."""
    return in_double(partial(_bessel, order=1), m, x)


def k0e(m: Algebra, x: MathValue) -> MathValue:
    """``exp(x) k0(x)``."""
    return in_double(partial(_scaled, order=0), m, x)


def k1e(m: Algebra, x: MathValue) -> MathValue:
    """``exp(x) k1(x)``."""
    return in_double(partial(_scaled, order=1), m, x)
