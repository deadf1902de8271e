"""Makes one loop of those that run the same turns, and drops what nothing reads of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jitgrad.compiler.loops.loop_op import LOOP, LoopBody, has_loops
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, TraceNode, Value


def merge_loops(graph: Graph) -> Graph:
    """Run a loop and those that extend it once, and compute in a turn only what something reads.

    The gradient of a loop asks for a longer turn than the results did: one that also keeps what the gradient reads.
    """
    if not has_loops(graph):
        return graph
    return _trimmed(eliminate_dead(_merged(graph)))


def _key(node: TraceNode) -> Any:
    return node.ins, node.attr("body").root, node.attr("length"), node.attr("reverse")


def _merged(graph: Graph) -> Graph:
    longest: dict[Any, TraceNode] = {}
    for node in graph.nodes:
        if node.op is LOOP:
            known = longest.setdefault(_key(node), node)
            if _extends(node, known):
                longest[_key(node)] = node
    new, placed = Rewriter(graph), set[TraceNode]()
    for old, node in zip(graph.nodes, new.visit(), strict=True):
        chosen = longest.get(_key(old)) if old.op is LOOP else None
        if chosen is None or not (chosen is old or _extends(chosen, old)):
            new.keep(node)
            continue
        if chosen not in placed:
            placed.add(chosen)
            new.keep(replace(chosen, ins=node.ins))
        if chosen is not old:
            for out, longer in zip(old.outs, chosen.outs, strict=False):
                new.replace(out, longer)
    return new.graph()


def _extends(node: TraceNode, other: TraceNode) -> bool:
    """Whether the turn of ``node`` computes the results of that of ``other``, and more."""
    body: LoopBody | None = node.attr("body").extends
    while body is not None:
        if body is other.attr("body"):
            return True
        body = body.extends
    return False


def _trimmed(graph: Graph) -> Graph:
    """``graph`` with loops that compute what it reads alone."""
    read: set[Atom] = set(graph.outputs)
    nodes = []
    for node in reversed(graph.nodes):
        if node.op is LOOP:
            node = _trim(node, [k for k, out in enumerate(node.outs) if out in read])
        nodes.append(node)
        read.update(node.ins)
    return replace(graph, nodes=tuple(reversed(nodes)))


def _trim(node: TraceNode, read: Sequence[int]) -> TraceNode:
    """``node`` without the carries that lead to no result in ``read``, and with those of the other results alone."""
    body: LoopBody = node.attr("body")
    graph, first = body.graph, body.carries + body.slices
    wanted = set(read)
    while True:
        kept = sorted(wanted)
        part = eliminate_dead(replace(graph, outputs=tuple([graph.outputs[k] for k in kept])))
        needed = {atom for n in part.nodes for atom in n.ins}.union(part.outputs)
        carried = {k for k in range(body.carries) if graph.inputs[k] in needed}
        if carried <= wanted:
            break
        wanted |= carried
    if len(kept) == len(graph.outputs) and needed.issuperset(graph.inputs[body.carries :]):
        return node
    inputs = [k for k, v in enumerate(graph.inputs) if (k in wanted if k < body.carries else v in needed)]
    carries, slices = len([k for k in kept if k < body.carries]), len([k for k in inputs if body.carries <= k < first])
    trimmed = LoopBody(replace(part, inputs=tuple([graph.inputs[k] for k in inputs])), carries, slices)
    attrs = tuple([(name, trimmed if name == "body" else value) for name, value in node.attrs])
    outs: tuple[Value, ...] = tuple([node.outs[k] for k in kept])
    return replace(node, ins=tuple([node.ins[k] for k in inputs]), outs=outs, attrs=attrs)
