"""asin acos atan atan2.

Method: one polynomial per function on a reduced argument (``asin`` on [-1/2, 1/2] with the
half-angle formula beyond, ``atan`` on [0, 1] of the smaller over the larger operand), and pi in two
parts (arrangement of fdlibm, 1993).
"""

from __future__ import annotations

from jitgrad.vecmath import coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, is_number, poly_in_blocks

# pi/2 as a head and a tail by width
_HALF_PI = {32: (1.5707963705062866, -4.371138828673793e-08), 64: (1.5707963267948966, 6.123233995736766e-17)}


def _odd_rest(m: Algebra, t: MathValue, z: MathValue, table: tuple[float, ...]) -> MathValue:
    """``f(t) - t`` of an odd function, with ``z = t * t``."""
    return t * z * poly_in_blocks(m, z, table)


def _from_right_angles(m: Algebra, count: MathValue, t: MathValue, rest: MathValue) -> MathValue:
    """``count * pi/2 + t + rest`` for a ``count`` of 0, 1 or 2."""
    high, low = _HALF_PI[m.width]
    return count * high + (t + m.mad(count, m.const(low), rest))


def asin(m: Algebra, x: MathValue) -> MathValue:
    """Arc sine; NaN beyond [-1, 1]."""
    a = m.abs(x)
    outer = a >= 0.5
    half = (m.const(1.0) - a) * 0.5
    z = m.select(outer, half, a * a)
    t = m.select(outer, m.sqrt(half), a)
    rest = _odd_rest(m, t, z, coefficients.ASIN_TERMS[m.width])
    folded = _from_right_angles(m, m.const(1.0), -(t + t), -(rest + rest))
    return m.copysign(m.select(outer, folded, t + rest), x)


def acos(m: Algebra, x: MathValue) -> MathValue:
    """Arc cosine; NaN beyond [-1, 1]."""
    a = m.abs(x)
    outer = a >= 0.5
    half = (m.const(1.0) - a) * 0.5
    z = m.select(outer, half, a * a)
    t = m.select(outer, m.sqrt(half), a)
    rest = _odd_rest(m, t, z, coefficients.ASIN_TERMS[m.width])
    negative = m.bits(x) < 0
    one, two = m.const(1.0), m.const(2.0)
    count = m.select(outer, m.select(negative, two, m.const(0.0)), one)
    turn = m.select(outer, m.select(negative, -two, two), m.select(negative, one, -one))
    return _from_right_angles(m, count, t * turn, rest * turn)


def atan(m: Algebra, x: MathValue) -> MathValue:
    """Arc tangent."""
    a = m.abs(x)
    outer = a > 1.0
    t = m.select(outer, m.const(-1.0), a) / m.select(outer, a, m.const(1.0))
    rest = _odd_rest(m, t, t * t, coefficients.ATAN_TERMS[m.width])
    count = m.select(outer, m.const(1.0), m.const(0.0))
    return m.copysign(_from_right_angles(m, count, t, rest), x)


def atan2(m: Algebra, y: MathValue, x: MathValue) -> MathValue:
    """Angle of the point ``(x, y)``, with the special values of C99 annex F.9.1.4."""
    a, b = m.abs(y), m.abs(x)
    steep = a > b
    smaller, larger = m.select(steep, b, a), m.select(steep, a, b)
    equal = (a == b) & (a > 0.0)  # infinite operands among them
    t = m.select(equal, m.const(1.0), smaller) / m.select(equal | (larger == 0.0), m.const(1.0), larger)
    rest = _odd_rest(m, t, t * t, coefficients.ATAN_TERMS[m.width])
    left = m.bits(x) < 0
    count = m.select(steep, m.const(1.0), m.select(left, m.const(2.0), m.const(0.0)))
    minus = steep ^ left
    angle = _from_right_angles(m, count, m.select(minus, -t, t), m.select(minus, -rest, rest))
    return m.select(is_number(x) & is_number(y), m.copysign(angle, y), x + y)
