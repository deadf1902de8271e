"""pow, square roots, cbrt and hypot."""

from __future__ import annotations

from math import factorial

from jitgrad.vecmath import coefficients
from jitgrad.vecmath.algebra import (
    Algebra,
    MathValue,
    exponent_bias,
    from_int,
    is_number,
    magic,
    mantissa_bits,
    poly,
    power_of_two,
    quick_two_sum,
    to_int,
    two_product,
    two_sum,
)
from jitgrad.vecmath.exponential import exp_sum, lower_bounded, upper_bounded
from jitgrad.vecmath.logarithm import split_any, split_exponent

_LOG2_PAIR = (0.6931471805599453, 2.3190468138462996e-17)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# log2(u) = 2 / log(2) (s + s**3 / 3 + ...) with s = (u - 1) / (u + 1) < 0.172: what is left out is
# below 2**-34 of it, and 2**r for |r| <= 1/2: below 2**-32
_LOG2_SERIES = tuple(2.0 / _LOG2_PAIR[0] / (2 * i + 1) for i in range(6))
_EXP2_SERIES = tuple(_LOG2_PAIR[0] ** i / factorial(i) for i in range(9))
_INFINITY = float("inf")


def log_double(m: Algebra, x: MathValue) -> tuple[MathValue, MathValue]:
    """log(x) in float64 with a relative error near 2**-64, as head and tail.

    ``2s + 2/3 s**3`` of the series in ``s = f / (2 + f)`` is summed in pairs of floats (Dekker
    1971), the rest singly.
    """
    k, u = split_any(m, x)
    f = u - 1.0
    divisor, divisor_low = two_sum(f, m.const(2.0))
    s = f / divisor
    s_low = (m.fma(-s, divisor, f) - s * divisor_low) / divisor
    z, z_low = two_product(m, s, s)
    z_low = z_low + (s + s) * s_low
    c, c_low = quick_two_sum(m.const(_TWO_THIRDS[0]), z * poly(m, z, coefficients.LOG_TAIL_TERMS[64]))
    c_low = c_low + _TWO_THIRDS[1]
    cube, cube_low = two_product(m, s, z)
    cube_low = cube_low + m.mad(s, z_low, s_low * z)
    t, t_low = two_product(m, cube, c)
    t_low = t_low + m.mad(cube, c_low, cube_low * c)
    head, low = quick_two_sum(s + s, t)
    low = low + (t_low + (s_low + s_low))
    base, base_low = two_product(m, k, m.const(_LOG2_PAIR[0]))
    base_low = m.mad(k, m.const(_LOG2_PAIR[1]), base_low)
    total, rest = two_sum(base, head)
    return quick_two_sum(total, rest + (base_low + low))


def magnitude64(m: Algebra, a: MathValue, y: MathValue) -> MathValue:
    """``a ** y`` for finite ``a > 0``."""
    head, tail = log_double(m, a)
    # keeps products finite
    limited = m.select(m.abs(y) > 2.0**80, m.copysign(m.const(2.0**80), y), y)
    product, lost = two_product(m, limited, head)
    lost = m.mad(limited, tail, lost)
    bounded = m.abs(product) < 2000.0
    return exp_sum(m, product, m.select(bounded, lost, m.const(0.0)))


def _magnitude32(m: Algebra, a: MathValue, y: MathValue) -> MathValue:
    """The same for float32: ``2 ** (y log2(a))`` in float64, by series as long as float32 needs."""
    wide = m.wide()
    k, u = split_exponent(wide, m.widen(a))
    s = (u - 1.0) / (u + 1.0)
    exponent = m.widen(y) * wide.mad(s, poly(wide, s * s, _LOG2_SERIES), from_int(wide, k))
    exponent = upper_bounded(wide, lower_bounded(wide, exponent, -1000.0), 1000.0)
    middle = magic(wide) + exponent_bias(wide)
    shifted = exponent + middle
    power = wide.from_bits(wide.bits(shifted) << mantissa_bits(wide))
    return m.narrow(poly(wide, exponent - (shifted - middle), _EXP2_SERIES) * power)


