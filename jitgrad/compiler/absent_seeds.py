"""A backward graph for the case that some results of a function have no gradient."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, Literal, Value
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.movement import BROADCAST_TO


def without_seeds(graph: Graph, absent: Sequence[Value], present: Sequence[Value]) -> tuple[Graph, tuple[bool, ...]]:
    """``graph``, from seeds to gradients, without what comes from the seeds ``absent`` alone.

    Zeros in their place would be wrong: zero times an infinite derivative is NaN.

    Returns:
        The graph, with all its inputs and the outputs that are left, and for each output whether
        it is left. The others have no gradient.
    """
    reached: set[Atom] = set(present)
    nothing: set[Atom] = set(absent)
    r = Rewriter(graph)
    for node in r.visit():
        gone = nothing.intersection(node.ins)
        if gone and reached.isdisjoint(node.ins):
            nothing.update(node.outs)
            continue
        if gone or not reached.isdisjoint(node.ins):
            reached.update(node.outs)
        left = [a for a in node.ins if a not in gone]
        if gone and node.op is ADD and left[0].aval == node.out.aval:
            r.replace(node.out, left[0])
            reached.add(left[0])
        else:
            r.keep(replace(node, ins=tuple([_zeros(r, a, gone) for a in node.ins])) if gone else node)
    left_over = tuple(a not in nothing for a in graph.outputs)
    rest = r.graph()
    outputs = tuple(a for a, is_left in zip(rest.outputs, left_over, strict=True) if is_left)
    return eliminate_dead(replace(rest, outputs=outputs)), left_over


def _zeros(r: Rewriter, atom: Atom, gone: Collection[Atom]) -> Atom:
    """``atom``, or zeros for a gradient that never arrives."""
    if atom not in gone:
        return atom
    return r.emit(BROADCAST_TO, Literal(0, atom.aval.dtype), shape=atom.aval.shape)
