"""The text of machine code that factors small matrices: LU with partial pivoting, and Cholesky.

The pivot is the first largest element of its column, as in LAPACK (J. J. Dongarra et al., "LINPACK Users' Guide", 1979,
chapter 1). A matrix with a pivot that may be nothing but rounding (and any with a NaN) sets the flag of the program instead:
NumPy then computes the op for all matrices, so that it, and never the rounding of this code, decides which are singular.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitgrad.runtime.library.elimination_in_registers import (
    cholesky_in_registers,
    lu_in_registers,
    substitution_in_registers,
)
from jitgrad.runtime.library.elimination_in_rows import cholesky_in_rows, lu_in_rows, row_memory, substitution_in_rows
from jitgrad.runtime.library.system import System, fits_registers, indented


def source(system: System) -> str:
    """Source that computes one matrix of a batch in each iteration.

    The results are contiguous. For a matrix that it leaves to NumPy it stores ``number`` in ``flag[0]``. The frame, of
    which each op fills in the computation::

        def factor(a, b, x, length_0, a_0, b_0, flag, number, start, stop):
            failed = to_i64(0)
            for e in range(start, stop):
                rest = e
                am = at(a, rest % length_0 * a_0)
                bm = at(b, rest % length_0 * b_0)
                xm = at(x, e * 4)
                good = 1 == 1
                ...
                failed = failed | to_i64(not good)
            if failed != 0:
                flag[0] = number
    """
    names = ", ".join((*system.operands, *system.results, *system.sizes, "flag", "number", "start", "stop"))
    body = [*matrix_places(system), "good = 1 == 1", *factored(system), "failed = failed | to_i64(not good)"]
    setup = [] if fits_registers(system) else list(row_memory(system))
    lines = ["failed = to_i64(0)", *setup, "for e in range(start, stop):", *indented(body)]
    return "\n".join([f"def factor({names}):", *indented([*lines, "if failed != 0:", "    flag[0] = number"])]) + "\n"


def matrix_places(s: System) -> Iterator[str]:
    """The addresses of the matrices of iteration ``e``."""
    if s.axes:
        yield "rest = e"
    offsets = {name: list[str]() for name in s.operands}
    for k in reversed(range(s.axes)):
        yield f"index_{k} = rest" + (f" % length_{k}" if k else "")
        if k:
            yield f"rest = rest // length_{k}"
        for name, terms in offsets.items():
            terms.append(f"index_{k} * {name}_{k}")
    for name, terms in offsets.items():
        yield f"{name}m = at({name}, {' + '.join(terms) or 0})"
    size = 1 if s.op in ("determinant", "slogdet") else s.n * s.columns
    for name in s.results:
        yield f"{name}m = at({name}, e * {size})"


def factored(s: System) -> Iterator[str]:
    registers = fits_registers(s)
    if s.op == "triangular_solve":
        return substitution_in_registers(s) if registers else substitution_in_rows(s)
    if s.op == "cholesky":
        return cholesky_in_registers(s) if registers else cholesky_in_rows(s)
    return lu_in_registers(s) if registers else lu_in_rows(s)
