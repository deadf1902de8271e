"""Measures what the first-call check costs against one eager run, for docs/internals/first_call_check.md.

    python tools/check_cost.py                          # the table
    python tools/check_cost.py mixed,1500,f8,1000000    # kind, ops, dtype, elements

Each program runs in a process of its own. Times are processor time of one thread, without
compilation: an eager run (the better of two), the whole of the checked call, and the limit of twice
an eager run and 0.3 s.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad.jit.executable import Executable

ROWS = """
mixed,10,f8,1000000 mixed,100,f4,1000000 mixed,100,f8,1000000 plain,1500,f8,1000000 gradient,1500,f8,1000000
mixed,1500,f4,100000 mixed,1500,f8,100000 mixed,1500,f8,1000000 index,1500,f4,1000000 index,1500,f8,1000000
scatter,1500,f4,1000000 norm,1500,f4,1000000 norm,1500,f8,1000000 norm,1500,f8,300000 gru,1500,f4,1000000
gru,1500,f8,1000000 plain,10000,f8,1000 gradient,10000,f4,1000 gradient,10000,f8,1000 mixed,10000,f8,1000
index,10000,f8,1000 norm,10000,f4,1000 norm,10000,f8,1000 mixed,10000,f2,1000 gradient,10000,f2,1000
mixed,10000,f4,100000 mixed,10000,f8,100000 norm,10000,f4,100000 index,10000,f8,100000 gradient,10000,f4,100000
plain,10000,f8,1000000 mixed,10000,f4,1000000 norm,10000,f4,1000000
""".split()
FACTOR, CONSTANT = 2.0, 0.3

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def numbers(shape: Any, dtype: str) -> Any:
    return jg.tensor(np.random.default_rng(0).standard_normal(shape).astype(dtype))


def plain(ops: int, dtype: str, size: int) -> Program:
    def f(h: Any) -> Any:
        for _ in range(ops // 7):
            h = jg.tanh(h) * 1.01
            h = jg.sin(h) + h * h - 0.1
        return h

    return f, (numbers(size, dtype),)


def gradient(ops: int, dtype: str, size: int) -> Program:
    f, args = plain(ops // 3, dtype, size)
    return jg.value_and_grad(lambda x: f(x).mean()), args


def mixed(ops: int, dtype: str, size: int) -> Program:
    def f(h: Any) -> Any:
        for _ in range(ops // 8):
            h = jg.sin(h) * 1.01
            h = h - h.mean(axis=1, keepdims=True)
            h = h * 0.9 + jg.exp(-h * h)
        return (h * h).mean(axis=0)

    return f, (numbers((int(size**0.5),) * 2, dtype),)


def norm(ops: int, dtype: str, size: int) -> Program:
    def f(h: Any) -> Any:
        for _ in range(ops // 16):
            h = (h - h.mean(axis=1, keepdims=True)) / jg.sqrt((h * h).mean(axis=1, keepdims=True) + 0.1)
            h = jg.gelu(h) - h.mean(axis=0) * 0.1 + jg.exp(h * 0.1)
        return h

    return f, (numbers((int(size**0.5),) * 2, dtype),)


def index(ops: int, dtype: str, size: int) -> Program:
    places = jg.tensor(np.random.default_rng(0).integers(0, size, size))

    def f(h: Any) -> Any:
        for _ in range(ops // 9):
            h = jg.sin(h) * 1.1 + jg.take(h, places, axis=0) * 0.1 - jg.roll(h, 3) * 0.01
        return jg.concat([h, jg.cumulative_sum(h, axis=0)])

    return f, (numbers(size, dtype),)


def scatter(ops: int, dtype: str, size: int) -> Program:
    places = jg.tensor(np.random.default_rng(0).integers(0, size // 20, size // 20))

    def loss(h: Any) -> Any:
        for _ in range(ops // 9):
            sums = jg.index_add(jg.zeros_like(h), 0, places, jg.take(h, places, axis=0))
            h = jg.tanh(h + sums * 0.3)
        return (h * h).mean()

    return jg.value_and_grad(loss), (numbers((size // 20, 20), dtype),)


def gru(ops: int, dtype: str, size: int) -> Program:
    jg.manual_seed(0)
    wide = jg.float64 if dtype == "f8" else jg.float32
    steps, width, batch = max(1, ops // 40), 128, max(4, size // 1024)
    cell = jg.nn.GRUCell(64, width).to(wide)
    optimizer = jg.optim.SGD(cell.parameters(), lr=1e-3)

    def f(xs: Any) -> Any:
        h = jg.zeros((batch, width), dtype=wide)
        optimizer.zero_grad()
        for k in range(steps):
            h = cell(xs[k], h)
        loss = (h * h).mean()
        loss.backward()
        optimizer.step()
        return loss

    return f, (numbers((steps, batch, 64), dtype),)


PROGRAMS = {f.__name__: f for f in (plain, gradient, mixed, norm, index, scatter, gru)}


def timed(f: Callable[..., Any], *args: Any) -> float:
    start = thread_time()
    f(*args)
    return thread_time() - start


def measure(kind: str, ops: int, dtype: str, size: int) -> str:
    """A row of the table."""
    f, args = PROGRAMS[kind](ops, dtype, size)
    f(*args)
    eager = min(timed(f, *args) for _ in range(2))
    spent = {"check": 0.0, "fused": 0.0}

    def count(holder: Any, name: str, what: str) -> None:
        original = getattr(holder, name)

        def counted(*given: Any, **named: Any) -> Any:
            start = thread_time()
            try:
                return original(*given, **named)
            finally:
                spent[what] += thread_time() - start

        setattr(holder, name, counted)

    count(importlib.import_module("jitgrad.jit.decorator"), "check_first_call", "check")
    count(Executable, "outputs", "fused")  # its first run compiles
    compiled = jg.jit(f)
    compiled(*args)
    fused = min(timed(compiled, *args) for _ in range(2))
    check, limit = spent["check"] - spent["fused"] + fused, FACTOR * eager + CONSTANT
    name = {"f2": "float16", "f4": "float32", "f8": "float64"}[dtype]
    mark = "" if check <= limit else " (over)"
    return f"| {kind} | {ops:,} | {size:,} | {name} | {eager:.2f} | {check:.2f}{mark} | {limit:.2f} |"


def main() -> None:
    rows = sys.argv[1:]
    if len(rows) == 1:
        kind, ops, dtype, size = rows[0].split(",")
        print(measure(kind, int(ops), dtype, int(size)), flush=True)
        return
    print("| program | ops | elements | dtype | eager | check | limit |\n|---|---|---|---|---|---|---|", flush=True)
    for row in rows or ROWS:
        subprocess.run([sys.executable, str(Path(__file__)), row], check=False)


if __name__ == "__main__":
    main()
