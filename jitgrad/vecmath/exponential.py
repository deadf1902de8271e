"""exp exp2 expm1 sinh cosh tanh sigmoid.

Method: ``x = n log 2 + r`` with Cody and Waite's two-part log 2 ("Software Manual for the
Elementary Functions", 1980) and a polynomial in ``r``. Hecker's trick gives ``n``. Its shifting
constant contains the exponent's bias, so ``2**n`` takes one shift. Where ``n`` may exceed the
exponents of normal numbers, the scaling has several factors of which only the last one rounds: a
subnormal result is rounded once.
"""

from __future__ import annotations

from jitgrad.vecmath import coefficients
from jitgrad.vecmath.algebra import (
    Algebra,
    MathValue,
    exponent_bias,
    magic,
    mantissa_bits,
    poly,
    poly_in_blocks,
    power_of_two,
    signed,
)

_LOG2_E = 1.4426950408889634
_LOG_2 = 0.6931471805599453
# log 2 in two parts; the first ends in zero bits, so that n times it is exact even without fma
LOG2_HIGH = {32: 0.693145751953125, 64: 0.6931471805598903}
LOG2_LOW = {32: 1.428606765330187e-06, 64: 5.497923018708371e-14}
# beyond these exp(x) is 0, or overflows
_EXP_LOW = {32: -105.0, 64: -746.0}
_EXP_HIGH = {32: 89.0, 64: 710.0}
# exp(x) is a normal number from the first on, and finite up to the second
_LEAST_NORMAL = {32: -87.33654, 64: -708.3964185322641}
_LARGEST = {32: 88.72283, 64: 709.782712893384}
# for n of positive (or of negative) arguments, 2**n times two to the minus (or plus) this exponent
# is normal
_HALFWAY = {32: 64, 64: 512}


def lower_bounded(m: Algebra, x: MathValue, low: float) -> MathValue:
    """``max(x, low)`` in one instruction; NaN stays NaN because the comparison is false."""
    return m.select(x < low, m.const(low), x)


def upper_bounded(m: Algebra, x: MathValue, high: float) -> MathValue:
    """``min(x, high)`` likewise."""
    return m.select(x > high, m.const(high), x)


def _nearest(m: Algebra, x: MathValue, factor: float, lift: int = 0) -> tuple[MathValue, MathValue]:
    """The integer ``n`` nearest ``x * factor``, as a float, and a normal ``2**(n + lift)``."""
    shift = magic(m) + exponent_bias(m) + lift
    shifted = m.mad(x, m.const(factor), m.const(shift))
    return shifted - shift, _power(m, shifted)


def _power(m: Algebra, shifted: MathValue) -> MathValue:
    """``2**n`` of ``n`` plus the exponent's bias plus the shifting constant."""
    return m.from_bits(m.bits(shifted) << mantissa_bits(m))


def _rest(m: Algebra, x: MathValue, n: MathValue) -> MathValue:
    """``x - n log 2``."""
    return m.fma(n, m.const(-LOG2_LOW[m.width]), m.fma(n, m.const(-LOG2_HIGH[m.width]), x))


def _exp_reduced(m: Algebra, r: MathValue) -> MathValue:
    """exp(r) for ``|r| <= log(2) / 2``, in the fewest operations: softmax has many in a row, which
    wait for nothing."""
    return m.mad(poly(m, r, coefficients.EXP_TERMS[m.width]), r, m.const(1.0))


def _expm1_reduced(m: Algebra, r: MathValue, rest: MathValue | None = None) -> MathValue:
    """exp(r) - 1 for ``|r| <= log(2) / 2``, or ``exp(r) - 1 - r + rest``."""
    return m.mad(r * r, poly_in_blocks(m, r, coefficients.EXPM1_TERMS[m.width]), r if rest is None else rest)


