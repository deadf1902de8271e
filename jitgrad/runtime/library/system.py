"""What the text of machine code for small matrices depends on, and what all of it has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

# Matrices up to this size are held in registers, larger ones in rows of vectors on the stack.
IN_REGISTERS = 4
_TRUE = "1 == 1"
_ROUNDINGS = 4  # a pivot of so many roundings a row of the largest element of its column may be zero


class Strides(NamedTuple):
    """The elements from one row of a matrix to the next, and from one column to the next."""

    row: int
    column: int


class System(NamedTuple):
    """What the text depends on.

    Attributes:
        op: "solve", "triangular_solve", "inverse", "determinant", "slogdet" or "cholesky".
        n, columns: rows of the matrices, and columns of the right sides or of the inverse.
        matrix, right: how they lie in memory.
        axes: the number of batch axes.
        upper: of triangular matrices: which.
        exact: whether there is no NumPy to leave a matrix to: every pivot but zero is used, as LAPACK does. ``good`` then
            says that none was zero, or that the matrix is positive definite.
    """

    op: str
    dtype: str
    n: int
    columns: int
    matrix: Strides
    right: Strides
    axes: int
    upper: bool = False
    exact: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        return ("a", "b") if self.op in ("solve", "triangular_solve") else ("a",)

    @property
    def results(self) -> tuple[str, ...]:
        return ("x", "y") if self.op == "slogdet" else ("x",)

    @property
    def sizes(self) -> list[str]:
        """The integer parameters: of each batch axis its length, and the elements from one matrix of an operand to the next."""
        return [f"{name}{k}" for k in range(self.axes) for name in ("length_", *(f"{x}_" for x in self.operands))]

    @property
    def params(self) -> tuple[str, ...]:
        """The types of all parameters."""
        pointers = [f"{self.dtype}*"] * (len(self.operands) + len(self.results))
        return (*pointers, *["i64"] * len(self.sizes), "i64*", "i64")


def indented(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]


def fits_registers(s: System) -> bool:
    return s.n <= IN_REGISTERS


def float_text(s: System, value: float) -> str:
    return f"to_{s.dtype}({value!r})"


def number_range(s: System) -> tuple[str, str]:
    """The least normal and the largest number."""
    finfo = np.finfo(np.float32 if s.dtype == "f32" else np.float64)
    return float_text(s, float(finfo.tiny)), float_text(s, float(finfo.max))


def pivot_check(s: System, pivot: str, largest: str) -> str:
    """``pivot`` is not negative, but for Cholesky factors, which need a positive one; a NaN is not zero."""
    if s.exact:
        return f"good = good & ({pivot} {'>' if s.op == 'cholesky' else '!='} {float_text(s, 0.0)})"
    rounding = _ROUNDINGS * s.n * float(np.finfo(np.float32 if s.dtype == "f32" else np.float64).eps)
    return f"good = good & ({pivot} > {largest} * {float_text(s, rounding)}) & ({pivot} > {number_range(s)[0]})"


def divided(s: System, number: str, pivot: str, reciprocal: str) -> str:
    """``number / pivot``. The reciprocal of a subnormal pivot, which is only used if ``exact``, is infinite."""
    return f"{number} / {pivot}" if s.exact else f"{number} * {reciprocal}"


def results_of_pivots(s: System) -> Iterator[str]:
    """The determinant, or its sign and the logarithm of its absolute value.

    A product that leaves the range of normal numbers on its way is left to NumPy, which adds logarithms, or is computed by
    these.
    """
    one, zero = float_text(s, 1.0), float_text(s, 0.0)
    tiny, most = number_range(s)
    if s.op == "determinant":
        yield f"total = select(odd, -{one}, {one})"
        yield f"normal = {_TRUE}"
        yield from _for_each_pivot(s, ["total = total * v", f"normal = normal & (abs(total) > {tiny})"])
        yield f"normal = normal & (abs(total) <= {most})"
        if not s.exact:
            yield "good = good & normal"
            yield "xm[0] = total"
            return
    yield f"logarithm = {zero}"
    yield from _for_each_pivot(s, [f"odd = odd ^ (v < {zero})", "logarithm = logarithm + log(abs(v))"])
    sign = f"select(odd, -{one}, {one})"
    if s.op == "determinant":
        yield f"total = select(normal, total, {sign} * exp(logarithm))"
        yield f"xm[0] = select(good, total, {zero})"
        return
    yield f"xm[0] = select(good, {sign}, {zero})" if s.exact else f"xm[0] = {sign}"
    yield f"ym[0] = select(good, logarithm, -to_{s.dtype}(INF))" if s.exact else "ym[0] = logarithm"


def _for_each_pivot(s: System, lines: Sequence[str]) -> list[str]:
    if fits_registers(s):
        return [line for k in range(s.n) for line in (f"v = a{k}_{k}", *lines)]
    return [f"for k in range({s.n}):", "    v = pivot[k]", *indented(lines)]
