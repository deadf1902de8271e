"""Removes the nodes that carry a replaced gradient, once a graph will not be differentiated any more."""

from __future__ import annotations

from jitgrad.autograd.replaced_gradient import replaces_gradient
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Graph


def drop_gradient_rules(graph: Graph) -> Graph:
    """Read the results of forward functions themselves; their gradients are ordinary nodes by now."""
    if not any(replaces_gradient(node.op) for node in graph.nodes):
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        if replaces_gradient(node.op):
            for out, atom in zip(node.outs, node.ins, strict=False):
                new.replace(out, atom)
        else:
            new.keep(node)
    return new.graph()
