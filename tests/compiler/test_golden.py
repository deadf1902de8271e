"""Eight functions as text: the graph after every pass that changes it, and the source of their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.targets import TARGETS
from jitgrad.compiler.pipeline import PASSES, run_passes
from jitgrad.core.ir import Graph

Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def chain(x: Any, w: Any) -> Any:
    h = x * w
    return (h * jg.sigmoid(h)).sum()


def softmax(x: Any) -> Any:
    return jg.softmax(x, -1)


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return (jg.layer_norm(x, (5,), gamma, beta) ** 2).sum()


def dense(x: Any, w: Any, b: Any) -> Any:
    return jg.relu(x @ w + b)


def broadcasts(x: Any, row: Any, column: Any) -> Any:
    return jg.maximum(x - row, column) / (1.0 + jg.abs(x))


def simplified(x: Any) -> Any:
    y = x.reshape((4, 5)) * 1.0 + (jg.ones((4, 5)) * 2.0 - 2.0)
    return y.T.T + jg.exp(x) * 0.5 + jg.exp(x) * 0.5


def integers(x: Any) -> Any:
    n = jg.astype(x * 10.0, np.int32)
    return n // 3, n % 7, jg.abs(n) > 2


def unrolled(x: Any, w: Any, u: Any) -> Any:
    h = x[0] * 0.0
    for t in range(3):
        h = jg.tanh(x[t] @ w + h @ u)
    return (h * h).sum()


CASES: dict[str, Case] = {
    "chain with gradients": (jg.value_and_grad(chain, argnums=(0, 1)), ((4, 5), (5,))),
    "softmax": (softmax, ((4, 5),)),
    "layer norm with gradients": (jg.grad(layer_norm, argnums=(0, 1, 2)), ((4, 5), (5,), (5,))),
    "dense layer": (dense, ((4, 5), (5, 3), (3,))),
    "broadcasts": (broadcasts, ((4, 5), (5,), (4, 1))),
    "simplified": (simplified, ((4, 5),)),
    "integers": (integers, ((4, 5),)),
    "unrolled loop with gradients": (jg.grad(unrolled, argnums=(1, 2)), ((3, 2, 4), (4, 4), (4, 4))),
}


def compiled(case: Case) -> Any:
    function, shapes = case
    return jg.jit(function, check="off").lookup(*(jg.tensor(np.ones(s, np.float32)) for s in shapes))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that has met no structure yet: one met before may have its literals as parameters."""
    monkeypatch.setitem(TARGETS, "python", type(TARGETS["python"])())


@pytest.mark.parametrize("name", CASES)
def test_graph_after_each_pass(name: str, golden: Any) -> None:
    stages: list[tuple[str, str]] = []

    def watch(stage: str, graph: Graph) -> None:
        stages.append((stage, str(graph)))

    run_passes(compiled(CASES[name]).traced.graph, PASSES, watch)

    parts, before = [], ""
    for stage, text in stages:
        if text != before:  # passes with nothing to do are not listed
            parts.append(f"== {stage}\n{text}\n")
        before = text
    assert "\n".join(parts) == golden


@pytest.mark.parametrize("name", CASES)
def test_kernel_source(name: str, golden: Any) -> None:
    program = compiled(CASES[name]).program

    words = [getattr(s, "kernel", None) and s.kernel.name or s.op.name for s in program.steps]
    assert "\n".join([f"steps: {', '.join(words)}", "", *(k.source for k in program.kernels)]) == golden
