"""A graph cut down to some rows of every array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.ir import Graph
from jitgrad.jit.axis_classes import AxisClasses
from jitgrad.jit.graph_run import GraphRun
from jitgrad.jit.thin_graph import SUM_OF_PART, thinned

ROWS, COLUMNS = 4000, 12
PLACES = jg.tensor(np.random.default_rng(0).integers(0, ROWS, ROWS))
X = np.broadcast_to(np.linspace(0.5, 1.5, COLUMNS), (ROWS, COLUMNS)).copy()  # all rows are alike


def traced(f: Callable[..., Any], *args: Any) -> Graph:
    graph = jg.jit(f, check="off", backend="python").graph(*args, stage="trace")
    assert isinstance(graph, Graph)
    return graph


def inputs_of(graph: Graph, x: Any) -> list[Any]:
    return [x if value.aval.shape == x.shape else PLACES.numpy() for value in graph.inputs]


def added(x: Any) -> Any:
    y = x * 1.0
    y[1:] += x[:-1] * 0.5
    y[::3, 2] = x[::3, 0] - 1.0
    return jg.sin(y) * jg.sin(y)


# what each gives in a row does not depend on which rows the others are, or not by much
OF_ROWS: list[tuple[Callable[..., Any], float]] = [
    (lambda x: jg.sin(x) * x.mean(axis=1, keepdims=True) + jg.softmax(x), 0.0),
    (lambda x: x - x.mean(axis=0) + x.max(axis=0, keepdims=True) * x.std(correction=0), 1e-12),
    (lambda x: jg.take(jg.exp(x), PLACES, axis=0) * 0.5 + jg.roll(x, 3, axis=0), 0.0),
    (lambda x: x[PLACES] + jg.flip(x, axis=0) - x[::2][jg.arange(ROWS) // 2], 0.0),
    (lambda x: jg.concat([x[7:] * 2.0, x[:7] * 2.0]) + jg.zeros_like(x), 0.0),
    (lambda x: jg.gather(x, 0, jg.broadcast_to(PLACES[:, None], x.shape)) + x.reshape(ROWS, 3, 4).reshape(x.shape), 0.0),
    (lambda x: (x.T @ x)[:, 0] * x * 1e-3 + (x @ x.T @ x) * 1e-3, 1e-12),
    (lambda x: x.reshape(ROWS // 2, 2, COLUMNS).sum(axis=1).repeat(2, axis=0), 0.0),
    (lambda x: jg.permute_dims(jg.stack([x, x * 2.0], axis=1), (1, 0, 2)).sum(axis=0), 0.0),
    (lambda x: jg.cumulative_sum(x, axis=1) + jg.pad(x[2:-2], ((2, 2), (0, 0)))[5] * x, 0.0),
    (lambda x: jg.cumulative_sum(x, axis=0)[ROWS // 2 :].sum(axis=0) + x, 0.2),
]


@pytest.mark.parametrize(("f", "tolerance"), OF_ROWS)
def test_rows_that_stand_for_others_that_are_alike_give_the_same(f: Callable[..., Any], tolerance: float) -> None:
    graph = traced(f, X)
    wanted = {0: np.array([5, ROWS * COLUMNS // 2 + 3, ROWS * COLUMNS - 1])}
    made = thinned(graph, wanted)
    assert made is not None

    whole, inputs = GraphRun(graph, inputs_of(graph, X))(None)[0].reshape(-1), inputs_of(graph, X)
    positions = np.concatenate([wanted[0], made.beside[0]])
    (found,) = GraphRun(made.graph, inputs)(None)

    np.testing.assert_allclose(found, whole[positions], rtol=max(tolerance, 1e-14))
    computed, everything = (sum(out.aval.size for node in g.nodes for out in node.outs) for g in (made.graph, graph))
    assert computed < 0.6 * everything


def test_wanted_rows_are_the_rows_themselves() -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS))
    graph = traced(lambda x: jg.softmax(jg.sin(x)) + x.mean(axis=0) * 0.0, x)
    wanted = {0: np.arange(7 * COLUMNS, 9 * COLUMNS)}
    made = thinned(graph, wanted)
    assert made is not None

    found = GraphRun(made.graph, [x])(None)[0][: 2 * COLUMNS]
    np.testing.assert_allclose(found, GraphRun(graph, [x])(None)[0].reshape(-1)[wanted[0]], rtol=1e-14)


def test_square_arrays_keep_whole_rows() -> None:
    """Rows and columns are told apart, unless the program adds an array to its transpose."""
    x = np.zeros((600, 600))
    apart, together = (AxisClasses(traced(f, x)) for f in (lambda x: x * x.sum(axis=1, keepdims=True), lambda x: x + x.T))

    (kept,) = apart.kept_positions({}, all_axes=False).values()
    assert kept.size < 100
    assert len(set(apart.of(apart.graph.inputs[0]))) == 2 and len(set(together.of(together.graph.inputs[0]))) == 1


def test_sums_of_fewer_terms_err_like_sums_of_all() -> None:
    graph = traced(lambda x: x - x.sum(axis=0), X)
    made = thinned(graph, {0: np.array([0])})
    assert made is not None
    (node,) = [node for node in made.graph.nodes if node.op is SUM_OF_PART]

    assert node.attr("shape") == (ROWS, COLUMNS)
    assert node.attr("scale") * node.ins[0].aval.shape[0] == pytest.approx(ROWS)


NEEDS_ALL = [lambda x: jg.sort(x, axis=0), lambda x: x * jg.argmax(x, axis=0), lambda x: jg.prod(x, axis=0) + x]


@pytest.mark.parametrize("f", NEEDS_ALL)
def test_some_ops_need_everything(f: Callable[..., Any]) -> None:
    assert thinned(traced(f, X), {0: np.array([0])}) is None
