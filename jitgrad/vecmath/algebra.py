"""`Algebra`, the operations that define every function, on LLVM values and NumPy arrays.

A value is a float (the format of the algebra), an integer of the same width, or a boolean. It
supports ``+ - * /`` (floats; ``+ - *`` on integers wrap), ``& | ^ << >>`` (integers, ``>>``
arithmetic; ``& | ^`` booleans), unary minus and comparisons, with Python numbers as constants of
the value's own type. Comparisons with NaN are false, ``!=`` true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

MathValue: TypeAlias = Any
"""A NumPy array or scalar under :class:`NumpyAlgebra`, an ``LlvmValue`` under
:class:`LlvmAlgebra`."""


class Algebra(Protocol):
    """The operations that a definition may use; ``width`` is 32 or 64, the format of its values."""

    @property
    def width(self) -> int:
        """32 or 64."""

    def wide(self) -> Algebra:
        """The float64 algebra, to compute a float32 function in float64."""

    def unfused(self) -> Algebra:
        """The algebra whose `mad` rounds twice, so that results are equal bits on every machine."""

    def const(self, number: float) -> MathValue:
        """``number`` rounded to the format."""

    def widen(self, x: MathValue) -> MathValue:
        """float32 to float64."""

    def narrow(self, x: MathValue) -> MathValue:
        """float64 to float32, rounding once."""

    def fma(self, a: MathValue, b: MathValue, c: MathValue) -> MathValue:
        """``a * b + c`` rounded once, on every machine."""

    def mad(self, a: MathValue, b: MathValue, c: MathValue) -> MathValue:
        """``a * b + c`` rounded once or twice, whichever is faster."""

    def rint(self, x: MathValue) -> MathValue:
        """Nearest integer, ties to even."""

    def floor(self, x: MathValue) -> MathValue:
        """Largest integer not above ``x``."""

    def ceil(self, x: MathValue) -> MathValue:
        """Smallest integer not below ``x``."""

    def trunc(self, x: MathValue) -> MathValue:
        """Integer part."""

    def abs(self, x: MathValue) -> MathValue:
        """``x`` with its sign bit cleared."""

    def copysign(self, x: MathValue, sign: MathValue) -> MathValue:
        """Magnitude of ``x``, sign bit of ``sign``."""

    def sqrt(self, x: MathValue) -> MathValue:
        """Correctly rounded square root."""

    def minimum(self, x: MathValue, y: MathValue) -> MathValue:
        """The smaller; NaN if either is; -0 below +0 in machine code, either in NumPy."""

    def maximum(self, x: MathValue, y: MathValue) -> MathValue:
        """The larger; NaN if either is."""

    def fmod(self, x: MathValue, y: MathValue) -> MathValue:
        """C's fmod, exact: the remainder with the sign of ``x``."""

    def select(self, condition: MathValue, yes: MathValue, no: MathValue) -> MathValue:
        """``yes`` where ``condition`` is true, else ``no``; both are computed."""

    def beyond(self, bound: float, slow: Callable[[Algebra, MathValue], MathValue], x: MathValue, usual: MathValue) -> MathValue:
        """``slow(algebra, x)`` where ``|x| > bound``, which should be rare, else ``usual``.

        Machine code skips ``slow`` for a whole vector at once; ``slow`` may be called with any
        ``x``.
        """

    def bits(self, x: MathValue) -> MathValue:
        """The float's representation as a signed integer."""

    def from_bits(self, i: MathValue) -> MathValue:
        """The float that the integer represents."""

    def lookup(self, table: tuple[float, ...], index: MathValue) -> MathValue:
        """``table[index]`` as a float of the format; ``index`` must be in range."""


def poly(m: Algebra, x: MathValue, coefficients: tuple[float, ...]) -> MathValue:
    """Horner's rule, lowest order first."""
    return _polynomial_of(m, x, [m.const(c) for c in coefficients])


_SHORT, _LONG = 6, 12
_BLOCK = 4


