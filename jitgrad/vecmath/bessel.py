"""The modified Bessel functions I0 and I1, and the same times ``exp(-|x|)``.

Up to 8 a polynomial in ``x*x``, whose terms are all positive as in the power series; beyond,
``sqrt(x) exp(-x) I(x)`` is a polynomial in ``8 / x``. float32 is computed in float64.
"""

from __future__ import annotations

from jitgrad.vecmath import special_coefficients as coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly
from jitgrad.vecmath.exponential import exp_nonpositive, exp_sum, upper_bounded

_SERIES_END = 8.0
_INFINITY = float("inf")
# exp(x) overflows where I(x), by a factor of sqrt(2 pi x) smaller, does not: exp(x - 5) serves
_BACK, _EXP_BACK = 5.0, 148.4131591025766
_SERIES = (coefficients.I0_TERMS, coefficients.I1_TERMS)
_TAIL = (coefficients.I0_TAIL_TERMS, coefficients.I1_TAIL_TERMS)


def _parts(m: Algebra, precision: int, a: MathValue, order: int) -> tuple[MathValue, MathValue]:
    """I(a) for ``a <= 8``, and ``exp(-a) I(a)`` for larger ``a``."""
    near = upper_bounded(m, a, _SERIES_END)
    series = poly(m, near * near, _SERIES[order][precision])
    far = m.select(a > _SERIES_END, a, m.const(_SERIES_END))
    tail = poly(m, m.const(_SERIES_END) / far, _TAIL[order][precision]) / m.sqrt(far)
    return series if order == 0 else series * near, tail


def _bessel(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    a = m.abs(x)
    series, tail = _parts(m, precision, a, order)
    large = exp_sum(m, a - _BACK, m.const(0.0)) * (tail * _EXP_BACK)
    result = m.select(a <= _SERIES_END, series, large)
    result = m.select(a == _INFINITY, a, result)
    return result if order == 0 else m.copysign(result, x)


def _scaled(m: Algebra, precision: int, x: MathValue, order: int) -> MathValue:
    a = m.abs(x)
    series, tail = _parts(m, precision, a, order)
    near = upper_bounded(m, a, _SERIES_END)
    result = m.select(a <= _SERIES_END, series * exp_nonpositive(m, -near), tail)
    result = m.select(a == a, result, a)  # noqa: PLR0124
    return result if order == 0 else m.copysign(result, x)


def i0(m: Algebra, x: MathValue) -> MathValue:
    """The modified Bessel function of order 0."""
    return _bessel(m, 64, x, 0) if m.width == 64 else m.narrow(_bessel(m.wide(), 32, m.widen(x), 0))


def i1(m: Algebra, x: MathValue) -> MathValue:
    """The modified Bessel function of order 1."""
    return _bessel(m, 64, x, 1) if m.width == 64 else m.narrow(_bessel(m.wide(), 32, m.widen(x), 1))


def i0e(m: Algebra, x: MathValue) -> MathValue:
    """``exp(-|x|) i0(x)``."""
    return _scaled(m, 64, x, 0) if m.width == 64 else m.narrow(_scaled(m.wide(), 32, m.widen(x), 0))


def i1e(m: Algebra, x: MathValue) -> MathValue:
    """``exp(-|x|) i1(x)``."""
    return _scaled(m, 64, x, 1) if m.width == 64 else m.narrow(_scaled(m.wide(), 32, m.widen(x), 1))
