"""Computes small reductions of small inputs early, so that no large kernel waits for them."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode
from jitgrad.core.op import Kind


def hoist_small_reductions(graph: Graph, tuning: Tuning) -> Graph:
    """Move small reductions that larger values wait for, with a copy of what leads to them, to the program's start.

    In ``cross_entropy`` the gradient of every logit is divided by the number of labels that count. That number comes
    from the labels alone; were it reduced in the kernel that reads the logits, it would be known only after that
    kernel, and the gradient would need a second pass over the logits.
    """
    if not any(node.op.kind is Kind.REDUCE for node in graph.nodes):
        return graph
    largest_after = _largest_loops_after(graph)
    cones = {
        node: cone
        for node in graph.nodes
        if node.op.kind is Kind.REDUCE
        and largest_after[node] > node.ins[0].aval.size
        and (cone := _cone(graph, node, tuning.max_hoisted_nodes))
    }
    if not cones:
        return graph
    position = {node: k for k, node in enumerate(graph.nodes)}
    new = Rewriter(graph)
    for reduction, cone in cones.items():
        copies: dict[Atom, Atom] = {}
        for node in sorted(cone, key=position.__getitem__):
            new.origin = node.origin
            copies[node.out] = new.emit(node.op, *[copies.get(a, a) for a in node.ins], **dict(node.attrs))
        new.replace(reduction.out, copies[reduction.out])
    for node in new.visit():
        if node.outs[0] == new.current(node.outs[0]):
            new.keep(node)
    return new.graph()


def _largest_loops_after(graph: Graph) -> dict[TraceNode, int]:
    """For every node: the number of elements of the largest loop that depends on it."""
    largest_after: dict[TraceNode, int] = {}
    for node in reversed(graph.nodes):
        largest = 0
        for out in node.outs:
            for user in graph.users(out):
                own = max((v.aval.size for v in user.outs), default=0) if user.op.kind in _LOOPS else 0
                largest = max(largest, own, largest_after[user])
        largest_after[node] = largest
    return largest_after


_LOOPS = (Kind.ELEMENTWISE, Kind.REDUCE)


def _cone(graph: Graph, node: TraceNode, max_nodes: int) -> Sequence[TraceNode]:
    """The cheap nodes that lead from inputs of the program to ``node``; none if other nodes take part."""
    size = node.ins[0].aval.size
    cone: dict[TraceNode, None] = {}
    work = [node]
    while work:
        n = work.pop()
        if n in cone:
            continue
        movement = n.op.kind in (Kind.MOVEMENT, Kind.INDEX)
        elementwise = n.op.kind is Kind.ELEMENTWISE and n.op.scalar is not None
        if n is not node and (not (movement or elementwise) or n.out.aval.size > size):
            return ()
        cone[n] = None
        if len(cone) > max_nodes:
            return ()
        work += [producer for atom in n.ins if (producer := graph.producer(atom)) is not None]
    return list(cone)
