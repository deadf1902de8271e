"""Writes every turn of a loop out, for what runs no loops: devices, ejected modules, memory budgets, and judges."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.compiler.loops.loop_op import LOOP, LoopBody, has_loops
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import EXPAND_DIMS, SLICE, SQUEEZE


def unroll_loops(graph: Graph) -> Graph:
    """``graph`` with the nodes of every turn in place of loops."""
    while has_loops(graph):  # a turn may have loops of its own
        new = Rewriter(graph)
        for node in new.visit():
            if node.op is LOOP:
                _unroll(new, node)
            else:
                new.keep(node)
        graph = new.graph()
    return graph


def _unroll(new: Rewriter, node: TraceNode) -> None:
    body: LoopBody = node.attr("body")
    length, first = node.attr("length"), body.carries + body.slices
    carries: Sequence[Atom] = node.ins[: body.carries]
    parts: list[list[Atom]] = [[] for _ in body.graph.outputs[body.carries :]]
    for k in reversed(range(length)) if node.attr("reverse") else range(length):
        pairs = zip(node.ins[body.carries : first], body.graph.inputs[body.carries : first], strict=True)
        slices = [_slice(new, whole, k, value.aval) for whole, value in pairs]
        nodes, results = body.graph.copied((*carries, *slices, *node.ins[first:]))
        for each in nodes:
            new.keep(each)
        carries = results[: body.carries]
        for listed, part in zip(parts, results[body.carries :], strict=True):
            listed.append(part)
    for out, atom in zip(node.outs, carries, strict=False):
        new.replace(out, atom)
    for out, listed in zip(node.outs[body.carries :], parts, strict=True):
        ordered = reversed(listed) if node.attr("reverse") else listed
        new.define(out, CONCAT, *[new.emit(EXPAND_DIMS, part, axis=(0,)) for part in ordered], axis=0)


def _slice(new: Rewriter, whole: Atom, k: int, aval: Aval) -> Value:
    """Element ``k`` of ``whole``, with the ``aval`` that the turn expects: the number of a turn is weak as Python's are."""
    index = ((k, 1, 1), *[(0, 1, n) for n in whole.aval.shape[1:]])
    out = Value(aval)
    new.define(out, SQUEEZE, new.emit(SLICE, whole, index=index), axis=(0,))
    return out