def pow(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """``x ** y`` with the special values of C99 annex F.9.4.4."""
    a = m.abs(x)
    ordinary = (a > 0.0) & (a < _INFINITY)
    magnitude = (_magnitude32 if m.width == 32 else magnitude64)(m, m.select(ordinary, a, m.const(1.0)), y)
    grows = (a > 1.0) & (y > 0.0) | ((a < 1.0) & (y < 0.0))
    limit = m.select(grows, m.const(_INFINITY), m.const(0.0))
    limit = m.select(a == 1.0, m.const(1.0), limit)
    magnitude = m.select((m.abs(y) == _INFINITY) | ((a == 0.0) | (a == _INFINITY)), limit, magnitude)
    whole = m.trunc(y) == y
    half = y * 0.5
    odd = whole & (m.trunc(half) != half) & (m.abs(y) < _INFINITY)
    negative = m.bits(x) < 0
    result = m.select(negative & odd, -magnitude, magnitude)
    result = m.select((x < 0.0) & (x > -_INFINITY) & (y - y == 0.0) & (m.trunc(y) != y), m.const(float("nan")), result)
    result = m.select(is_number(x) & is_number(y), result, x + y)
    return m.select((x == 1.0) | (y == 0.0), m.const(1.0), result)


def sqrt(m: Algebra, x: MathValue) -> MathValue:
    """Square root, correctly rounded."""
    return m.sqrt(x)


def rsqrt(m: Algebra, x: MathValue) -> MathValue:
    """``1 / sqrt(x)``, rounded twice as in the expression."""
    return m.const(1.0) / m.sqrt(x)


def reciprocal(m: Algebra, x: MathValue) -> MathValue:
    """``1 / x``, correctly rounded."""
    return m.const(1.0) / x


def hypot(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """``sqrt(x*x + y*y)`` without overflow; infinity wins over NaN."""
    a, b = m.abs(x), m.abs(y)
    if m.width == 32:
        wide = m.wide()
        p, q = m.widen(a), m.widen(b)
        result = m.narrow(wide.sqrt(p * p + q * q))
    else:
        larger = m.select(a > b, a, b)
        up, down = m.const(2.0**600), m.const(2.0**-600)
        scale = m.select(larger > 2.0**500, down, m.select(larger < 2.0**-400, up, m.const(1.0)))
        back = m.select(larger > 2.0**500, up, m.select(larger < 2.0**-400, down, m.const(1.0)))
        result = _hypot_pair(m, larger * scale, m.select(a > b, b, a) * scale) * back
    return m.select((a == _INFINITY) | (b == _INFINITY), m.const(_INFINITY), result)


def _hypot_pair(m: Algebra, larger: MathValue, smaller: MathValue) -> MathValue:
    """Borges, "An improved algorithm for hypot(a, b)", arXiv:1904.09481: one correction."""
    root = m.sqrt(m.mad(larger, larger, smaller * smaller))
    square, square_low = two_product(m, root, root)
    p, p_low = two_product(m, larger, larger)
    q, q_low = two_product(m, smaller, smaller)
    residual = ((p - square) + q) + ((p_low - square_low) + q_low)
    return m.select(root > 0.0, root + residual / (root + root), root)


def cbrt(m: Algebra, x: MathValue) -> MathValue:
    """Cube root: ``x = 2**(3q) z`` with z in [1, 8), a starting polynomial, Newton steps, the last
    compensated."""
    a = m.abs(x)
    up = 3 * (mantissa_bits(m) // 3 + 2)
    subnormal = a < (2.0**-126 if m.width == 32 else 2.0**-1022)
    scaled = m.select(subnormal, a * 2.0**up, a)
    e = (m.bits(scaled) >> mantissa_bits(m)) - exponent_bias(m)
    third = m.floor((from_int(m, e) + 0.25) * 0.3333333333333333)
    remainder = from_int(m, e) - third * 3.0
    one = m.from_bits(m.bits(scaled) - (e << mantissa_bits(m)))
    z = one * m.select(remainder == 0.0, m.const(1.0), m.select(remainder == 1.0, m.const(2.0), m.const(4.0)))
    start = m.select(remainder == 0.0, m.const(1.0), m.select(remainder == 1.0, m.const(2.0 ** (1 / 3)),
                                                              m.const(4.0 ** (1 / 3))))
    root = _cbrt_newton(m, z, poly(m, one, coefficients.CBRT_TERMS[m.width]) * start)
    shift = m.select(subnormal, third - float(up // 3), third)
    result = root * power_of_two(m, to_int(m, shift))
    ordinary = (a > 0.0) & (a < _INFINITY)
    return m.copysign(m.select(ordinary, result, a), x)


def _cbrt_newton(m: Algebra, z: MathValue, y: MathValue) -> MathValue:
    steps = 1 if m.width == 32 else 2
    for step in range(steps):
        square, low = two_product(m, y, y)
        residual = m.fma(-square, y, z) - low * y
        y = y + residual / (square * 3.0) if step == steps - 1 else y + (z - square * y) / (square * 3.0)
    return y