def poly_in_blocks(m: Algebra, x: MathValue, coefficients: tuple[float, ...]) -> MathValue:
    """`poly` for decreasing terms, in blocks of two or four (part of Estrin's scheme).

    Every step of Horner's rule waits for the one before, and a CPU cannot look far enough ahead to
    keep its units busy. One or two more multiplications cost less. Neighbouring terms stay
    together, because their signs often alternate. With blocks of two, the lowest terms are added
    last and alone: the rounding of a block is as large as the block.
    """
    if len(coefficients) <= _LONG:
        alone = 1 if len(coefficients) <= _SHORT else 2
        rest = coefficients[alone:]
        pairs = [poly(m, x, rest[k : k + 2]) for k in range(0, len(rest), 2)]
        return _polynomial_of(m, x, [*(m.const(c) for c in coefficients[:alone]), _polynomial_of(m, x * x, pairs)])
    blocks = [poly(m, x, coefficients[k : k + _BLOCK]) for k in range(0, len(coefficients), _BLOCK)]
    return _polynomial_of(m, (x * x) * (x * x), blocks)


def _polynomial_of(m: Algebra, x: MathValue, terms: Sequence[MathValue]) -> MathValue:
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = m.mad(total, x, term)
    return total


def magic(m: Algebra) -> float:
    """``1.5 * 2**p``: adding it leaves an integer in the low bits (Hecker's trick), with no
    conversion instruction (float64 to int64 has none before AVX-512) and no undefined result for
    NaN."""
    return 1.5 * 2.0**23 if m.width == 32 else 1.5 * 2.0**52


def to_int(m: Algebra, x: MathValue) -> MathValue:
    """``x``, an integral float with ``|x| < 2**22`` (float64: 2**51), as an integer; any integer
    for other ``x``."""
    shift = magic(m)
    return m.bits(x + shift) - m.bits(m.const(shift))


def from_int(m: Algebra, i: MathValue) -> MathValue:
    """The float equal to integer ``i`` (``|i| < 2**22``, in float64 2**51)."""
    shift = magic(m)
    return m.from_bits(i + m.bits(m.const(shift))) - shift


def power_of_two(m: Algebra, i: MathValue) -> MathValue:
    """``2.0**i`` for exponents of normal numbers."""
    return m.from_bits((i + exponent_bias(m)) << mantissa_bits(m))


def mantissa_bits(m: Algebra) -> int:
    """Stored bits of the significand."""
    return 23 if m.width == 32 else 52


def exponent_bias(m: Algebra) -> int:
    """Stored exponent of 1.0."""
    return 127 if m.width == 32 else 1023


def signed(m: Algebra, x: MathValue, sign: MathValue) -> MathValue:
    """``x`` with the sign bit of ``sign``; ``x`` must be non-negative or have that sign."""
    return m.from_bits(m.bits(x) | (m.bits(sign) & -(1 << (m.width - 1))))


def is_number(x: MathValue) -> MathValue:
    """Whether ``x`` is not NaN."""
    return x == x  # noqa: PLR0124


def two_sum(a: MathValue, b: MathValue) -> tuple[MathValue, MathValue]:
    """``a + b`` and its exact rounding error (Knuth, TAOCP 2, 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def quick_two_sum(a: MathValue, b: MathValue) -> tuple[MathValue, MathValue]:
    """The same for ``|a| >= |b|`` (Dekker, Numerische Mathematik 18, 1971)."""
    total = a + b
    return total, b - (total - a)


def two_product(m: Algebra, a: MathValue, b: MathValue) -> tuple[MathValue, MathValue]:
    """``a * b`` and its exact rounding error, barring underflow."""
    product = a * b
    return product, m.fma(a, b, -product)


_SPLITTER = 134217729.0  # 2**27 + 1 halves a float64 significand (Veltkamp)


def exact_multiply_add(a: MathValue, b: MathValue, c: MathValue) -> tuple[MathValue, MathValue]:
    """``a * b + c`` in float64, rounded once (by Dekker's exact product), and rounded twice (if the
    first overflows).

    For machines without an fma instruction. T. J. Dekker, "A floating-point technique for extending
    the available precision", Numerische Mathematik 18 (1971).
    """
    product = a * b
    t = a * _SPLITTER
    a_high = t - (t - a)
    a_low = a - a_high
    t = b * _SPLITTER
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    part = total - product
    return total + (((product - (total - part)) + (c - part)) + error), total
