"""A backward graph for the case that some results of a function have no gradient."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, Literal, Value
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.movement import BROADCAST_TO


def depends_on(graph: Graph, seeds: Sequence[Value]) -> list[bool]:
    """For each output of ``graph``, whether it is computed from any of ``seeds``."""
    reached: set[Atom] = set(seeds)
    for node in graph.nodes:
        if not reached.isdisjoint(node.ins):
            reached.update(node.outs)
    return [a in reached for a in graph.outputs]


def without_seeds(graph: Graph, absent: Sequence[Value], present: Sequence[Value], left: Sequence[bool]) -> Graph:
    """``graph``, from seeds to gradients, without what comes from the seeds ``absent`` alone.

    Zeros in their place would be wrong: zero times an infinite derivative is NaN.

    The result has all its inputs, and the outputs that are ``left``. What comes to one of these was
    simplified away if it is 0.
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
        others = [a for a in node.ins if a not in gone]
        if gone and node.op is ADD and others[0].aval == node.out.aval:
            r.replace(node.out, others[0])
            reached.add(others[0])
        else:
            r.keep(replace(node, ins=tuple([_zeros(r, a, gone) for a in node.ins])) if gone else node)
    zeros = {a: _zeros(r, a, nothing) for a, is_left in zip(graph.outputs, left, strict=True) if is_left and a in nothing}
    rest = r.graph()
    given = zip(graph.outputs, rest.outputs, left, strict=True)
    return eliminate_dead(replace(rest, outputs=tuple(zeros.get(a, new) for a, new, is_left in given if is_left)))


def _zeros(r: Rewriter, atom: Atom, gone: Collection[Atom]) -> Atom:
    """``atom``, or zeros for a gradient that never arrives."""
    if atom not in gone:
        return atom
    return r.emit(BROADCAST_TO, Literal(0, atom.aval.dtype), shape=atom.aval.shape)
