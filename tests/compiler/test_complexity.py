"""Every pass takes a number of steps linear, or n log n, in the number of ops: counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.pipeline import run_passes
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Graph

SMALL, LARGE = 100, 400
SMALL_KERNELS = Tuning(max_kernel_nodes=40)  # both sizes take several, and their loops are cut
ALLOWED = 1.6  # times the growth of the graph: a logarithm, and what starts beyond a threshold


def ladder(u: Any, n: int) -> Any:
    for _ in range(n):
        u = u + 0.1 * u
    return u.mean()


def chain(u: Any, n: int) -> Any:
    for k in range(n):
        u = jg.tanh(u) if k % 3 else u * 1.5 + 0.5
    return u.sum()


def diamonds(u: Any, n: int) -> Any:
    for _ in range(n // 3):
        a, b = u * 2.0, jg.sin(u)
        u = a * b
    return (u - u.mean(axis=1, keepdims=True)).sum(axis=0)


def stencil(u: Any, n: int) -> Any:
    for _ in range(n // 10):
        u = u[:, 1:-1] + 0.1 * (u[:, 2:] - 2.0 * u[:, 1:-1] + u[:, :-2])
        u = jg.pad(u, ((0, 0), (1, 1)))
    return u


def diffusion(u: Any, n: int) -> Any:
    for _ in range(n // 25):
        p = jg.pad(u, ((0, 0), (1, 1)), mode="edge")
        left, right = p[:, :-2] - u, p[:, 2:] - u
        u = u + 0.2 * (left * jg.exp(-left * left) + right * jg.exp(-right * right))
    return u


def normalised(u: Any, n: int) -> Any:
    for _ in range(n // 8):
        centred = u - u.mean(axis=1, keepdims=True)
        u = centred * jg.rsqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
    return u


PROGRAMS = (ladder, chain, diamonds, stencil, diffusion, normalised)


def graph_of(f: Callable[..., Any]) -> Graph:
    graph = jg.jit(f, check="off").graph(jg.tensor(np.ones((4, 64))), stage="trace")
    assert isinstance(graph, Graph)
    return graph


def steps_by_pass(graph: Graph) -> dict[str, int]:
    """How many Python functions are called in each pass."""
    steps: dict[str, int] = {}
    count = 0

    def on_event(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    def watch(stage: str, _graph: Graph) -> None:
        nonlocal count
        steps[stage] = steps.get(stage, 0) + count
        count = 0

    sys.setprofile(on_event)
    try:
        run_passes(graph, watch=watch, tuning=SMALL_KERNELS)
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize("derive", [lambda f: f, lambda f: jg.grad(lambda u: f(u).sum())], ids=["forward", "gradient"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_steps_grow_with_the_number_of_ops(program: Any, derive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_VERIFY", "0")
    small, large = (graph_of(derive(lambda u, n=n: program(u, n))) for n in (SMALL, LARGE))
    growth = len(large.nodes) / len(small.nodes)
    before, after = steps_by_pass(small), steps_by_pass(large)

    slow = {name: after[name] / before[name] for name in before if after[name] > ALLOWED * growth * max(before[name], 500)}
    assert not slow, f"the graph grew {growth:.1f} times, from {len(small.nodes)} ops"


def test_short_rows_that_depend_on_all_rows_before() -> None:
    """Each turn reduces rows of two elements, and all turns before lead to it."""

    def orbits(q: Any, turns: int) -> Any:
        p = q
        for _ in range(turns):
            distance = (q * q).sum(axis=1, keepdims=True) + 0.1
            p = p - 0.01 * q / (distance * jg.sqrt(distance))
            q = q + 0.01 * p
        return (q * p).sum()

    def steps(turns: int) -> int:
        graph = jg.jit(jg.grad(lambda q: orbits(q, turns)), check="off").graph(jg.ones((4096, 2)), stage="trace")
        return steps_by_pass(graph)["unroll_axes"]

    assert steps(120) < ALLOWED * 4 * steps(30)
