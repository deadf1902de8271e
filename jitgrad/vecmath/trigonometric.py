"""sin cos tan for every finite argument.

The argument is reduced to ``n pi/2 + (r + s)``. Both reductions, Cody and Waite's for moderate
arguments and Payne and Hanek's ("Radian reduction for trigonometric functions", SIGNUM Newsletter
18, 1983) for all others, are separate: the second runs only for vectors with a large argument
(``Algebra.beyond``).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from jitgrad.vecmath import coefficients
from jitgrad.vecmath.algebra import (
    Algebra,
    MathValue,
    magic,
    poly,
    quick_two_sum,
    to_int,
    two_product,
    two_sum,
)
from jitgrad.vecmath.logarithm import exponent_of

_TWO_OVER_PI = 0.6366197723675814
# pi/2 as a sum of three floats of the format
_HALF_PI = {
    32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
# up to here n is exact in the product with each part
_MODERATE = {32: 2.0**15, 64: 2.0**27}


def _pi(bits: int) -> int:
    """``floor(pi * 2**bits)`` by Machin's formula."""
    one = 1 << (bits + 64)

    def arctan_of_inverse(d: int) -> int:
        total = term = one // d
        k, sign = 3, -1
        while term:
            term //= d * d
            total += sign * (term // k)
            k, sign = k + 2, -sign
        return total

    return (16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)) >> 64


def _truncated(value: Fraction, bits: int) -> float:
    """The leading ``bits`` bits of a positive value below 2."""
    shift = bits - 1 - (value.numerator.bit_length() - value.denominator.bit_length() - 1)
    whole = int(value * 2**shift) if shift >= 0 else int(value / 2**-shift)
    excess = whole.bit_length() - bits
    whole = whole >> excess << excess if excess > 0 else whole
    return float(Fraction(whole) / Fraction(2) ** shift)