def exp(m: Algebra, x: MathValue) -> MathValue:
    """Exponential, without arithmetic on subnormal numbers, which takes Intel's CPUs some 150 cycles a vector.

    ``2**n`` is added to the exponent's bits. A subnormal result is an integer times the least number: adding
    ``2**mantissa_bits`` rounds to that integer, once, and leaves it in the low bits.
    """
    bits, bias = mantissa_bits(m), exponent_bias(m)
    x = lower_bounded(m, x, _EXP_LOW[m.width])
    shifted = m.mad(x, m.const(_LOG2_E), m.const(magic(m)))
    scaled = m.bits(_exp_reduced(m, _rest(m, x, shifted - magic(m)))) + (m.bits(shifted) << bits)
    multiple = m.from_bits(scaled + (bias - 1 + bits << bits)) + 2.0**bits
    small = m.from_bits(m.bits(multiple) - (bias + bits << bits))
    result = m.select(x < _LEAST_NORMAL[m.width], small, m.from_bits(scaled))
    return m.select(x <= _LARGEST[m.width], result, x + float("inf"))


def _scale(m: Algebra, x: MathValue, i: MathValue) -> MathValue:
    """``x * 2**n``, ``n`` up to twice the exponent range, in the low bits of ``i``."""
    half = i >> 1
    return x * power_of_two(m, half) * power_of_two(m, i - half)


def exp_sum(m: Algebra, high: MathValue, low: MathValue) -> MathValue:
    """exp(high + low), ``low`` a few ulps of ``high``; only the final rounding is near half an
    ulp."""
    x = upper_bounded(m, lower_bounded(m, high, _EXP_LOW[m.width]), _EXP_HIGH[m.width])
    shifted = m.mad(x, m.const(_LOG2_E), m.const(magic(m)))
    reduced = _expm1_reduced(m, _rest(m, x, shifted - magic(m)) + low)
    return _scale(m, reduced + 1.0, m.bits(shifted))


def exp_nonpositive(m: Algebra, x: MathValue) -> MathValue:
    """exp(x) for ``x <= 0``, in fewer operations."""
    x = lower_bounded(m, x, _EXP_LOW[m.width])
    n, power = _nearest(m, x, _LOG2_E, _HALFWAY[m.width])
    return _exp_reduced(m, _rest(m, x, n)) * power * 2.0 ** -_HALFWAY[m.width]


def exp_times(m: Algebra, high: MathValue, low: MathValue, factor: MathValue, rest: MathValue) -> MathValue:
    """``exp(high + low) * (factor + rest)``, ``high <= 0``, with an error near half an ulp."""
    x = lower_bounded(m, high, _EXP_LOW[m.width])
    n, power = _nearest(m, x, _LOG2_E, _HALFWAY[m.width])
    product = m.mad(factor, _expm1_reduced(m, _rest(m, x, n) + low), rest)
    return (factor + product) * power * 2.0 ** -_HALFWAY[m.width]


def exp2(m: Algebra, x: MathValue) -> MathValue:
    """``2**x``, exact for integers."""
    low, high = (-151.0, 129.0) if m.width == 32 else (-1076.0, 1025.0)
    x = upper_bounded(m, lower_bounded(m, x, low), high)
    shifted = x + magic(m)
    return _scale(m, _expm1_reduced(m, (x - (shifted - magic(m))) * _LOG_2) + 1.0, m.bits(shifted))


def expm1(m: Algebra, x: MathValue) -> MathValue:
    """exp(x) - 1 without cancellation."""
    limited = upper_bounded(m, lower_bounded(m, x, -30.0 if m.width == 32 else -60.0), _EXP_HIGH[m.width])
    # 2**n itself overflows where the result does not yet
    n, half = _nearest(m, limited, _LOG2_E, -1)
    reduced = _expm1_reduced(m, _rest(m, limited, n))
    scaled = m.fma(half, reduced, half - 0.5) * 2.0
    return signed(m, m.select(n == 0.0, reduced, scaled), x)


