"""The text of machine code that holds matrices in rows of vectors on the stack."""

from __future__ import annotations

from collections.abc import Iterator

from jitgrad.runtime.library.system import System, float_text, indented, number_range, pivot_check, results_of_pivots

_VECTOR, _VECTOR_OF_LARGE = 8, 16  # rows are padded to a multiple of so many elements
_MAX_VECTOR, _MAX_STATEMENTS = 32, 4  # elements that a statement for a row takes, and statements instead of a loop


def _width(s: System) -> int:
    """The elements from one row of the matrix to the next: whole vectors."""
    vector = _VECTOR if s.n <= _VECTOR_OF_LARGE else _VECTOR_OF_LARGE
    return -(-s.n // vector) * vector


def row_memory(s: System) -> Iterator[str]:
    """Memory for a matrix, the largest elements of its columns, and its pivots."""
    if s.op == "triangular_solve":
        return
    width = _width(s)
    yield f"u = scratch_{s.dtype}({s.n * width})"
    yield f"top = scratch_{s.dtype}({width})"
    yield f"pivot = scratch_{s.dtype}({width})"
    yield f"for i in range({s.n * width}):"  # the padding may hold denormal numbers, which are slow even if unused
    yield f"    u[i] = to_{s.dtype}(0.0)"


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
    return [f"for j in range({count}):", *indented(lines)]


def lu_in_rows(s: System) -> Iterator[str]:
    """Gaussian elimination of the matrix and of the right sides, which lie where the results will."""
    n, width, m = s.n, _width(s), s.columns if s.op in ("solve", "inverse") else 0
    yield from _loaded(s, f"am[i * {s.matrix.row} + j * {s.matrix.column}]")
    if m:
        right = f"bm[i * {s.right.row} + j * {s.right.column}]"
        identity = f"select(i == j, {float_text(s, 1.0)}, {float_text(s, 0.0)})"
        yield from [f"for i in range({n}):", f"    for j in range({m}):"]
        yield f"        xm[i * {m} + j] = {right if s.op == 'solve' else identity}"
    yield from [f"for j in range({width}):", "    top[j] = abs(u[j])"]
    yield from [f"for i in range(1, {n}):", f"    for j in range({width}):"]
    yield f"        top[j] = fmax(top[j], abs(u[i * {width} + j]))"
    yield "odd = 0 == 1"
    yield f"for k in range({n}):"
    yield from indented(list(_step(s, m)))
    if m:
        yield from _back_substitution(s, m)
    else:
        yield from results_of_pivots(s)


def _loaded(s: System, element: str) -> Iterator[str]:
    yield from [f"for i in range({s.n}):", f"    for j in range({s.n}):", f"        u[i * {_width(s)} + j] = {element}"]


def _step(s: System, m: int) -> Iterator[str]:
    n, width = s.n, _width(s)
    yield from [f"uk = at(u, k * {width})", "best = abs(uk[k])", "p = k", f"for i in range(k + 1, {n}):"]
    yield f"    other = abs(u[i * {width} + k])"
    yield from ["    p = select(other > best, i, p)", "    best = select(other > best, other, best)"]
    yield pivot_check(s, "best", "top[k]")
    swaps = ["odd = odd ^ (1 == 1)", f"up = at(u, p * {width})", *_swap("uk", "up", width)]
    if m:
        yield f"xk = at(xm, k * {m})"
        swaps += [f"xp = at(xm, p * {m})", *_swap("xk", "xp", m)]
    yield from ["if p != k:", *indented(swaps)]
    lines = [f"ui = at(u, i * {width})", "f = ui[k] * d", *_subtracted_from(s, "ui", "f", "uk")]
    if m:
        lines += [f"xi = at(xm, i * {m})", *_subtracted("xi", "f", "xk", m)]
    yield from ["pivot[k] = uk[k]", f"d = {float_text(s, 1.0)} / uk[k]", f"for i in range(k + 1, {n}):", *indented(lines)]


def _back_substitution(s: System, m: int) -> Iterator[str]:
    n, width = s.n, _width(s)
    yield f"for q in range({n}):"
    lines = [f"k = {n - 1} - q", f"xk = at(xm, k * {m})", f"d = {float_text(s, 1.0)} / pivot[k]"]
    lines += [f"for j in range({m}):", "    xk[j] = xk[j] * d", "for i in range(k):"]
    inner = [f"xi = at(xm, i * {m})", f"f = u[i * {width} + k]", *_subtracted("xi", "f", "xk", m)]
    yield from indented([*lines, *indented(inner)])


def substitution_in_rows(s: System) -> Iterator[str]:
    """Each row that is known is subtracted from those that are not."""
    n, m = s.n, s.columns
    yield from [f"for i in range({n}):", f"    for j in range({m}):"]
    yield f"        xm[i * {m} + j] = bm[i * {s.right.row} + j * {s.right.column}]"
    yield f"for q in range({n}):"
    first, last = ("0", "k") if s.upper else ("k + 1", str(n))
    lines = [f"k = {n - 1} - q" if s.upper else "k = q", f"xk = at(xm, k * {m})"]
    lines += [f"d = am[k * {s.matrix.row + s.matrix.column}]", f"good = good & (abs(d) > {number_range(s)[0]})"]
    lines += [f"d = {float_text(s, 1.0)} / d", f"for j in range({m}):", "    xk[j] = xk[j] * d"]
    inner = [f"xi = at(xm, i * {m})", f"f = am[i * {s.matrix.row} + k * {s.matrix.column}]", *_subtracted("xi", "f", "xk", m)]
    yield from indented([*lines, f"for i in range({first}, {last}):", *indented(inner)])


def cholesky_in_rows(s: System) -> Iterator[str]:
    """The transpose of the factor row by row, from the lower triangle."""
    n, width = s.n, _width(s)
    yield from [f"for i in range({n}):", f"    for j in range(i, {n}):"]
    yield f"        u[i * {width} + j] = am[j * {s.matrix.row} + i * {s.matrix.column}]"
    yield from [f"for k in range({n}):", f"    top[k] = u[k * {width} + k]"]
    lines = [f"uk = at(u, k * {width})", "d = uk[k]", pivot_check(s, "d", "top[k]"), f"d = {float_text(s, 1.0)} / sqrt(d)"]
    lines += [f"for j in range({width}):", "    uk[j] = uk[j] * d", f"for i in range(k + 1, {n}):"]
    lines += indented([f"ui = at(u, i * {width})", "f = uk[i]", *_subtracted_from(s, "ui", "f", "uk")])
    yield from [f"for k in range({n}):", *indented(lines)]
    yield from [f"for i in range({n}):", f"    for j in range({n}):"]
    yield f"        xm[i * {n} + j] = select(j <= i, u[j * {width} + i], {float_text(s, 0.0)})"
