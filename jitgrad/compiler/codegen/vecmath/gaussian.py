"""erf, erfc and erfinv."""

from __future__ import annotations

from jitgrad.compiler.codegen.vecmath import coefficients
from jitgrad.compiler.codegen.vecmath.algebra import Algebra, Value, poly
from jitgrad.compiler.codegen.vecmath.exponential import exp


def erf(m: Algebra, x: Value) -> Value:
    """``x + x P(x*x)`` up to 1, then ``1 - exp(a Q(a))`` with ``a = |x|`` and ``a Q(a)`` fitted to log erfc(a)."""
    a = m.abs(x)
    small = m.mad(x, poly(m, x * x, coefficients.ERF[m.width]), x)
    limit = 4.0 if m.width == 32 else 6.0
    clamped = m.select(a > limit, m.const(limit), a)
    large = m.const(1.0) - exp(m, clamped * poly(m, clamped, coefficients.ERF_TAIL[m.width]))
    return m.select(a < 1.0, small, m.copysign(large, x))
