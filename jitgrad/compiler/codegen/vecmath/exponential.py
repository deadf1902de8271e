"""exp and what is made from it: exp2 expm1 sinh cosh tanh sigmoid.

Method: ``x = n log 2 + r`` with Cody and Waite's two-part log 2 ("Software Manual for the Elementary Functions", 1980),
a polynomial for ``exp(r) - 1`` and a scaling by ``2**n`` in two factors, so that a subnormal result is rounded once.
"""

from __future__ import annotations

from jitgrad.compiler.codegen.vecmath import coefficients
from jitgrad.compiler.codegen.vecmath.algebra import Algebra, Value, magic, poly, power_of_two, quick_two_sum

_LOG2_E = 1.4426950408889634
# log 2 in two parts; the first has zeros at the end, so that n times it is exact even without fma
LOG2_HIGH = {32: 0.693145751953125, 64: 0.6931471805598903}
LOG2_LOW = {32: 1.428606765330187e-06, 64: 5.497923018708371e-14}
# beyond these exp(x) is 0, or overflows
_EXP_LOW = {32: -105.0, 64: -746.0}
_EXP_HIGH = {32: 89.0, 64: 710.0}


def _clamp(m: Algebra, x: Value, low: float, high: float) -> Value:
    """``x`` within [low, high]; NaN stays NaN because both comparisons fail."""
    x = m.select(x < low, m.const(low), x)
    return m.select(x > high, m.const(high), x)


def _nearest(m: Algebra, x: Value, factor: float) -> tuple[Value, Value]:
    """``n``, the integer nearest ``x * factor``, as a float and as an integer of which only the low 11 bits (float32:
    9 bits) are meant: all that an exponent field keeps."""
    shifted = m.mad(x, m.const(factor), m.const(magic(m)))
    return shifted - magic(m), m.bits(shifted)


def _reduce(m: Algebra, x: Value) -> tuple[Value, Value, Value]:
    """``n`` as by ``_nearest`` and ``r`` with ``x = n log 2 + r``."""
    n, i = _nearest(m, x, _LOG2_E)
    return n, i, m.fma(n, m.const(-LOG2_LOW[m.width]), m.fma(n, m.const(-LOG2_HIGH[m.width]), x))


def _expm1_reduced(m: Algebra, r: Value) -> Value:
    """exp(r) - 1 for ``|r| <= log(2) / 2``."""
    return m.mad(r * r, poly(m, r, coefficients.EXP[m.width]), r)


def _scale(m: Algebra, x: Value, i: Value) -> Value:
    """``x * 2**n`` for the integer form of an ``n`` up to twice the exponent range."""
    half = i >> 1
    return x * power_of_two(m, half) * power_of_two(m, i - half)


def exp_sum(m: Algebra, high: Value, low: Value) -> Value:
    """exp(high + low) for a ``low`` of at most a few ulps of ``high``, in the domain of ``exp``."""
    _, i, r = _reduce(m, _clamp(m, high, _EXP_LOW[m.width], _EXP_HIGH[m.width]))
    return _scale(m, _expm1_reduced(m, r + low) + 1.0, i)


def exp_times(m: Algebra, high: Value, low: Value, factor: Value, rest: Value) -> Value:
    """``exp(high + low) * (factor + rest)`` with the final rounding alone near half an ulp."""
    _, i, r = _reduce(m, _clamp(m, high, _EXP_LOW[m.width], _EXP_HIGH[m.width]))
    return _scale(m, factor + m.mad(factor, _expm1_reduced(m, r + low), rest), i)


def exp(m: Algebra, x: Value) -> Value:
    """Exponential."""
    _, i, r = _reduce(m, _clamp(m, x, _EXP_LOW[m.width], _EXP_HIGH[m.width]))
    return _scale(m, _expm1_reduced(m, r) + 1.0, i)


def exp2(m: Algebra, x: Value) -> Value:
    """``2**x``, exact for integers."""
    x = _clamp(m, x, *((-151.0, 129.0) if m.width == 32 else (-1076.0, 1025.0)))
    n, i = _nearest(m, x, 1.0)
    return _scale(m, _expm1_reduced(m, (x - n) * 0.6931471805599453) + 1.0, i)


def expm1(m: Algebra, x: Value) -> Value:
    """exp(x) - 1 without cancellation."""
    limit = 30.0 if m.width == 32 else 60.0
    n, i, r = _reduce(m, _clamp(m, x, -limit, _EXP_HIGH[m.width]))
    reduced = _expm1_reduced(m, r)
    half = power_of_two(m, i - 1)  # 2**n itself overflows where the result does not yet
    scaled = m.fma(half, reduced, half - 0.5) * 2.0
    return m.copysign(m.select(n == 0.0, reduced, scaled), x)


def sigmoid(m: Algebra, x: Value) -> Value:
    """``1 / (1 + exp(-x))``, written with exp(-|x|), which cannot overflow."""
    small = exp(m, -m.abs(x))
    divisor, lost = quick_two_sum(m.const(1.0), small)
    top = m.select(x >= 0.0, m.const(1.0), small)
    inverse = m.const(1.0) / divisor
    quotient = top * inverse
    residual = m.fma(-quotient, divisor, top) - quotient * lost
    return m.mad(residual, inverse, quotient)


def tanh(m: Algebra, x: Value) -> Value:
    """A polynomial up to 0.6, then ``1 - 2 / (exp(2|x|) + 1)``."""
    a = m.abs(x)
    z = x * x
    small = m.mad(x * z, poly(m, z, coefficients.TANH[m.width]), x)
    limit = 20.0 if m.width == 32 else 44.0
    twice = a + a
    _, i, r = _reduce(m, m.select(twice > limit, m.const(limit), twice))
    power = power_of_two(m, i)
    large = m.const(1.0) - m.const(2.0) / m.mad(power, _expm1_reduced(m, r), power + 1.0)
    return m.copysign(m.select(a < 0.6, small, large), x)


def _half_exp(m: Algebra, a: Value) -> Value:
    """``exp(a) / 2`` for ``a >= 0``; overflows only where that does."""
    _, i, r = _reduce(m, _clamp(m, a, 0.0, _EXP_HIGH[m.width] + 1.0))
    return _scale(m, _expm1_reduced(m, r) + 1.0, i - 1)


def sinh(m: Algebra, x: Value) -> Value:
    """A polynomial up to 1, then ``(exp(x) - exp(-x)) / 2``."""
    a = m.abs(x)
    z = x * x
    small = m.mad(x * z, poly(m, z, coefficients.SINH[m.width]), x)
    half = _half_exp(m, a)
    return m.select(a < 1.0, small, m.copysign(half - m.const(0.25) / half, x))


def cosh(m: Algebra, x: Value) -> Value:
    """``(exp(x) + exp(-x)) / 2``."""
    half = _half_exp(m, m.abs(x))
    return half + m.const(0.25) / half
