"""The first-call check finds mistakes of passes: each is put into one node of a program, and none may stay unseen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.core.errors import MismatchWarning
from jitgrad.core.ir import Graph, Literal, TraceNode
from jitgrad.core.op import REGISTRY
from jitgrad.runtime import program_op

Mutant = tuple[str, int, TraceNode]  # what is wrong, the position of the node, the wrong node


def swapped(graph: Graph) -> Iterator[Mutant]:
    for k, node in enumerate(graph.nodes):
        if node.op.name in ("subtract", "divide", "where", "less") and node.ins[-1].aval == node.ins[-2].aval:
            yield "swapped operands", k, replace(node, ins=(*node.ins[:-2], node.ins[-1], node.ins[-2]))


def without_a_term(graph: Graph) -> Iterator[Mutant]:
    for k, node in enumerate(graph.nodes):
        kept = node.ins[0].aval if node.ins else None
        if node.op.name in ("add", "subtract", "multiply", "divide", "maximum") and kept == node.out.aval:
            rest = 0.0 if node.op.name in ("add", "subtract") else 1.0
            yield "a term is missing", k, replace(node, ins=(node.ins[0], Literal(rest, node.out.aval.dtype)))


def with_a_wrong_constant(graph: Graph) -> Iterator[Mutant]:
    for k, node in enumerate(graph.nodes):
        for j, atom in enumerate(node.ins):
            if isinstance(atom, Literal) and isinstance(atom.value, float) and atom.value:
                other = Literal(atom.value * (1 + 2e-5), atom.dtype)
                yield "a constant is wrong by 2e-5", k, replace(node, ins=(*node.ins[:j], other, *node.ins[j + 1 :]))


def with_another_op(graph: Graph) -> Iterator[Mutant]:
    others = {"tanh": "sin", "exp": "exp2", "sin": "tan", "sqrt": "square", "sum": "max", "floor": "trunc", "add": "subtract"}
    for k, node in enumerate(graph.nodes):
        if node.op.name in others:
            yield f"{others[node.op.name]} for {node.op.name}", k, replace(node, op=REGISTRY[others[node.op.name]])


def activations(x: Any, y: Any) -> Any:
    return jg.tanh(x * 0.7 + y) * jg.exp(-x * x * 0.5) / (1.5 + y)


def normalised(x: Any, y: Any) -> Any:
    h = x.reshape(50, 40)
    d = h - h.mean(axis=1, keepdims=True) * 0.9
    return d / jg.sqrt((d * d).mean(axis=1, keepdims=True) + 0.3) * 1.25


def gradients(x: Any, y: Any) -> Any:
    return jg.grad(lambda w: (jg.sin(w * y) * 0.3 + w * w / y).sum())(x)


def choices(x: Any, y: Any) -> Any:
    return jg.where(x < y, jg.sqrt(y) * 2.5, jg.maximum(x, y * 1.25) - y * 0.5)


def integers(x: Any, y: Any) -> Any:
    return jg.floor(x * 100.5 + y).astype(jg.int32)


PROGRAMS = (activations, normalised, gradients, choices, integers)
MISTAKES = (swapped, without_a_term, with_a_wrong_constant, with_another_op)


def operands() -> tuple[jg.Tensor, jg.Tensor]:
    random = np.random.default_rng(0)
    return jg.tensor(random.standard_normal(2000).astype("f4")), jg.tensor(random.uniform(0.5, 2.0, 2000).astype("f4"))


@pytest.mark.parametrize("mistakes", MISTAKES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_every_mistake_is_found(
    f: Callable[..., Any], mistakes: Callable[[Graph], Iterator[Mutant]], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))
    right = program_op.run_passes
    before = jg.jit(f).lookup(*operands()).traced.graph
    used = set(eliminate_dead(before).nodes)
    missed = []
    for what, position, node in mistakes(before):
        if before.nodes[position] not in used:
            continue

        def wrong(graph: Graph, *rest: Any, at: int = position, node: TraceNode = node) -> Graph:
            ours = graph.nodes[at]
            places = dict(zip(before.nodes[at].ins, ours.ins, strict=True))
            ins = tuple([places.get(atom, atom) for atom in node.ins])
            nodes = [*graph.nodes]
            nodes[at] = replace(ours, op=node.op, ins=ins)
            return right(replace(graph, nodes=tuple(nodes)), *rest)

        monkeypatch.setattr(program_op, "run_passes", wrong)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            jg.jit(f)(*operands())
        if not any(w.category is MismatchWarning for w in caught):
            missed.append(f"{what}: {before.nodes[position].op} at {position}")
    assert not missed


def test_an_error_in_one_block_of_a_large_result_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Half of the value of small elements beside a huge one, at the end of a block."""
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))
    x = np.full(300_000, 1e-3, np.float32)
    x[0] = 1e6
    right = program_op.Program.run

    def run(self: Any, inputs: Any, *rest: Any) -> Any:
        (out,) = right(self, inputs, *rest)
        out[65_535] *= 1.5
        return [out]

    monkeypatch.setattr(program_op.Program, "run", run)
    with pytest.warns(MismatchWarning, match=r"result 0 at \[65535\]"):
        jg.jit(lambda x: jg.sin(x) * 2.0 + x)(x)
