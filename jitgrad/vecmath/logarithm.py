"""log log1p log2 log10 softplus logaddexp asinh acosh atanh.

Method: ``x = 2**k (1 + f)`` with ``1 + f`` in [sqrt(1/2), sqrt(2)), then ``log(1 + f) = f - (h - s
(h + R(s*s)))`` with ``s = f / (2 + f)`` and ``h = f*f/2``: the arrangement of Ng in fdlibm (Sun
Microsystems, 1993), whose rounding errors stay below an ulp. A correction term carries the rounding
error of the argument (for log1p and the inverse hyperbolics).
"""

from __future__ import annotations

from jitgrad.vecmath import coefficients
from jitgrad.vecmath.algebra import (
    Algebra,
    MathValue,
    exponent_bias,
    from_int,
    is_number,
    mantissa_bits,
    poly,
    poly_in_blocks,
    quick_two_sum,
    two_product,
    two_sum,
)
from jitgrad.vecmath.exponential import LOG2_HIGH, LOG2_LOW, exp_nonpositive

_SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}
_SQRT_HALF = 0.7071067811865476
_LOG_2 = 0.6931471805599453
# 1 / log 2, log10 2 and 1 / log 10 as a head and a tail, by width
_INVERSE_LOG2 = {32: (1.4426950216293335, 1.925963033500011e-08), 64: (1.4426950408889634, 2.0355273740931033e-17)}
_INVERSE_LOG10 = {32: (0.4342944920063019, -1.0103049952192578e-08), 64: (0.4342944819032518, 1.098319650216765e-17)}
_LOG10_2 = {32: (0.3010300099849701, -1.432098883924482e-08), 64: (0.3010299956639812, -2.8037281277851704e-18)}


def split_exponent(m: Algebra, x: MathValue) -> tuple[MathValue, MathValue]:
    """An integer ``k`` and ``u`` in [sqrt(1/2), sqrt(2)), ``x = 2**k u``, for normal ``x > 0``."""
    root = m.bits(m.const(_SQRT_HALF))
    shifted = m.bits(x) - root
    k = shifted >> mantissa_bits(m)
    return k, m.from_bits(m.bits(x) - (k << mantissa_bits(m)))


def split_any(m: Algebra, x: MathValue) -> tuple[MathValue, MathValue]:
    """`split_exponent` with ``k`` as a float, for subnormal numbers as well."""
    subnormal = x < _SMALLEST_NORMAL[m.width]
    up = mantissa_bits(m) + 1
    k, u = split_exponent(m, m.select(subnormal, x * 2.0**up, x))
    return m.select(subnormal, from_int(m, k) - float(up), from_int(m, k)), u


