"""Graphs with loops: joined, trimmed, and with every turn written out."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad import lax
from jitgrad.compiler.loops.loop_op import LOOP, has_loops, nodes_of
from jitgrad.compiler.loops.merge_loops import merge_loops
from jitgrad.compiler.loops.unroll import unroll_loops
from jitgrad.core.ir import Graph, evaluate
from jitgrad.eager.run import run_on_arrays

XS = jg.tensor(np.random.default_rng(1).normal(size=(18, 3)))
H = jg.tensor([0.1, -0.2, 0.3], dtype="float64")


def turn(c: Any, x: Any) -> Any:
    c = (jg.sin(c[0]) * c[1], c[1] + x)
    return c, {"sum": c[1].sum(), "all": c[0] * x}


def gradient(h: Any, xs: Any) -> Any:
    def loss(h: Any) -> Any:
        last, parts = lax.scan(turn, (h, h), xs, reverse=True)
        return last[0].sum() + (parts["all"] ** 2).sum()

    return jg.value_and_grad(loss)(h)


def traced() -> Graph:
    graph: Graph = jg.jit(gradient).lookup(H, XS).traced.graph
    return graph


def results(graph: Graph) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in evaluate(graph, (H.numpy(), XS.numpy()), run_on_arrays)]


def test_merged_and_unrolled_graphs_compute_the_same_numbers() -> None:
    graph = traced()
    expected = results(graph)
    merged = merge_loops(graph)
    unrolled = unroll_loops(graph)
    assert sum(node.op is LOOP for node in graph.nodes) == 3
    assert sum(node.op is LOOP for node in merged.nodes) == 2
    assert not has_loops(unrolled) and has_loops(graph)
    for found in (results(merged), results(unrolled), results(unroll_loops(merged))):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_what_nothing_reads_of_a_turn_is_not_computed() -> None:
    whole = jg.jit(lambda h, xs: lax.scan(turn, (h, h), xs)[1]["sum"]).lookup(H, XS).traced.graph
    (loop,) = [node for node in merge_loops(whole).nodes if node.op is LOOP]
    body = loop.attr("body")
    assert (body.carries, body.slices, len(loop.outs)) == (1, 1, 2)
    assert {node.op.name for node in nodes_of(merge_loops(whole))} == {"add", "sum"}
