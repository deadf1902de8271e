"""Exact functions: rounding, comparison, remainders and the classification of floats."""

from __future__ import annotations

from jitgrad.vecmath.algebra import Algebra, MathValue, is_number


def floor(m: Algebra, x: MathValue) -> MathValue:
    """Largest integer not above ``x``."""
    return m.floor(x)


def ceil(m: Algebra, x: MathValue) -> MathValue:
    """Smallest integer not below ``x``."""
    return m.ceil(x)


def trunc(m: Algebra, x: MathValue) -> MathValue:
    """Integer part."""
    return m.trunc(x)


def rint(m: Algebra, x: MathValue) -> MathValue:
    """Nearest integer, ties to even."""
    return m.rint(x)


def copysign(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """Magnitude of ``x``, sign of ``y``."""
    return m.copysign(x, y)


def minimum(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """The smaller operand; NaN if either is."""
    return m.minimum(x, y)


def maximum(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """The larger operand; NaN if either is."""
    return m.maximum(x, y)


def fmod(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """Remainder with the sign of ``x``; NaN for a zero divisor. Calls libm, so loops stay
    scalar."""
    return m.fmod(x, y)


def remainder(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """Remainder with the sign of ``y`` (Python's %); NaN for a zero divisor. Scalar like fmod."""
    r = m.fmod(x, y)
    moved = m.select((r != 0.0) & ((m.bits(r) ^ m.bits(y)) < 0), r + y, r)
    return m.select(r == 0.0, m.copysign(r, y), moved)


def floor_divide(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """``x // y`` rounded down, computed from the remainder as in NumPy. Scalar like fmod."""
    r = m.fmod(x, y)
    crossed = (r != 0.0) & ((m.bits(r) ^ m.bits(y)) < 0)
    quotient = (x - r) / y
    quotient = m.select(crossed, quotient - 1.0, quotient)
    low = m.floor(quotient)
    low = m.select(quotient - low > 0.5, low + 1.0, low)
    low = m.select(quotient == 0.0, m.copysign(m.const(0.0), x / y), low)
    return m.select(y == 0.0, x / y, low)


def nextafter(m: Algebra, x: MathValue, y: MathValue) -> MathValue:
    """The next float after ``x`` towards ``y``."""
    i = m.bits(x)
    away = (y > x) & (x > 0.0) | ((y < x) & (x < 0.0))
    step = m.from_bits(m.select(away, i + 1, i - 1))
    smallest = m.copysign(m.from_bits(m.bits(m.const(0.0)) + 1), y)
    result = m.select(x == 0.0, smallest, step)
    result = m.select(x == y, y, result)
    return m.select(is_number(x) & is_number(y), result, x + y)


def signbit(m: Algebra, x: MathValue) -> MathValue:
    """Whether the sign bit is set."""
    return m.bits(x) < 0


def isnan(m: Algebra, x: MathValue) -> MathValue:
    """Whether ``x`` is NaN."""
    return x != x  # noqa: PLR0124


def isinf(m: Algebra, x: MathValue) -> MathValue:
    """Whether ``x`` is infinite."""
    return m.abs(x) == float("inf")


def isfinite(m: Algebra, x: MathValue) -> MathValue:
    """Whether ``x`` is finite."""
    return m.abs(x) < float("inf")