def _log_parts(m: Algebra, f: MathValue) -> tuple[MathValue, MathValue]:
    """``h = f*f/2`` and ``t = s (h + R)``, so that log(1 + f) = f - (h - t)."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * 0.5 * f
    rest = z * poly(m, z, coefficients.LOG_TERMS[m.width])
    return half_square, s * (half_square + rest)


def _log_join(m: Algebra, k: MathValue, f: MathValue, correction: MathValue) -> MathValue:
    """``k log 2 + log(1 + f) + correction``."""
    half_square, t = _log_parts(m, f)
    low = m.mad(k, m.const(LOG2_LOW[m.width]), correction) + t
    return m.mad(k, m.const(LOG2_HIGH[m.width]), f - (half_square - low))


def _special(m: Algebra, x: MathValue, result: MathValue) -> MathValue:
    """log at 0, below 0, at infinity and NaN."""
    result = m.select(x == 0.0, m.const(float("-inf")), result)
    result = m.select(x == float("inf"), x, result)
    return m.select(x >= 0.0, result, m.const(float("nan")))


def log(m: Algebra, x: MathValue) -> MathValue:
    """Natural logarithm."""
    k, u = split_any(m, x)
    return _special(m, x, _log_join(m, k, u - 1.0, m.const(0.0)))


def log1p_sum(m: Algebra, x: MathValue, low: MathValue) -> MathValue:
    """log(1 + x + low) for finite ``x > -1`` and a ``low`` of a few ulps of ``x``."""
    u, lost = two_sum(m.const(1.0), x)
    k, reduced = split_exponent(m, u)
    return _log_join(m, from_int(m, k), reduced - 1.0, (lost + low) / u)


def log1p(m: Algebra, x: MathValue) -> MathValue:
    """log(1 + x) without cancellation."""
    result = log1p_sum(m, m.select(x == float("inf"), m.const(1.0), x), m.const(0.0))
    result = m.select(x == -1.0, m.const(float("-inf")), result)
    result = m.select(m.abs(x) < 2.0 ** -(mantissa_bits(m) + 2), x, result)
    result = m.select(x == float("inf"), x, result)
    return m.select(x >= -1.0, result, m.const(float("nan")))


def log_pair(m: Algebra, x: MathValue) -> tuple[MathValue, MathValue, MathValue]:
    """``k`` and ``log(1 + f)`` as head and tail, some bits beyond the format."""
    k, u = split_any(m, x)
    f = u - 1.0
    half_square, t = _log_parts(m, f)
    lost = m.fma(f * 0.5, f, -half_square)
    head, tail = quick_two_sum(f, -half_square)
    head, rest = quick_two_sum(head, tail + (t - lost))
    return k, head, rest


def log2(m: Algebra, x: MathValue) -> MathValue:
    """Logarithm to base 2, exact for powers of two."""
    k, head, tail = log_pair(m, x)
    high, low = _INVERSE_LOG2[m.width]
    product, lost = two_product(m, head, m.const(high))
    low_part = lost + m.mad(head, m.const(low), tail * high)
    total, rest = two_sum(k, product)
    return _special(m, x, total + (rest + low_part))


def log10(m: Algebra, x: MathValue) -> MathValue:
    """Logarithm to base 10."""
    k, head, tail = log_pair(m, x)
    high, low = _INVERSE_LOG10[m.width]
    product, lost = two_product(m, head, m.const(high))
    k_product, k_lost = two_product(m, k, m.const(_LOG10_2[m.width][0]))
    low_part = (lost + k_lost) + m.mad(head, m.const(low), m.mad(k, m.const(_LOG10_2[m.width][1]), tail * high))
    total, rest = two_sum(k_product, product)
    return _special(m, x, total + (rest + low_part))


def softplus(m: Algebra, x: MathValue) -> MathValue:
    """log(1 + exp(x)) as ``max(x, 0) + log1p(exp(-|x|))``: log1p on [0, 1] is a polynomial."""
    e = exp_nonpositive(m, -m.abs(x))
    added = m.fma(e * e, poly_in_blocks(m, e, coefficients.LOG1P_TERMS[m.width]), e)
    return m.select(x > 0.0, x, m.const(0.0)) + added


def logaddexp(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """log(exp(x) + exp(y)); the error is in ulps of the larger operand."""
    larger = m.select(x > y, x, y)
    difference = m.select(x == y, m.const(0.0), m.abs(x - y))
    small = exp_nonpositive(m, -difference)
    added = m.select(small < 2.0 ** -(mantissa_bits(m) + 2), small, log1p_sum(m, small, m.const(0.0)))
    return m.select(is_number(difference), larger + added, x + y)


def asinh(m: Algebra, x: MathValue) -> MathValue:
    """Inverse hyperbolic sine: log1p(a + a*a / (sqrt(a*a + 1) + 1)), from 2**30 on log(2a)."""
    a = m.abs(x)
    huge = a >= 2.0**30
    b = m.select(huge, m.const(1.0), a)
    square = b * b
    added = square / (m.sqrt(square + 1.0) + 1.0)
    total, lost = two_sum(b, added)
    near = m.select(a < 2.0 ** -(mantissa_bits(m) // 2 + 1), a, log1p_sum(m, total, lost))
    return m.copysign(m.select(huge, _log_of_twice(m, a), near), x)


def _log_of_twice(m: Algebra, a: MathValue) -> MathValue:
    """log(2a) for ``a >= 1``; infinity and NaN stay."""
    finite = m.select(a < float("inf"), a, m.const(1.0))
    k, u = split_exponent(m, finite)
    return m.select(a < float("inf"), _log_join(m, from_int(m, k) + 1.0, u - 1.0, m.const(0.0)), a)


def acosh(m: Algebra, x: MathValue) -> MathValue:
    """Inverse hyperbolic cosine: log1p(t + sqrt(2t + t*t)), t = x - 1; from 2**30 on log(2x)."""
    huge = x >= 2.0**30
    t = m.select(huge, m.const(1.0), x) - 1.0
    total, lost = two_sum(t, m.sqrt(m.mad(t, t, t + t)))
    result = m.select(huge, _log_of_twice(m, x), log1p_sum(m, total, lost))
    return m.select(x >= 1.0, result, m.const(float("nan")))


def atanh(m: Algebra, x: MathValue) -> MathValue:
    """Inverse hyperbolic tangent: the series variable of log itself when small, else log1p(2a / (1
    - a)) / 2."""
    a = m.abs(x)
    z = a * a
    small = m.mad(a * z * 0.5, poly(m, z, coefficients.LOG_TERMS[m.width]), a)
    inside = m.select(a < 1.0, a, m.const(0.5))
    quotient = (inside + inside) / (m.const(1.0) - inside)
    result = m.select(a < 0.17, small, log1p_sum(m, quotient, m.const(0.0)) * 0.5)
    result = m.select(a == 1.0, m.const(float("inf")), result)
    return m.copysign(m.select(a <= 1.0, result, m.const(float("nan"))), x)


def exponent_of(m: Algebra, x: MathValue) -> MathValue:
    """The unbiased exponent of a normal number as an integer."""
    return (m.bits(m.abs(x)) >> mantissa_bits(m)) - exponent_bias(m)
