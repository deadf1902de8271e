"""Makes one loop of those that run the same turns, and drops what nothing reads of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jitgrad.compiler.loops.loop_op import LOOP, LoopBody, has_loops
from jitgrad.compiler.passes.cleanup import eliminate_common, eliminate_dead
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
    groups: dict[Any, list[TraceNode]] = {}
    for node in graph.nodes:
        if node.op is LOOP:
            groups.setdefault(_key(node), []).append(node)
    new = Rewriter(graph)
    for old, node in zip(graph.nodes, new.visit(), strict=True):
        group = groups[_key(old)] if old.op is LOOP else [old]
        if len(group) == 1:
            new.keep(node)
        elif old is group[0]:
            whole = _joined(group, node)
            new.keep(whole)
            carries = len(whole.outs) - sum(len(n.outs) - n.attr("body").carries for n in group)
            parts = iter(whole.outs[carries:])
            for member in group:
                outs = [*whole.outs[:carries], *[next(parts) for _ in member.outs[carries:]]]
                for out, now in zip(member.outs, outs, strict=True):
                    new.replace(out, now)
    return new.graph()


def _joined(group: Sequence[TraceNode], first: TraceNode) -> TraceNode:
    """One loop with the parts of all of ``group``, which have equal carries; ``first`` is the first of them."""
    bodies: list[LoopBody] = [node.attr("body") for node in group]
    graph, carries = bodies[0].graph, bodies[0].carries
    nodes, outputs = list[TraceNode](), list[Atom]()
    outs = [Value(out.aval) for out in first.outs[:carries]]
    for node, body in zip(group, bodies, strict=True):
        copies, results = body.graph.copied(graph.inputs)
        nodes += copies
        outputs += results if body is bodies[0] else results[carries:]
        outs += [Value(out.aval) for out in node.outs[carries:]]
    whole = eliminate_common(replace(graph, nodes=tuple(nodes), outputs=tuple(outputs)))
    body = LoopBody(whole, carries, bodies[0].slices, extends=bodies[0].root)
    return replace(first, outs=tuple(outs), attrs=tuple([(k, body if k == "body" else v) for k, v in first.attrs]))


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
    root = body.root if len(inputs) == len(graph.inputs) else None  # with the same operands it may be joined with others
    trimmed = LoopBody(replace(part, inputs=tuple([graph.inputs[k] for k in inputs])), carries, slices, extends=root)
    attrs = tuple([(name, trimmed if name == "body" else value) for name, value in node.attrs])
    outs: tuple[Value, ...] = tuple([node.outs[k] for k in kept])
    return replace(node, ins=tuple([node.ins[k] for k in inputs]), outs=outs, attrs=attrs)
