"""The text of machine code that factors small matrices: LU with partial pivoting, and Cholesky.

The pivot is the first largest element of its column, as in LAPACK (J. J. Dongarra et al., "LINPACK Users' Guide", 1979,
chapter 1). A matrix with a pivot that may be nothing but rounding (and any with a NaN) sets the flag of the program instead:
NumPy then computes the op for all matrices, so that it, and never the rounding of this code, decides which are singular.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

# Matrices up to this size are held in registers, larger ones in rows of vectors on the stack.
IN_REGISTERS = 4
_VECTOR, _VECTOR_OF_LARGE = 8, 16  # rows are padded to a multiple of so many elements
_MAX_VECTOR, _MAX_STATEMENTS = 32, 4  # elements that a statement for a row takes, and statements instead of a loop
_ROUNDINGS = 4  # a pivot of so many roundings a row of the largest element of its column may be zero


class Strides(NamedTuple):
    """The elements from one row of a matrix to the next, and from one column to the next."""

    row: int
    column: int


class System(NamedTuple):
    """What the text depends on.

    Attributes:
        op: "solve", "inverse", "determinant", "slogdet" or "cholesky".
        n, columns: rows of the matrices, and columns of the right sides ("solve") or of the inverse.
        matrix, right: how they lie in memory.
        axes: the number of batch axes.
    """

    op: str
    dtype: str
    n: int
    columns: int
    matrix: Strides
    right: Strides
    axes: int

    @property
    def operands(self) -> tuple[str, ...]:
        return ("a", "b") if self.op == "solve" else ("a",)

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
    body = [*_places(system), "good = 1 == 1", *_factored(system), "failed = failed | to_i64(not good)"]
    setup = list(_scratch(system))
    lines = ["failed = to_i64(0)", *setup, "for e in range(start, stop):", *_indented(body)]
    return "\n".join([f"def factor({names}):", *_indented([*lines, "if failed != 0:", "    flag[0] = number"])]) + "\n"


def _indented(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]


def _places(s: System) -> Iterator[str]:
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
    size = {"solve": s.n * s.columns, "inverse": s.n * s.n, "cholesky": s.n * s.n}.get(s.op, 1)
    for name in s.results:
        yield f"{name}m = at({name}, e * {size})"


def _in_registers(s: System) -> bool:
    return s.n <= IN_REGISTERS


def _width(s: System) -> int:
    """The elements from one row of the matrix to the next: whole vectors."""
    vector = _VECTOR if s.n <= _VECTOR_OF_LARGE else _VECTOR_OF_LARGE
    return -(-s.n // vector) * vector


def _scratch(s: System) -> Iterator[str]:
    """Memory for a matrix, the largest elements of its columns, its pivots, and rows moved."""
    if _in_registers(s):
        return
    width = _width(s)
    yield f"u = scratch_{s.dtype}({s.n * width})"
    yield f"top = scratch_{s.dtype}({width})"
    yield f"pivot = scratch_{s.dtype}({width})"
    yield f"for i in range({s.n * width}):"  # the padding may hold denormal numbers, which are slow even if unused
    yield f"    u[i] = to_{s.dtype}(0.0)"


def _factored(s: System) -> list[str]:
    if s.op == "cholesky":
        return list(_cholesky_in_registers(s) if _in_registers(s) else _cholesky_in_rows(s))
    return list(_lu_in_registers(s) if _in_registers(s) else _lu_in_rows(s))


def _number(s: System, value: float) -> str:
    return f"to_{s.dtype}({value!r})"


def _range(s: System) -> tuple[str, str]:
    """The least normal and the largest number."""
    finfo = np.finfo(np.float32 if s.dtype == "f32" else np.float64)
    return _number(s, float(finfo.tiny)), _number(s, float(finfo.max))


def _is_good(s: System, pivot: str, largest: str) -> str:
    rounding = _ROUNDINGS * s.n * float(np.finfo(np.float32 if s.dtype == "f32" else np.float64).eps)
    return f"good = good & ({pivot} > {largest} * {_number(s, rounding)}) & ({pivot} > {_range(s)[0]})"


# --- in registers ----------------------------------------------------------------------------------------------------


def _lu_in_registers(s: System) -> Iterator[str]:
    """For n = 2, up to the first pivot::

        a0_0 = am[0]
        ...
        top0 = fmax(abs(a0_0), abs(a1_0))
        top1 = fmax(abs(a0_1), abs(a1_1))
        r0 = to_i64(0)
        r1 = to_i64(1)
        odd = 0 == 1
        best = abs(a0_0)
        p = to_i64(0)
        other = abs(a1_0)
        p = select(other > best, to_i64(1), p)
        best = select(other > best, other, best)
        good = good & (best > top0 * ...)
        c1 = p == 1
        odd = odd ^ c1
        t = select(c1, a1_0, a0_0)
        a1_0 = select(c1, a0_0, a1_0)
        a0_0 = t
        ...
        d0 = to_f64(1.0) / a0_0
        a1_0 = a1_0 * d0
        a1_1 = fma(-a1_0, a0_1, a1_1)
    """
    n = s.n
    yield from (f"a{i}_{j} = am[{i * s.matrix.row + j * s.matrix.column}]" for i in range(n) for j in range(n))
    for j in range(n):
        largest = f"abs(a0_{j})"
        for i in range(1, n):
            largest = f"fmax({largest}, abs(a{i}_{j}))"
        yield f"top{j} = {largest}"
    yield from (f"r{i} = to_i64({i})" for i in range(n))
    yield "odd = 0 == 1"
    for k in range(n):
        yield from _pivot_in_registers(s, k)
        for i in range(k + 1, n):
            yield f"a{i}_{k} = a{i}_{k} * d{k}"
            yield from (f"a{i}_{j} = fma(-a{i}_{k}, a{k}_{j}, a{i}_{j})" for j in range(k + 1, n))
    if s.op in ("solve", "inverse"):
        yield from _columns_in_registers(s)
    else:
        yield from _results_of_pivots(s)


def _pivot_in_registers(s: System, k: int) -> Iterator[str]:
    """The largest element of column ``k`` on the diagonal, and its reciprocal ``d<k>``."""
    yield f"best = abs(a{k}_{k})"
    yield f"p = to_i64({k})"
    for i in range(k + 1, s.n):
        yield f"other = abs(a{i}_{k})"
        yield f"p = select(other > best, to_i64({i}), p)"
        yield "best = select(other > best, other, best)"
    yield _is_good(s, "best", f"top{k}")
    for i in range(k + 1, s.n):
        yield f"c{i} = p == {i}"
        yield f"odd = odd ^ c{i}"
        pairs = [(f"a{k}_{j}", f"a{i}_{j}", "t") for j in range(s.n)] + [(f"r{k}", f"r{i}", "moved")]
        for first, second, name in pairs:
            yield f"{name} = select(c{i}, {second}, {first})"
            yield f"{second} = select(c{i}, {first}, {second})"
            yield f"{first} = {name}"
    yield f"d{k} = {_number(s, 1.0)} / a{k}_{k}"


def _columns_in_registers(s: System) -> Iterator[str]:
    """Forward and back substitution for each column of the right sides."""
    lines = []
    for i in range(s.n):
        given = f"bm[r{i} * {s.right.row} + j * {s.right.column}]"
        identity = f"select(r{i} == j, {_number(s, 1.0)}, {_number(s, 0.0)})"
        lines.append(f"t{i} = {given if s.op == 'solve' else identity}")
        lines += [f"t{i} = fma(-a{i}_{k}, t{k}, t{i})" for k in range(i)]
    for i in reversed(range(s.n)):
        lines += [f"t{i} = fma(-a{i}_{k}, t{k}, t{i})" for k in range(i + 1, s.n)]
        lines += [f"t{i} = t{i} * d{i}", f"xm[{i * s.columns} + j] = t{i}"]
    yield from [f"for j in range({s.columns}):", *_indented(lines)]


def _results_of_pivots(s: System) -> Iterator[str]:
    """The determinant, or its sign and the logarithm of its absolute value.

    A product that leaves the range of normal numbers on its way is left to NumPy, which adds logarithms.
    """
    one = _number(s, 1.0)
    if s.op == "determinant":
        tiny, most = _range(s)
        yield f"total = select(odd, -{one}, {one})"
        yield from _for_each_pivot(s, ["total = total * v", f"good = good & (abs(total) > {tiny})"])
        yield f"good = good & (abs(total) <= {most})"
        yield "xm[0] = total"
        return
    yield f"total = {_number(s, 0.0)}"
    yield from _for_each_pivot(s, [f"odd = odd ^ (v < {_number(s, 0.0)})", "total = total + log(abs(v))"])
    yield f"xm[0] = select(odd, -{one}, {one})"
    yield "ym[0] = total"


def _for_each_pivot(s: System, lines: Sequence[str]) -> list[str]:
    if _in_registers(s):
        return [line for k in range(s.n) for line in (f"v = a{k}_{k}", *lines)]
    return [f"for k in range({s.n}):", "    v = pivot[k]", *_indented(lines)]


def _cholesky_in_registers(s: System) -> Iterator[str]:
    n = s.n
    pairs = [(i, j) for i in range(n) for j in range(i + 1)]
    yield from (f"a{i}_{j} = am[{i * s.matrix.row + j * s.matrix.column}]" for i, j in pairs)
    yield from (f"top{k} = a{k}_{k}" for k in range(n))
    for k in range(n):
        yield _is_good(s, f"a{k}_{k}", f"top{k}")
        yield f"a{k}_{k} = sqrt(a{k}_{k})"
        yield f"d = {_number(s, 1.0)} / a{k}_{k}"
        yield from (f"a{i}_{k} = a{i}_{k} * d" for i in range(k + 1, n))
        yield from (f"a{i}_{j} = fma(-a{i}_{k}, a{j}_{k}, a{i}_{j})" for i in range(k + 1, n) for j in range(k + 1, i + 1))
    for i in range(n):
        yield from (f"xm[{i * n + j}] = " + (f"a{i}_{j}" if j <= i else _number(s, 0.0)) for j in range(n))


# --- in rows -----------------------------------------------------------------------------------------------------------


def _subtracted(to: str, factor: str, row: str, count: int) -> list[str]:
    """``to[j] -= factor * row[j]`` for ``count`` elements."""
    if count > _MAX_STATEMENTS * _MAX_VECTOR:
        return [f"for j in range({count}):", f"    {to}[j] = fma(-{factor}, {row}[j], {to}[j])"]
    parts = [(first, min(_MAX_VECTOR, count - first)) for first in range(0, count, _MAX_VECTOR)]
    return [f"subtract_row(at({to}, {first}), {factor}, at({row}, {first}), {size})" for first, size in parts]


def _subtracted_from(s: System, to: str, factor: str, row: str) -> list[str]:
    """The same for a row of the matrix, of which the elements before ``k`` are done with."""
    if s.n <= _VECTOR_OF_LARGE:
        return _subtracted(to, factor, row, _width(s))
    size = _VECTOR_OF_LARGE
    places = f"at({to}, c * {size}), {factor}, at({row}, c * {size}), {size}"
    return [f"for c in range(k // {size}, {_width(s) // size}):", f"    subtract_row({places})"]


def _swap(first: str, second: str, count: int) -> list[str]:
    lines = [f"t = {first}[j]", f"{first}[j] = {second}[j]", f"{second}[j] = t"]
    return [f"for j in range({count}):", *_indented(lines)]


def _lu_in_rows(s: System) -> Iterator[str]:
    """Gaussian elimination of the matrix and of the right sides, which lie where the results will."""
    n, width, m = s.n, _width(s), s.columns if s.op in ("solve", "inverse") else 0
    yield from _loaded(s, f"am[i * {s.matrix.row} + j * {s.matrix.column}]")
    if m:
        right = f"bm[i * {s.right.row} + j * {s.right.column}]"
        identity = f"select(i == j, {_number(s, 1.0)}, {_number(s, 0.0)})"
        yield from [f"for i in range({n}):", f"    for j in range({m}):"]
        yield f"        xm[i * {m} + j] = {right if s.op == 'solve' else identity}"
    yield from [f"for j in range({width}):", "    top[j] = abs(u[j])"]
    yield from [f"for i in range(1, {n}):", f"    for j in range({width}):"]
    yield f"        top[j] = fmax(top[j], abs(u[i * {width} + j]))"
    yield "odd = 0 == 1"
    yield f"for k in range({n}):"
    yield from _indented(list(_step_in_rows(s, m)))
    if m:
        yield from _back_substitution(s, m)
    else:
        yield from _results_of_pivots(s)


def _loaded(s: System, element: str) -> Iterator[str]:
    yield from [f"for i in range({s.n}):", f"    for j in range({s.n}):", f"        u[i * {_width(s)} + j] = {element}"]


def _step_in_rows(s: System, m: int) -> Iterator[str]:
    n, width = s.n, _width(s)
    yield from [f"uk = at(u, k * {width})", "best = abs(uk[k])", "p = k", f"for i in range(k + 1, {n}):"]
    yield f"    other = abs(u[i * {width} + k])"
    yield from ["    p = select(other > best, i, p)", "    best = select(other > best, other, best)"]
    yield _is_good(s, "best", "top[k]")
    swaps = ["odd = odd ^ (1 == 1)", f"up = at(u, p * {width})", *_swap("uk", "up", width)]
    if m:
        yield f"xk = at(xm, k * {m})"
        swaps += [f"xp = at(xm, p * {m})", *_swap("xk", "xp", m)]
    yield from ["if p != k:", *_indented(swaps)]
    lines = [f"ui = at(u, i * {width})", "f = ui[k] * d", *_subtracted_from(s, "ui", "f", "uk")]
    if m:
        lines += [f"xi = at(xm, i * {m})", *_subtracted("xi", "f", "xk", m)]
    yield from ["pivot[k] = uk[k]", f"d = {_number(s, 1.0)} / uk[k]", f"for i in range(k + 1, {n}):", *_indented(lines)]


def _back_substitution(s: System, m: int) -> Iterator[str]:
    n, width = s.n, _width(s)
    yield f"for q in range({n}):"
    lines = [f"k = {n - 1} - q", f"xk = at(xm, k * {m})", f"d = {_number(s, 1.0)} / pivot[k]"]
    lines += [f"for j in range({m}):", "    xk[j] = xk[j] * d", "for i in range(k):"]
    inner = [f"xi = at(xm, i * {m})", f"f = u[i * {width} + k]", *_subtracted("xi", "f", "xk", m)]
    yield from _indented([*lines, *_indented(inner)])


def _cholesky_in_rows(s: System) -> Iterator[str]:
    """The transpose of the factor row by row, from the lower triangle."""
    n, width = s.n, _width(s)
    yield from [f"for i in range({n}):", f"    for j in range(i, {n}):"]
    yield f"        u[i * {width} + j] = am[j * {s.matrix.row} + i * {s.matrix.column}]"
    yield from [f"for k in range({n}):", f"    top[k] = u[k * {width} + k]"]
    lines = [f"uk = at(u, k * {width})", "d = uk[k]", _is_good(s, "d", "top[k]"), f"d = {_number(s, 1.0)} / sqrt(d)"]
    lines += [f"for j in range({width}):", "    uk[j] = uk[j] * d", f"for i in range(k + 1, {n}):"]
    lines += _indented([f"ui = at(u, i * {width})", "f = uk[i]", *_subtracted_from(s, "ui", "f", "uk")])
    yield from [f"for k in range({n}):", *_indented(lines)]
    yield from [f"for i in range({n}):", f"    for j in range({n}):"]
    yield f"        xm[i * {n} + j] = select(j <= i, u[j * {width} + i], {_number(s, 0.0)})"
