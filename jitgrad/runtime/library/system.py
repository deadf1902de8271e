"""What the text of machine code for small matrices depends on, and what all of it has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

# Matrices up to this size are held in registers, larger ones in rows of vectors on the stack.
IN_REGISTERS = 4
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
    """

    op: str
    dtype: str
    n: int
    columns: int
    matrix: Strides
    right: Strides
    axes: int
    upper: bool = False

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
    rounding = _ROUNDINGS * s.n * float(np.finfo(np.float32 if s.dtype == "f32" else np.float64).eps)
    return f"good = good & ({pivot} > {largest} * {float_text(s, rounding)}) & ({pivot} > {number_range(s)[0]})"


def results_of_pivots(s: System) -> Iterator[str]:
    """The determinant, or its sign and the logarithm of its absolute value.

    A product that leaves the range of normal numbers on its way is left to NumPy, which adds logarithms.
    """
    one = float_text(s, 1.0)
    if s.op == "determinant":
        tiny, most = number_range(s)
        yield f"total = select(odd, -{one}, {one})"
        yield from _for_each_pivot(s, ["total = total * v", f"good = good & (abs(total) > {tiny})"])
        yield f"good = good & (abs(total) <= {most})"
        yield "xm[0] = total"
        return
    yield f"total = {float_text(s, 0.0)}"
    yield from _for_each_pivot(s, [f"odd = odd ^ (v < {float_text(s, 0.0)})", "total = total + log(abs(v))"])
    yield f"xm[0] = select(odd, -{one}, {one})"
    yield "ym[0] = total"


def _for_each_pivot(s: System, lines: Sequence[str]) -> list[str]:
    if fits_registers(s):
        return [line for k in range(s.n) for line in (f"v = a{k}_{k}", *lines)]
    return [f"for k in range({s.n}):", "    v = pivot[k]", *indented(lines)]
