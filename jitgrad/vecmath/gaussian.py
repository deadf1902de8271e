"""erf, erfc, their inverses, the normal distribution, and the factors of normal random numbers."""

from __future__ import annotations

from jitgrad.vecmath import coefficients, special_coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly, poly_in_blocks, signed, two_product, two_sum
from jitgrad.vecmath.exponential import exp_sum, exp_times, one_minus_exp, upper_bounded
from jitgrad.vecmath.logarithm import log, log1p
from jitgrad.vecmath.trigonometric import cos_of_quarters


def erf(m: Algebra, x: MathValue) -> MathValue:
    """``1 - exp(-(a + a R(a)))`` with ``a = |x|`` and ``a + a R(a)`` fitted to ``-log erfc(a)``."""
    a = upper_bounded(m, m.abs(x), 4.0 if m.width == 32 else 6.0)
    return signed(m, one_minus_exp(m, a, poly_in_blocks(m, a, coefficients.LOG_ERFC_TERMS[m.width])), x)


def erfc(m: Algebra, x: MathValue) -> MathValue:
    """``exp(-x*x) P(u) / (1 + 2x)``, ``u = (x - 4) / (x + 4)``; ``2 - erfc(-x)`` for ``x < 0``, ``1
    - erf(x)`` near 0.

    Variable and scaling: Shepherd and Laframboise, Mathematics of Computation 36, 1981. The
    rounding errors of ``x*x`` and of the division are carried along, because the tail magnifies
    them.
    """
    if m.width == 32:
        wide, wider = m.wide(), m.widen(x)
        result = _erfc_positive(wide, wide.abs(wider), coefficients.ERFC_TERMS[32])
        return m.narrow(wide.select(wider < 0.0, wide.const(2.0) - result, result))
    result = _erfc_positive(m, m.abs(x), coefficients.ERFC_TERMS[64])
    near = m.const(1.0) - m.mad(x, poly(m, x * x, coefficients.ERF_TERMS[64]), x)
    return m.select(m.abs(x) < 0.5, near, m.select(x < 0.0, m.const(2.0) - result, result))


def _erfc_positive(m: Algebra, a: MathValue, table: tuple[float, ...]) -> MathValue:
    a = upper_bounded(m, a, 28.0)
    square, lost = two_product(m, a, a)
    return exp_times(m, -square, -lost, *scaled_erfc(m, a, table))


def scaled_erfc(m: Algebra, a: MathValue, table: tuple[float, ...]) -> tuple[MathValue, MathValue]:
    """``exp(a*a) erfc(a)`` for ``a >= 0`` as head and tail."""
    numerator = poly(m, (a - 4.0) / (a + 4.0), table)
    divisor, divisor_low = two_sum(m.const(1.0), a + a)
    quotient = numerator / divisor
    return quotient, (m.fma(-quotient, divisor, numerator) - quotient * divisor_low) / divisor


_INVERSE_SQRT_PI = 0.5641895835477563


def erfcx(m: Algebra, x: MathValue) -> MathValue:
    """``exp(x*x) erfc(x)``, without underflow."""
    if m.width == 32:
        return m.narrow(_erfcx_double(m.wide(), m.widen(x), 32))
    return _erfcx_double(m, x, 64)


def _erfcx_double(m: Algebra, x: MathValue, precision: int) -> MathValue:
    a = m.abs(x)
    quotient, rest = scaled_erfc(m, upper_bounded(m, a, 1e8), coefficients.ERFC_TERMS[precision])
    scaled = m.select(a > 1e8, m.const(_INVERSE_SQRT_PI) / a, quotient + rest)
    square, lost = two_product(m, upper_bounded(m, a, 30.0), upper_bounded(m, a, 30.0))
    power = exp_sum(m, square, lost)
    result = m.select(x < 0.0, power * 2.0 - scaled, scaled)
    if precision == 32:
        return result
    # near 0 the quotient's polynomial has lost two bits
    small = m.copysign(upper_bounded(m, a, 0.5), x)
    near = power * (m.const(1.0) - m.mad(small, poly(m, small * small, coefficients.ERF_TERMS[64]), small))
    return m.select(a < 0.5, near, result)


def erfinv(m: Algebra, x: MathValue) -> MathValue:
    """``x P(w)`` with ``w = -log(1 - x*x)``; ``P(sqrt(w))`` in the tails (Giles, GPU Computing Gems
    Jade, 2011)."""
    if m.width == 32:
        return m.narrow(_erfinv_double(m.wide(), m.widen(x), 32))
    return _erfinv_double(m, x, 64)


def _erfinv_double(m: Algebra, x: MathValue, precision: int) -> MathValue:
    a = m.abs(x)
    ratio = _erfinv_ratio(m, -log(m, (m.const(1.0) - a) * (a + 1.0)), precision)
    result = m.select(a < 1.0, ratio * a, m.const(float("inf")))
    return m.copysign(m.select(a <= 1.0, result, m.const(float("nan"))), x)


def _erfinv_ratio(m: Algebra, w: MathValue, precision: int) -> MathValue:
    """``erfinv(x) / x`` for ``w = -log(1 - x*x)``."""
    root = m.sqrt(w)
    ratio = poly(m, w - 3.0, coefficients.ERFINV_TERMS[precision])
    ratio = m.select(w > 6.0, poly(m, root - 3.25, coefficients.ERFINV_TAIL_TERMS[precision]), ratio)
    if precision == 64:
        ratio = m.select(w > 16.0, poly(m, root - 5.0, coefficients.ERFINV_FAR_TERMS[64]), ratio)
    return ratio


