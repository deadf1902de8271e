"""The text of a kernel whose block factors one matrix in shared memory: LU with partial pivoting, and Cholesky.

The matrix and the block's columns of right sides are one array of ``n`` rows. In each step every thread looks for the pivot
itself, so that none waits for the answer of another: the first largest element of its column, as in LAPACK (J. J. Dongarra
et al., "LINPACK Users' Guide", 1979, chapter 1). Warps then take rows, and their threads columns. The number of rows is the
argument ``rows`` besides: loops over a literal one are unrolled within each other, which takes LLVM seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jitgrad.backends.cuda.schedule import WARP
from jitgrad.runtime.library.system import System, float_text, indented, pivot_check, results_of_pivots

_SHARED_BYTES = 48 << 10  # that a block has without asking for more
_MOST_THREADS = 256
_THREADS_PER_ROW = 4  # an estimate, not measured


class SharedLayout(NamedTuple):
    """What a block holds, and how many threads it has.

    Attributes:
        columns: of right sides.
        parts: blocks for one matrix.
        stride: elements from one row to the next.
    """

    columns: int
    parts: int
    stride: int
    threads: int


def shared_layout(s: System) -> SharedLayout:
    """The most columns that fit beside the matrix, in blocks of nearly as many each."""
    elements = _SHARED_BYTES // (4 if s.dtype == "f32" else 8) - 2 * s.n  # less a column of factors and the pivots
    threads = min(_MOST_THREADS, -(-s.n * _THREADS_PER_ROW // WARP) * WARP)
    needed = s.columns if s.op in ("solve", "inverse", "triangular_solve") else 0
    most = elements // s.n - s.n
    parts = max(1, -(-needed // most))
    columns = -(-needed // parts)
    odd = (s.n + columns) | 1  # so that the elements of a column lie in different banks
    return SharedLayout(columns, parts, odd if s.n * odd <= elements else s.n + columns, threads)


def _each(name: str, start: str, stop: str, step: int, body: Sequence[str]) -> list[str]:
    return [f"for {name} in range({start}, {stop}, {step}):", *indented(body)]


def _each_element(layout: SharedLayout, rows: tuple[str, str], columns: tuple[str, str], body: Sequence[str]) -> list[str]:
    """``body`` for elements ``i, j``: a warp takes a row, and its threads columns."""
    inner = _each("j", columns[0], columns[1], WARP, body)
    return _each("i", rows[0], rows[1], layout.threads // WARP, inner)


def loaded(s: System, layout: SharedLayout) -> Iterator[str]:
    """Shared memory, with the matrix and the right sides that the block has."""
    n, c, zero = s.n, layout.columns, float_text(s, 0.0)
    yield f"w = shared_{s.dtype}({n * layout.stride})"
    yield f"factor = shared_{s.dtype}({n})"
    yield f"pivot = shared_{s.dtype}({n})"
    yield f"lane = thread() % {WARP}"
    yield f"row = thread() // {WARP}"
    element = f"w[i * {layout.stride} + j] = am[i * {s.matrix.row} + j * {s.matrix.column}]"
    yield from _each_element(layout, ("row", "rows"), ("lane", "rows"), [element])
    if c:
        place = f"w[i * {layout.stride} + {n} + j]"
        if s.op == "inverse":
            body = [f"{place} = select(i == first + j, {float_text(s, 1.0)}, {zero})"]
        else:  # the last block may have less columns than the others
            given = f"bm[i * {s.right.row} + min(first + j, {s.columns - 1}) * {s.right.column}]"
            body = [f"{place} = {given}"]
        yield from _each_element(layout, ("row", "rows"), ("lane", f"{c}"), body)
    yield "barrier()"


def eliminated(s: System, layout: SharedLayout) -> Iterator[str]:
    """The results of ``s``, and ``good``, from what is `loaded`."""
    if s.op == "cholesky":
        yield from _cholesky(s, layout)
        return
    if s.op == "triangular_solve":
        diagonal = f"w[k * {layout.stride} + k]"
        check = pivot_check(s, diagonal, "")
        yield from ["for k in range(rows):", *indented([check])]
        yield from _each("k", "thread()", "rows", layout.threads, [f"pivot[k] = {diagonal}"])
        yield "barrier()"
    else:
        yield "odd = 0 == 1"
        yield from ["for k in range(rows):", *indented(list(_step(s, layout)))]
    if layout.columns:
        yield from _substitution(s, layout)
    else:
        yield from ["if thread() == 0:", *indented(list(results_of_pivots(s)))]


def _step(s: System, layout: SharedLayout) -> Iterator[str]:
    """Column ``k`` stays as it is until all have read it: its factors are kept apart, and rows change places beyond it."""
    stride = layout.stride
    yield from [f"best = abs(w[k * {stride} + k])", "p = to_i64(k)"]
    search = ["p = select(other > best, to_i64(i), p)", "best = select(other > best, other, best)"]
    yield from ["for i in range(k + 1, rows):", *indented([f"other = abs(w[i * {stride} + k])", *search])]
    yield f"value = w[p * {stride} + k]"
    yield pivot_check(s, "value", "")
    yield "odd = odd ^ (p != k)"
    source = f"w[select(p == i, to_i64(k), to_i64(i)) * {stride} + k]"
    yield from _each("i", "k + 1 + thread()", "rows", layout.threads, [f"factor[i] = {source} / value"])
    yield from ["if thread() == 0:", "    pivot[k] = value"]
    first, second = f"w[k * {stride} + j]", f"w[p * {stride} + j]"
    swap = [f"upper = {second}", f"{second} = {first}", f"{first} = upper"]
    yield from _each("j", "k + 1 + thread()", f"rows + {layout.columns}", layout.threads, swap)
    yield "barrier()"
    subtract = f"w[i * {stride} + j] = fma(-factor[i], w[k * {stride} + j], w[i * {stride} + j])"
    yield from _each_element(layout, ("k + 1 + row", "rows"), ("k + 1 + lane", f"rows + {layout.columns}"), [subtract])
    yield "barrier()"


def _substitution(s: System, layout: SharedLayout) -> Iterator[str]:
    """The unknowns, from the last one of an upper triangle, or the first one of a lower one."""
    n, c, stride = s.n, layout.columns, layout.stride
    upper = s.upper or s.op != "triangular_solve"
    rest = "k" if upper else f"({n - 1} - k)"
    body = [f"k = {n - 1} - s" if upper else "k = to_i64(s)"]
    body += _each("j", "thread()", f"{c}", layout.threads, [f"w[k * {stride} + {n} + j] = w[k * {stride} + {n} + j] / pivot[k]"])
    place = f"w[i * {stride} + {n} + j]"
    subtract = f"{place} = fma(-w[i * {stride} + k], w[k * {stride} + {n} + j], {place})"
    row = f"i = q // {c}" + ("" if upper else " + k + 1")
    body += ["barrier()", *_each("q", "thread()", f"{rest} * {c}", layout.threads, [row, f"j = q % {c}", subtract]), "barrier()"]
    yield from ["for s in range(rows):", *indented(body)]
    store = [f"if first + j < {s.columns}:", f"    xm[i * {s.columns} + first + j] = {place}"]
    yield from _each_element(layout, ("row", "rows"), ("lane", f"{c}"), store)


def _cholesky(s: System, layout: SharedLayout) -> Iterator[str]:
    """Column ``k`` of the factor goes to the result at once."""
    n, stride = s.n, layout.stride
    yield "for k in range(rows):"
    body = [f"value = w[k * {stride} + k]", pivot_check(s, "value", ""), "root = sqrt(value)"]
    column = [f"factor[i] = select(i == k, root, w[i * {stride} + k] / root)", f"xm[i * {n} + k] = factor[i]"]
    body += _each("i", "thread() + k", "rows", layout.threads, column)
    body += _each("i", "thread()", "k", layout.threads, [f"xm[i * {n} + k] = {float_text(s, 0.0)}"])
    subtract = f"w[i * {stride} + j] = fma(-factor[i], factor[j], w[i * {stride} + j])"
    body += ["barrier()", *_each_element(layout, ("k + 1 + row", "rows"), ("k + 1 + lane", "i + 1"), [subtract]), "barrier()"]
    yield from indented(body)
