"""Removes nodes that nothing uses, and nodes that compute what another one computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, TraceNode, exact


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes whose results are not used, but for checks."""
    live: set[Atom] = set(graph.outputs)
    used_nodes = []
    for node in reversed(graph.nodes):
        if node.op.checks or not live.isdisjoint(node.outs):
            used_nodes.append(node)
            live.update(node.ins)
    return graph if len(used_nodes) == len(graph.nodes) else replace(graph, nodes=tuple(reversed(used_nodes)))


def eliminate_common(graph: Graph) -> Graph:
    """Compute once what several nodes compute with the same op, operands and attributes."""
    new = Rewriter(graph)
    first_with: dict[Any, TraceNode] = {}
    for node in new.visit():
        key = (node.op, node.ins, exact(node.attrs) if node.attrs else ())
        try:
            first = first_with.setdefault(key, node)
        except TypeError:  # an attribute that cannot be hashed: the node is never merged
            first = node
        if first is node:
            new.keep(node)
        else:
            for duplicate, value in zip(node.outs, first.outs, strict=True):
                new.replace(duplicate, value)
    return new.graph()