def erfcinv(m: Algebra, y: MathValue) -> MathValue:
    """The inverse of erfc: that of erf where ``y`` is near 1, else a multiple of ``sqrt(-log y)``."""
    if m.width == 32:
        return m.narrow(_erfcinv_double(m.wide(), m.widen(y), 32))
    return _erfcinv_double(m, y, 64)


def _erfcinv_double(m: Algebra, y: MathValue, precision: int) -> MathValue:
    upper = y > 1.0
    tail = m.select(upper, m.const(2.0) - y, y)
    far = _erfcinv_tail(m, tail, precision)
    inside = m.select(tail < _ERFCINV_BOUND, m.const(0.5), tail)
    x = m.const(1.0) - inside
    near = _erfinv_ratio(m, -log(m, inside * (x + 1.0)), precision) * x
    result = m.select(tail < _ERFCINV_BOUND, far, near)
    result = m.select(tail == 0.0, m.const(float("inf")), result)
    result = m.select((y >= 0.0) & (y <= 2.0), result, m.const(float("nan")))
    return m.select(upper, -result, result)


# exp(-4): from here on to 0, sqrt(-log y) is in the range of the polynomials of the tail
_ERFCINV_BOUND = 0.018315638888734179


def _erfcinv_tail(m: Algebra, y: MathValue, precision: int) -> MathValue:
    """``r P(r)`` with ``r = sqrt(-log y)``."""
    r = m.sqrt(-log(m, m.select(y > 0.0, y, m.const(1.0))))
    near = poly(m, (r - 4.0) / (r + 4.0), special_coefficients.ERFCINV_NEAR_TERMS[precision])
    far = poly(m, (r - 10.0) / (r + 10.0), special_coefficients.ERFCINV_FAR_TERMS[precision])
    return m.select(r > 6.0, far, near) * r


_SQRT_HALF = 0.7071067811865476
_SQRT_2 = 1.4142135623730951


def ndtri(m: Algebra, p: MathValue) -> MathValue:
    """The quantile of the standard normal distribution, ``-sqrt(2) erfcinv(2 p)``."""
    if m.width == 32:
        wide = m.wide()
        return m.narrow(_erfcinv_double(wide, m.widen(p) * 2.0, 32) * -_SQRT_2)
    return _erfcinv_double(m, p * 2.0, 64) * -_SQRT_2


def ndtr(m: Algebra, x: MathValue) -> MathValue:
    """The standard normal distribution function, ``erfc(-x / sqrt(2)) / 2``."""
    if m.width == 32:
        return m.narrow(_ndtr_double(m.wide(), m.widen(x), 32))
    return _ndtr_double(m, x, 64)


def _ndtr_double(m: Algebra, x: MathValue, precision: int) -> MathValue:
    a = m.abs(x)
    tail = _ndtr_tail(m, a, precision)
    t = x * _SQRT_HALF
    near = m.mad(m.mad(t, poly(m, t * t, coefficients.ERF_TERMS[64]), t), m.const(0.5), m.const(0.5))
    return m.select(a < 0.5, near, m.select(x < 0.0, tail, m.const(1.0) - tail))


def _ndtr_tail(m: Algebra, a: MathValue, precision: int) -> MathValue:
    """``erfc(a / sqrt(2)) / 2`` for ``a >= 0``: ``exp(-a*a/2)`` with the rounding error of the square."""
    a = upper_bounded(m, a, 40.0)
    half_square, lost = two_product(m, a * 0.5, a)
    quotient, rest = scaled_erfc(m, a * _SQRT_HALF, coefficients.ERFC_TERMS[precision])
    return exp_times(m, -half_square, -lost, quotient * 0.5, rest * 0.5)


def log_ndtr(m: Algebra, x: MathValue) -> MathValue:
    """``log(ndtr(x))``, also where ndtr is 0 or rounds to 1."""
    if m.width == 32:
        return m.narrow(_log_ndtr_double(m.wide(), m.widen(x), 32))
    return _log_ndtr_double(m, x, 64)


def _log_ndtr_double(m: Algebra, x: MathValue, precision: int) -> MathValue:
    a = m.abs(x)
    left = upper_bounded(m, a, 1e150)
    quotient, rest = scaled_erfc(m, left * _SQRT_HALF, coefficients.ERFC_TERMS[precision])
    below = log(m, (quotient + rest) * 0.5) - left * 0.5 * left
    above = log1p(m, -m.select(x < 0.0, _ndtr_double(m, -x, precision), _ndtr_tail(m, a, precision)))
    result = m.select(x < -1.0, below, above)
    return m.select(x == float("-inf"), x, result)


def normal_radius(m: Algebra, u: MathValue) -> MathValue:
    """``sqrt(-2 log u)``, with the same bits on every machine; NaN for ``u > 1``."""
    exact = m.unfused()
    return m.sqrt(log(exact, u) * -2.0)


def cos_turns(m: Algebra, turns: MathValue) -> MathValue:
    """``cos(2 pi turns)``, with the same bits on every machine; the reduction is exact."""
    fraction = turns - m.rint(turns)
    return cos_of_quarters(m.unfused(), m.abs(fraction) * 4.0)
