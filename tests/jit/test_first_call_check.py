"""The first-call check: rounding passes, even in elements that are rounding noise; a wrong element does not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit import first_call_check
from jitgrad.jit.decorator import jit
from jitgrad.jit.executable import Executable


def test_elements_that_are_rounding_alone_are_known():
    """The sign of a cancellation, as the first step of Adam takes it."""
    x = np.linspace(0.5, 4.0, 64, dtype=np.float32)
    y = np.where(x > 2, x - 1, x)

    graph = jit(lambda x, y: (x - y) / (jg.abs(x - y) + 1e-17), check="off").lookup(x, y).traced.graph
    exact = first_call_check.in_float64(graph, [x, y])
    moves = first_call_check.sensitivity(graph, [x, y], exact)[0]

    assert np.max(moves[x < 2]) > 0.5
    assert np.max(moves[x > 2]) < 1e-6


def test_a_wrong_element_is_found_beside_one_that_is_rounding():
    exact = np.array([1.0, 0.0])
    moves = np.array([0.0, 1.0])
    eager = np.array([1.0, 0.5], np.float32) * np.float32(1 + 1e-6)

    right = np.array([1.0, -1.0], np.float32)
    wrong = np.array([9.5, 0.5], np.float32)
    assert first_call_check.judge("result", right, np.array([1.0, 1e-6], np.float32), exact) is not None
    assert first_call_check.judge("result", right, np.array([1.0, 1e-6], np.float32), exact, moves) is None
    assert first_call_check.judge("result", wrong, eager, exact, moves) is not None


def float64_runs(monkeypatch: pytest.MonkeyPatch) -> list[jg.ir.Graph]:
    """The graphs that are run in float64 from now on."""
    graphs = []
    run = first_call_check.in_float64

    def counted(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return run(graph, inputs)

    monkeypatch.setattr(first_call_check, "in_float64", counted)
    return graphs


def test_results_close_to_eager_need_no_float64_run(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = float64_runs(monkeypatch)
    x = np.linspace(-3.0, 3.0, 100_000, dtype=np.float32)

    jit(lambda x: (jg.gelu(x), jg.softmax(x)))(x)

    assert graphs == []


def test_only_what_is_not_close_to_eager_is_run_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = float64_runs(monkeypatch)
    x = np.linspace(0.5, 4.0, 4096, dtype=np.float32)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit(lambda x: (jg.exp(x), jg.sum(jg.tanh(x) - jg.tanh(x).mean())))(x)

    assert [len(graph.outputs) for graph in graphs] == [1]
    assert "exp" not in str(graphs[0])


@pytest.mark.parametrize(
    ("ours", "eager", "close"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 2.0 + 1e-5], True),
        ([1.0, 2.0], [1.0, 2.001], False),
        ([np.nan, 2.0], [np.nan, 2.0], True),
        ([np.nan, 2.0], [1.0, 2.0], False),
        ([1.0, 2.0], [np.nan, 2.0], False),
        ([np.inf, 2.0], [np.inf, 2.0 + 1e-5], True),
        ([np.inf, 2.0], [np.inf, 3.0], False),
        ([np.inf, 2.0], [-np.inf, 2.0], False),
        ([np.inf, 2.0], [3e38, 2.0], False),
        ([1e-30, 0.0], [2e-30, 0.0], False),
        ([], [], True),
    ],
)
def test_closeness_is_measured_by_the_largest_element(ours: list[float], eager: list[float], close: bool) -> None:
    assert first_call_check.agrees_closely(np.array(ours, np.float32), np.array(eager, np.float32)) is close


def test_closeness_sees_every_element_of_a_large_result() -> None:
    eager = np.ones((3, 50_000), np.float32)
    for place in (0, 49_999, 99_999, 149_999):
        ours = eager.copy()
        ours.flat[place] = 1.01
        assert not first_call_check.agrees_closely(ours, eager)
        ours.flat[place] = np.nan
        assert not first_call_check.agrees_closely(ours, eager)


def test_the_program_runs_on_state_from_before_the_eager_run() -> None:
    """Only what the function changes is copied; an input that it only reads is not."""
    w = jg.tensor(np.arange(4.0)).requires_grad_()
    x = jg.tensor(np.ones(4))

    def step(x: jg.Tensor) -> None:
        (w * x).sum().backward()
        with jg.no_grad():
            w.sub_(w.grad)

    run = jit(step)
    call = run._signature.take((x,), {})
    compiled = run.executable_for(call)
    kept = compiled.operands_before(call.leaves)
    live = compiled.operands(call.leaves)

    assert {id(source.key) for source in compiled.traced.sources} >= {id(w)}
    for source, copy, now in zip(compiled.traced.sources, kept, live, strict=True):
        assert np.shares_memory(copy.detach().numpy(), now.detach().numpy()) == (source.key is not w)


@pytest.mark.parametrize("changes_state", [False, True])
def test_kernels_compile_while_eager_runs_unless_state_is_at_stake(
    monkeypatch: pytest.MonkeyPatch, changes_state: bool
) -> None:
    """A program that fails must fail before the eager run has changed anything."""
    order: list[str] = []
    run = Executable.outputs
    monkeypatch.setattr(Executable, "outputs", lambda *given: order.append("program") or run(*given))
    state = jg.tensor(np.zeros(3))

    def f(x: jg.Tensor) -> jg.Tensor:
        if changes_state:
            state.add_(x)
        return x * 2.0

    compiled, x = jit(f, check="always"), jg.tensor(np.ones(3))
    compiled.lookup(x)
    compiled.eager = lambda x: order.append("function") or f(x)
    compiled(x)

    assert order == (["program", "function"] if changes_state else ["function", "program"])