@cache
def _chunks() -> tuple[float, ...]:
    """1/(2 pi) in five chunks of 29 bits by position (a float32 times one is exact in float64) and
    a rest of 53."""
    bits = 400
    inverse = Fraction((1 << (2 * bits)) // (2 * _pi(bits)), 2**bits)
    chunks = []
    for i in range(1, 6):
        chunks.append(Fraction(int(inverse * 2 ** (29 * i)), 2 ** (29 * i)))
        inverse -= chunks[-1]
    return (*map(float, chunks), _truncated(inverse, 53))


_FIRST_EXPONENT = 24
_BIN = 8


@cache
def _windows() -> tuple[tuple[float, ...], ...]:
    """Four float64 columns of 2/pi by bin of eight exponents, without the bits that only add
    multiples of four.

    Arguments of exponent ``E`` are multiples of ``2**(E - 52)``: bits of 2/pi from ``2**(54 - E)``
    up are dropped. The window is scaled up by the bin's exponent, and the argument scaled down, so
    that nothing overflows.
    """
    bits = 1400
    two_over_pi = Fraction((2 << (2 * bits)) // _pi(bits), 2**bits)
    columns: list[list[float]] = [[], [], [], []]
    for first in range(_FIRST_EXPONENT, 1024, _BIN):
        rest = (two_over_pi % Fraction(2) ** (54 - first)) * Fraction(2) ** first
        for column in columns:
            column.append(_truncated(rest, 53))
            rest -= Fraction(column[-1])
    return tuple(tuple(column) for column in columns)


Angle = tuple[MathValue, MathValue, MathValue]
"""``n`` (an integer; only its two low bits count), ``r`` and ``s`` of an argument ``n pi/2 + r +
s``."""


def _reduce_moderate(m: Algebra, a: MathValue) -> Angle:
    """For ``0 <= a`` up to the bound ``_MODERATE``."""
    first, second, third = _HALF_PI[m.width]
    shifted = m.mad(a, m.const(_TWO_OVER_PI), m.const(magic(m)))
    n = shifted - magic(m)
    # n * first and a agree in all bits above the result's, so this is exact
    exact = m.fma(n, m.const(-first), a)
    product, lost = two_product(m, n, m.const(second))
    r = exact - product
    s = m.mad(n, m.const(-third), ((exact - r) - product) - lost)
    return m.bits(shifted), r, s


def _reduce_large32(m: Algebra, a: MathValue) -> Angle:
    """For any finite float32: a chunk times ``a``, modulo a turn, is exact in float64."""
    wide = m.wide()
    x = m.widen(a)
    turns = wide.const(0.0)
    for chunk in _chunks():
        part = x * chunk
        turns = turns + (part - wide.rint(part))
    quarters = turns * 4.0
    n = m.rint(m.narrow(quarters))
    angle = (quarters - m.widen(n)) * _HALF_PI[64][0]
    r = m.narrow(angle)
    return to_int(m, n), r, m.narrow(angle - m.widen(r))


def _reduce_large64(m: Algebra, a: MathValue) -> Angle:
    """For any finite ``a >= 2**24``."""
    window = (exponent_of(m, a) - _FIRST_EXPONENT) >> 3
    x = m.from_bits(m.bits(a) - (((window << 3) + _FIRST_EXPONENT) << 52))
    parts = [two_product(m, x, m.lookup(column, window)) for column in _windows()]
    total, low = two_sum(_modulo_four(m, parts[0][0]), _modulo_four(m, parts[0][1]))
    total, lost = two_sum(total, _modulo_four(m, parts[1][0]))
    n = m.rint(total)
    total, lost = two_sum(total - n, low + lost)
    total, low = two_sum(total, parts[1][1])
    total, low2 = two_sum(total, parts[2][0])
    total, lost = quick_two_sum(total, (lost + low) + (low2 + (parts[2][1] + parts[3][0])))
    high, tail = m.const(_HALF_PI[64][0]), m.const(_HALF_PI[64][1])
    r, rest = two_product(m, total, high)
    r, s = quick_two_sum(r, m.mad(total, tail, m.mad(lost, high, rest)))
    return to_int(m, n), r, s


def _modulo_four(m: Algebra, x: MathValue) -> MathValue:
    return x - m.rint(x * 0.25) * 4.0


def _reduce_large(m: Algebra, x: MathValue) -> Angle:
    """The angle of ``|x|`` beyond the bound; NaN for infinity."""
    a = m.abs(x)
    usable = m.select((a > _MODERATE[m.width]) & (a < float("inf")), a, m.const(_MODERATE[m.width]))
    n, r, s = (_reduce_large32 if m.width == 32 else _reduce_large64)(m, usable)
    return n, m.select(a < float("inf"), r, m.const(float("nan"))), s


def _sin_reduced(m: Algebra, r: MathValue, s: MathValue) -> tuple[MathValue, MathValue]:
    """sin(r + s) as two summands, the first much the larger."""
    z = r * r
    return r, m.mad(r * z, poly(m, z, coefficients.SIN_TERMS[m.width]), s)


def _cos_reduced(m: Algebra, r: MathValue, s: MathValue) -> tuple[MathValue, MathValue]:
    """cos(r + s) likewise."""
    z = r * r
    half = z * 0.5
    head = m.const(1.0) - half
    rest = m.mad(z * z, poly(m, z, coefficients.COS_TERMS[m.width]), -(r * s))
    return head, ((m.const(1.0) - head) - half) + rest


def _sine(m: Algebra, r: MathValue, s: MathValue) -> MathValue:
    """sin(r + s)."""
    high, low = _sin_reduced(m, r, s)
    return high + low


def _cosine(m: Algebra, r: MathValue) -> MathValue:
    """cos(r + s) without ``s``, which is half an ulp of ``r`` and changes it by a third of one."""
    z = r * r
    return m.mad(z, m.mad(z, poly(m, z, coefficients.COS_TERMS[m.width]), m.const(-0.5)), m.const(1.0))


def _odd(m: Algebra, n: MathValue) -> MathValue:
    """Whether bit 0 of ``n`` is set, as a sign, which a select instruction can test."""
    return n << (m.width - 1) < 0


def _negate_by(m: Algebra, result: MathValue, sign: MathValue) -> MathValue:
    """``result`` negated where the integer ``sign`` is negative."""
    return m.from_bits(m.bits(result) ^ (sign & -(1 << (m.width - 1))))


def _sin_of(m: Algebra, x: MathValue, angle: Angle) -> MathValue:
    n, r, s = angle
    result = m.select(_odd(m, n), _cosine(m, r), _sine(m, r, s))
    return _negate_by(m, result, n << (m.width - 2) ^ m.bits(x))


def _cos_of(m: Algebra, x: MathValue, angle: Angle) -> MathValue:
    n, r, s = angle
    result = m.select(_odd(m, n), _sine(m, r, s), _cosine(m, r))
    return _negate_by(m, result, n + 1 << (m.width - 2))


def _tan_of(m: Algebra, x: MathValue, angle: Angle) -> MathValue:
    """The quotient of sine and cosine, both with their rounding errors, in one division."""
    n, r, s = angle
    sine, sine_low = quick_two_sum(*_sin_reduced(m, r, s))
    cosine, cosine_low = quick_two_sum(*_cos_reduced(m, r, s))
    odd = _odd(m, n)
    top, top_low = m.select(odd, -cosine, sine), m.select(odd, -cosine_low, sine_low)
    bottom, bottom_low = m.select(odd, sine, cosine), m.select(odd, sine_low, cosine_low)
    inverse = m.const(1.0) / bottom
    quotient = top * inverse
    rest = (m.fma(-quotient, bottom, top) + (top_low - quotient * bottom_low)) * inverse
    return _negate_by(m, m.select(m.abs(top) > 0.0, quotient + rest, top), m.bits(x))


def _sin_large(m: Algebra, x: MathValue) -> MathValue:
    return _sin_of(m, x, _reduce_large(m, x))


def _cos_large(m: Algebra, x: MathValue) -> MathValue:
    return _cos_of(m, x, _reduce_large(m, x))


def _tan_large(m: Algebra, x: MathValue) -> MathValue:
    return _tan_of(m, x, _reduce_large(m, x))


def sin(m: Algebra, x: MathValue) -> MathValue:
    """Sine."""
    return m.beyond(_MODERATE[m.width], _sin_large, x, _sin_of(m, x, _reduce_moderate(m, m.abs(x))))


def cos(m: Algebra, x: MathValue) -> MathValue:
    """Cosine."""
    return m.beyond(_MODERATE[m.width], _cos_large, x, _cos_of(m, x, _reduce_moderate(m, m.abs(x))))


def tan(m: Algebra, x: MathValue) -> MathValue:
    """Tangent."""
    return m.beyond(_MODERATE[m.width], _tan_large, x, _tan_of(m, x, _reduce_moderate(m, m.abs(x))))


def cos_of_quarters(m: Algebra, quarters: MathValue) -> MathValue:
    """``cos(quarters pi/2)`` for ``0 <= quarters <= 2``: exactly 0 at 1, negative beyond."""
    rest = quarters - 1.0  # exact from 1/2 on; -rest pi/2 is the angle's distance from a quarter turn
    near = m.select(quarters >= 1.5, m.const(2.0) - quarters, quarters)
    cosine = _cosine(m, near * _HALF_PI[m.width][0])
    cosine = m.select(quarters >= 1.5, -cosine, cosine)
    sine = _sine(m, rest * -_HALF_PI[m.width][0], m.const(0.0))
    return m.select((quarters > 0.5) & (quarters < 1.5), sine, cosine)


def sin_cos_half_turns(m: Algebra, t: MathValue) -> tuple[MathValue, MathValue]:
    """``sin(pi t)`` and ``cos(pi t)`` for ``0 <= t <= 1/2``, exact at both ends."""
    beyond = t > 0.25
    near = m.select(beyond, m.const(0.5) - t, t)
    pi, pi_low = 2.0 * _HALF_PI[m.width][0], 2.0 * _HALF_PI[m.width][1]
    r, low = two_product(m, near, m.const(pi))
    low = m.mad(near, m.const(pi_low), low)
    sine, cosine = _sine(m, r, low), _cosine(m, r)
    return m.select(beyond, cosine, sine), m.select(beyond, sine, cosine)
