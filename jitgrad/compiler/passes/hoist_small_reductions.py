"""Compute early what a large kernel would have to wait for: small reductions over small inputs."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.core.ir import Atom, Graph, TraceNode, Value, users
from jitgrad.core.op import Kind

# A reduction is computed apart if at most this many cheap operations lead to it.
MAX_CONE = 12


def hoist_small_reductions(graph: Graph) -> Graph:
    """Give small reductions that larger values wait for a copy of what leads to them, early in the program.

    In ``cross_entropy`` the gradient of every logit is divided by the number of labels that count. That number comes
    from the labels alone; were it reduced in the kernel that reads the logits, it would be known only after that
    kernel, and the gradient would need a second pass over the logits.
    """
    if not any(node.op.kind is Kind.REDUCE for node in graph.nodes):
        return graph
    loops = _Loops(graph)
    defined_by = {id(v): n for n in graph.nodes for v in n.outs}
    position = {id(n): k for k, n in enumerate(graph.nodes)}
    early: list[TraceNode] = []
    new: dict[int, Value] = {}
    for node in graph.nodes:
        if node.op.kind is not Kind.REDUCE or loops.after[id(node)] <= node.ins[0].aval.size:
            continue
        cone = _cone(node, defined_by)
        if cone is None:
            continue
        cone.sort(key=lambda n: position[id(n)])
        copies: dict[int, Value] = {}
        for old in cone:
            out = Value(old.out.aval)
            ins = tuple(copies.get(id(a), a) for a in old.ins)
            early.append(replace(old, ins=ins, outs=(out,)))
            copies[id(old.out)] = out
        new[id(node.out)] = copies[id(node.out)]

    if not new:
        return graph

    def current(atom: Atom) -> Atom:
        return new.get(id(atom), atom)

    rest = tuple(replace(n, ins=tuple(map(current, n.ins))) for n in graph.nodes if id(n.outs[0]) not in new)
    return replace(graph, nodes=(*early, *rest), outputs=tuple(map(current, graph.outputs)))


class _Loops:
    """For every node: the number of elements of the largest loop that runs after it because of it."""

    def __init__(self, graph: Graph) -> None:
        reading = users(graph)
        self.after: dict[int, int] = {}
        for node in reversed(graph.nodes):
            largest = 0
            for out in node.outs:
                for user in reading.get(id(out), ()):
                    own = max((v.aval.size for v in user.outs), default=0) if user.op.kind in _LOOPS else 0
                    largest = max(largest, own, self.after[id(user)])
            self.after[id(node)] = largest


_LOOPS = (Kind.ELEMENTWISE, Kind.REDUCE)


def _cone(node: TraceNode, defined_by: dict[int, TraceNode]) -> list[TraceNode] | None:
    """The cheap nodes that lead from inputs of the program to ``node``; None if others take part."""
    size = node.ins[0].aval.size
    found: dict[int, TraceNode] = {}
    work = [node]
    while work:
        n = work.pop()
        if id(n) in found:
            continue
        movement = n.op.kind in (Kind.MOVEMENT, Kind.INDEX)
        elementwise = n.op.kind is Kind.ELEMENTWISE and n.op.scalar is not None
        if n is not node and (not (movement or elementwise) or n.out.aval.size > size):
            return None
        found[id(n)] = n
        if len(found) > MAX_CONE:
            return None
        work += [defined_by[id(a)] for a in n.ins if id(a) in defined_by]
    return list(found.values())
