"""erf, erfc, erfinv, and the two factors of normal random numbers."""

from __future__ import annotations

from jitgrad.vecmath import coefficients
from jitgrad.vecmath.algebra import Algebra, MathValue, poly, poly_in_blocks, signed, two_product, two_sum
from jitgrad.vecmath.exponential import exp_times, one_minus_exp, upper_bounded
from jitgrad.vecmath.logarithm import log
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
    numerator = poly(m, (a - 4.0) / (a + 4.0), table)
    divisor, divisor_low = two_sum(m.const(1.0), a + a)
    quotient = numerator / divisor
    rest = (m.fma(-quotient, divisor, numerator) - quotient * divisor_low) / divisor
    return exp_times(m, -square, -lost, quotient, rest)


def erfinv(m: Algebra, x: MathValue) -> MathValue:
    """``x P(w)`` with ``w = -log(1 - x*x)``; ``P(sqrt(w))`` in the tails (Giles, GPU Computing Gems
    Jade, 2011)."""
    if m.width == 32:
        return m.narrow(_erfinv_double(m.wide(), m.widen(x), 32))
    return _erfinv_double(m, x, 64)


def _erfinv_double(m: Algebra, x: MathValue, precision: int) -> MathValue:
    a = m.abs(x)
    w = -log(m, (m.const(1.0) - a) * (a + 1.0))
    root = m.sqrt(w)
    ratio = poly(m, w - 3.0, coefficients.ERFINV_TERMS[precision])
    ratio = m.select(w > 6.0, poly(m, root - 3.25, coefficients.ERFINV_TAIL_TERMS[precision]), ratio)
    if precision == 64:
        ratio = m.select(w > 16.0, poly(m, root - 5.0, coefficients.ERFINV_FAR_TERMS[64]), ratio)
    result = m.select(a < 1.0, ratio * a, m.const(float("inf")))
    return m.copysign(m.select(a <= 1.0, result, m.const(float("nan"))), x)


def normal_radius(m: Algebra, u: MathValue) -> MathValue:
    """``sqrt(-2 log u)``, with the same bits on every machine; NaN for ``u > 1``."""
    exact = m.unfused()
    return m.sqrt(log(exact, u) * -2.0)


def cos_turns(m: Algebra, turns: MathValue) -> MathValue:
    """``cos(2 pi turns)``, with the same bits on every machine; the reduction is exact."""
    fraction = turns - m.rint(turns)
    return cos_of_quarters(m.unfused(), m.abs(fraction) * 4.0)
