"""A sampled graph computes the wanted elements and little else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.ir import Graph
from jitgrad.core.long_sums import sequential_terms
from jitgrad.jit.disturbed_run import Disturbance, PartialDisturbance
from jitgrad.jit.graph_run import GraphRun
from jitgrad.jit.sampled_graph import sample
from jitgrad.testing import random_program


def traced(f: Callable[..., Any], *args: np.ndarray) -> Graph:
    return jg.jit(f, check="off", backend="python").lookup(*args).traced.graph


def wanted_of(results: list[np.ndarray], count: int) -> dict[int, np.ndarray]:
    random = np.random.default_rng(0)
    return {k: np.unique(random.integers(x.size, size=count)) for k, x in enumerate(results) if x.size}


def check(f: Callable[..., Any], *args: np.ndarray) -> None:
    graph = traced(f, *args)
    whole = GraphRun(graph, args)(None)
    wanted = wanted_of(whole, 20)
    made = sample(graph, wanted, estimate=False)
    assert made is not None and not made.estimated
    for (k, positions), found in zip(wanted.items(), GraphRun(made.graph, args)(None), strict=True):
        expected = whole[k].reshape(-1)[positions]
        np.testing.assert_allclose(np.broadcast_to(found.reshape(-1), expected.shape), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_have_the_same_elements(seed: int) -> None:
    program = random_program(seed, 14)

    check(program.function, *program.operands())


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x - x.mean(axis=0)) / x.std(axis=1, keepdims=True) + x.T[:, ::-1].T[::-1],
        lambda x: jg.concat([x, x[::2]]).max(axis=1) + jg.broadcast_to(jg.tensor(2.0), (90,)),
        lambda x: x.reshape(30, 2, 70).mT @ x[:2],
        lambda x: x[0] @ x.T + x @ x[1],
        lambda x: x[0] @ x[1],
        lambda x: (x.reshape(70, 60) @ x)[3:9, ::7] + x.sum() + jg.zeros((6, 10)),
        lambda x: jg.cumulative_sum(jg.sort(x, axis=1), axis=0) + jg.take(x, jg.arange(60), axis=0),
        lambda x: jg.topk(x, 3, axis=1),
        lambda x: jg.astype(x * 100.0, jg.int64).sum(axis=0),
    ],
)
def test_picked_elements_are_those_of_the_whole(f: Callable[..., Any]) -> None:
    check(f, np.random.default_rng(0).standard_normal((60, 70)).astype("f4"))


def test_rows_that_depend_on_columns_are_estimated_from_few_of_both() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = (x - x.mean(axis=1, keepdims=True)) * 1.1
            x = x - x.mean(axis=0) * 0.3
        return x

    x = np.random.default_rng(0).standard_normal((1000, 1000)).astype("f4")
    graph = traced(f, x)
    made = sample(graph, {0: np.array([5, 2000, 500_000])}, estimate=True)

    assert made is not None and made.estimated
    assert max(node.out.aval.size for node in made.graph.nodes) < 100_000
    (found,) = GraphRun(made.graph, [x])(None)
    np.testing.assert_allclose(found, GraphRun(graph, [x])(None)[0].reshape(-1)[[5, 2000, 500_000]], atol=0.3)
    assert sample(graph, {0: np.array([5])}, estimate=True, most=1000) is None


def test_a_disturbed_run_moves_what_is_rounded_by_a_few_roundings() -> None:
    x = np.linspace(0.7, 3.0, 1000, dtype=np.float32)
    graph = traced(lambda x: (x * 1.1, jg.floor(x) * 2.0, x > 1.0, jg.exp(x)), x)
    run = GraphRun(graph, [x])
    product, exact, decision, function = [a != b for a, b in zip(run(Disturbance(0)), run(None), strict=True)]

    assert product.mean() > 0.5 and function.mean() > 0.5
    assert not exact.any() and not decision.any()
    moved = np.abs(run(Disturbance(0))[0] / run(None)[0] - 1)
    assert 1e-7 < moved.max() < 1e-6


def test_a_partial_disturbance_reaches_small_results_and_the_elements_that_are_asked_for() -> None:
    x = np.random.default_rng(0).uniform(0.7, 3.0, (300, 100)).astype("f4")
    graph = traced(lambda x: (jg.exp(x), jg.exp(x[:9]), jg.exp(x).sum(axis=1)), x)
    run, positions = GraphRun(graph, [x]), np.array([0, 77, 29_999])
    seen = [a != b for a, b in zip(run(PartialDisturbance(0, 1e-9, {x.size: positions})), run(None), strict=True)]

    assert set(np.flatnonzero(seen[0])) <= set(positions.tolist()) and seen[0].any()
    assert seen[1].mean() > 0.5 and seen[2].mean() > 0.5


def test_a_partial_disturbance_moves_as_far_as_a_whole_one_on_average() -> None:
    x = np.random.default_rng(0).uniform(0.7, 3.0, 40_000).astype("f4")

    def f(x: Any) -> Any:
        for _ in range(200):
            x = x * 1.01 - x * 0.01
        return x

    run = GraphRun(traced(f, x), [x])
    base = run(None)[0]
    whole, part = [
        np.std((run(d)[0] - base) / base) for d in (Disturbance(0), PartialDisturbance(0, 0.125, {}))
    ]
    assert 0.5 < part / whole < 2.0


def test_systematic_disturbances_add_up_where_others_cancel() -> None:
    """As the errors of an iteration that has come to its limit."""
    x = np.random.default_rng(0).uniform(0.7, 3.0, 500)

    def f(x: Any) -> Any:
        for _ in range(400):
            x = x * 1.01
        return x

    run = GraphRun(traced(f, x), [x])
    base = run(None)[0]
    cancelling, adding_up = [np.std(run(Disturbance(3, systematic=s))[0] / base) for s in (False, True)]
    assert 10 < adding_up / cancelling < 40


def test_numpy_sums_in_pairs_along_the_last_axes_only() -> None:
    x = np.zeros((3, 5, 7))

    assert [sequential_terms(x.shape, axes) for axes in ((0, 1, 2), (2,), (1, 2), (1,), (0, 2), (0, 1))] == [1, 1, 1, 5, 3, 15]