def one_minus_exp(m: Algebra, a: MathValue, more: MathValue) -> MathValue:
    """``1 - exp(-w)`` for ``w = a + a * more`` in [0, 50], without a rounding of ``w``.

    ``(1 - 2**n) - 2**n (exp(r) - 1)`` with ``n <= 0`` adds positive numbers, or nothing for ``n =
    0``.
    """
    n, power = _nearest(m, -m.mad(a, more, a), _LOG2_E)
    # 2**n damps an error proportional to n: log 2 in one part suffices in float32, but not in
    # float64
    head = m.fma(n, m.const(-_LOG_2), -a) if m.width == 32 else _rest(m, -a, n)
    added = a * more
    reduced = head + _expm1_reduced(m, head - added, -added)
    return m.fma(-power, reduced, m.const(1.0) - power)


def sigmoid(m: Algebra, x: MathValue) -> MathValue:
    """``1 / (1 + exp(-x))``, both sides of the fraction scaled so that neither exp(-x) nor the
    result is lost.

    The divisor is ``(1 + 2**n (exp(r) - 1)) + 2**n``: the smaller part is rounded before the larger
    joins it.
    """
    limited = upper_bounded(m, lower_bounded(m, x, _EXP_LOW[m.width]), 30.0 if m.width == 32 else 60.0)
    n, power = _nearest(m, limited, -_LOG2_E, -_HALFWAY[m.width])
    r = _rest(m, -limited, n)
    one = m.const(2.0 ** -_HALFWAY[m.width])
    return one / (m.fma(r * poly_in_blocks(m, r, coefficients.EXP_TERMS[m.width]), power, one) + power)


def _one_minus_exp_twice(m: Algebra, s: MathValue, rest: MathValue) -> MathValue:
    """``1 - exp(-2 s) - 2 s + rest`` for ``|s| <= log(2) / 4``: exp(r) - 1 with the powers of ``r =
    -2 s`` in the terms."""
    terms = tuple(4.0 * (-2.0) ** k * c for k, c in enumerate(coefficients.EXPM1_TERMS[m.width]))
    return m.fma(-(s * s), poly_in_blocks(m, s, terms), rest)


def tanh(m: Algebra, x: MathValue) -> MathValue:
    """``(1 - E) / (1 + E)`` with ``E = exp(-2|x|)``, both sides made of ``2**n`` and ``exp(r) - 1``
    with one rounding.

    For small ``x``, ``n`` is 0 and ``1 - E`` the reduced function itself. The negative exponent
    keeps the divisor just below 2 there, where a rounding is relatively smaller than just above.
    """
    a = upper_bounded(m, m.abs(x), 10.0 if m.width == 32 else 22.0)
    n, power = _nearest(m, a, -2.0 * _LOG2_E)
    if m.width == 32:  # 2**n damps the error of a log 2 in one part
        s = m.fma(n, m.const(0.5 * _LOG_2), a)
        lost = _one_minus_exp_twice(m, s, s + s)
    else:
        head, low = m.fma(n, m.const(0.5 * LOG2_HIGH[64]), a), n * (0.5 * LOG2_LOW[64])
        lost = (head + head) + _one_minus_exp_twice(m, head + low, low + low)
    result = m.fma(power, lost, m.const(1.0) - power) / m.fma(-power, lost, power + 1.0)
    return signed(m, result, x)


def _half_exp(m: Algebra, a: MathValue) -> MathValue:
    """``exp(a) / 2`` for ``a >= 0``; overflows only where that does."""
    limited = upper_bounded(m, a, _EXP_HIGH[m.width] + 1.0)
    n, quarter = _nearest(m, limited, _LOG2_E, -2)
    return _exp_reduced(m, _rest(m, limited, n)) * quarter * 2.0


def sinh(m: Algebra, x: MathValue) -> MathValue:
    """A polynomial up to 1, then ``(exp(x) - exp(-x)) / 2``."""
    a = m.abs(x)
    z = x * x
    small = m.mad(x * z, poly(m, z, coefficients.SINH_TERMS[m.width]), x)
    half = _half_exp(m, a)
    return m.select(a < 1.0, small, m.copysign(half - m.const(0.25) / half, x))


def cosh(m: Algebra, x: MathValue) -> MathValue:
    """``(exp(x) + exp(-x)) / 2``."""
    half = _half_exp(m, m.abs(x))
    return half + m.const(0.25) / half
