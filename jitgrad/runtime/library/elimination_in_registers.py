"""The text of machine code that holds matrices in registers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from jitgrad.runtime.library.system import (
    System,
    divided,
    float_text,
    indented,
    number_range,
    pivot_check,
    results_of_pivots,
)


def lu_in_registers(s: System) -> Iterator[str]:
    """For n = 2, up to the first pivot::

        a0_0 = am[0]
        ...
        top0 = fmax(abs(a0_0), abs(a1_0))
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
        larger = select(c1, a1_0, a0_0)
        a1_0 = select(c1, a0_0, a1_0)
        a0_0 = larger
    """
    n = s.n
    yield from (f"a{i}_{j} = am[{i * s.matrix.row + j * s.matrix.column}]" for i in range(n) for j in range(n))
    for j in range(n):
        sizes = [f"abs(a{i}_{j})" for i in range(n)]
        yield f"top{j} = " + reduce(lambda largest, size: f"fmax({largest}, {size})", sizes)
    yield from (f"r{i} = to_i64({i})" for i in range(n))
    yield "odd = 0 == 1"
    for k in range(n):
        yield from _pivot(s, k)
        for i in range(k + 1, n):
            yield f"a{i}_{k} = {divided(s, f'a{i}_{k}', f'a{k}_{k}', f'd{k}')}"
            yield from (f"a{i}_{j} = fma(-a{i}_{k}, a{k}_{j}, a{i}_{j})" for j in range(k + 1, n))
    if s.op in ("solve", "inverse"):
        yield from _columns(s)
    else:
        yield from results_of_pivots(s)


def _pivot(s: System, k: int) -> Iterator[str]:
    """The largest element of column ``k`` on the diagonal, and its reciprocal ``d<k>``."""
    yield f"best = abs(a{k}_{k})"
    yield f"p = to_i64({k})"
    for i in range(k + 1, s.n):
        yield f"other = abs(a{i}_{k})"
        yield f"p = select(other > best, to_i64({i}), p)"
        yield "best = select(other > best, other, best)"
    yield pivot_check(s, "best", f"top{k}")
    for i in range(k + 1, s.n):
        yield f"c{i} = p == {i}"
        yield f"odd = odd ^ c{i}"
        pairs = [(f"a{k}_{j}", f"a{i}_{j}", "larger") for j in range(s.n)] + [(f"r{k}", f"r{i}", "moved")]
        for first, second, name in pairs:
            yield f"{name} = select(c{i}, {second}, {first})"
            yield f"{second} = select(c{i}, {first}, {second})"
            yield f"{first} = {name}"
    if not s.exact:
        yield f"d{k} = {float_text(s, 1.0)} / a{k}_{k}"


def _columns(s: System) -> Iterator[str]:
    """Forward and back substitution for each column of the right sides."""
    lines = []
    for i in range(s.n):
        given = f"bm[r{i} * {s.right.row} + j * {s.right.column}]"
        identity = f"select(r{i} == j, {float_text(s, 1.0)}, {float_text(s, 0.0)})"
        lines.append(f"t{i} = {given if s.op == 'solve' else identity}")
        lines += [f"t{i} = fma(-a{i}_{k}, t{k}, t{i})" for k in range(i)]
    for i in reversed(range(s.n)):
        lines += [f"t{i} = fma(-a{i}_{k}, t{k}, t{i})" for k in range(i + 1, s.n)]
        lines += [f"t{i} = {divided(s, f't{i}', f'a{i}_{i}', f'd{i}')}", f"xm[{i * s.columns} + j] = t{i}"]
    yield from [f"for j in range({s.columns}):", *indented(lines)]


def cholesky_in_registers(s: System) -> Iterator[str]:
    n = s.n
    pairs = [(i, j) for i in range(n) for j in range(i + 1)]
    yield from (f"a{i}_{j} = am[{i * s.matrix.row + j * s.matrix.column}]" for i, j in pairs)
    yield from (f"top{k} = a{k}_{k}" for k in range(n))
    for k in range(n):
        yield pivot_check(s, f"a{k}_{k}", f"top{k}")
        yield f"a{k}_{k} = sqrt(a{k}_{k})"
        if not s.exact:
            yield f"d = {float_text(s, 1.0)} / a{k}_{k}"
        yield from (f"a{i}_{k} = {divided(s, f'a{i}_{k}', f'a{k}_{k}', 'd')}" for i in range(k + 1, n))
        yield from (f"a{i}_{j} = fma(-a{i}_{k}, a{j}_{k}, a{i}_{j})" for i in range(k + 1, n) for j in range(k + 1, i + 1))
    for i in range(n):
        yield from (f"xm[{i * n + j}] = " + (f"a{i}_{j}" if j <= i else float_text(s, 0.0)) for j in range(n))


def substitution_in_registers(s: System) -> Iterator[str]:
    order = list(reversed(range(s.n))) if s.upper else list(range(s.n))
    for k, i in enumerate(order):
        yield from (f"a{i}_{j} = am[{i * s.matrix.row + j * s.matrix.column}]" for j in (*order[:k], i))
        if s.exact:
            yield pivot_check(s, f"a{i}_{i}", "")
            continue
        yield f"good = good & (abs(a{i}_{i}) > {number_range(s)[0]})"
        yield f"d{i} = {float_text(s, 1.0)} / a{i}_{i}"
    lines = []
    for k, i in enumerate(order):
        lines.append(f"t{i} = bm[{i * s.right.row} + j * {s.right.column}]")
        lines += [f"t{i} = fma(-a{i}_{j}, t{j}, t{i})" for j in order[:k]]
        lines += [f"t{i} = {divided(s, f't{i}', f'a{i}_{i}', f'd{i}')}", f"xm[{i * s.columns} + j] = t{i}"]
    yield from [f"for j in range({s.columns}):", *indented(lines)]
