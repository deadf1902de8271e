"""Moves out of a loop what every turn computes alike (A. V. Aho and others, "Compilers", 2006, section 9.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.core.dispatch import apply_op
from jitgrad.core.ir import Atom, Graph, TraceNode, Value, evaluate
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin, at_origin


def hoisted(graph: Graph, first: int, constants: Sequence[Any]) -> tuple[Graph, tuple[Any, ...]]:
    """``graph`` without the nodes that depend on its inputs from number ``first`` on alone, and its new constants.

    The nodes run where this is called. Those that only repeat elements stay, since kernels do that for nothing.
    """
    found = _invariant(graph, set(graph.inputs[first:]))
    moved = _moved(graph, found)
    if not moved:
        return graph, tuple(constants)
    kept = [node for node in graph.nodes if node not in moved]
    read = {atom for node in kept for atom in node.ins}.union(graph.outputs)
    made = [out for node in found if node in moved for out in node.outs if out in read]
    before = eliminate_dead(Graph(graph.name, graph.inputs[first:], tuple(found), tuple(made)))
    values = replayed(before, tuple(constants))
    still = [(v, x) for v, x in zip(graph.inputs[first:], constants, strict=True) if v in read]
    inputs = (*graph.inputs[:first], *[v for v, _ in still], *made)
    return Graph(graph.name, inputs, tuple(kept), graph.outputs), (*[x for _, x in still], *values)


def _invariant(graph: Graph, known: set[Value]) -> list[TraceNode]:
    """The nodes that depend on ``known`` inputs alone."""
    values: set[Atom] = set(known)
    found: list[TraceNode] = []
    for node in graph.nodes:
        operands = [atom for atom in node.ins if isinstance(atom, Value)]
        if operands and values.issuperset(operands) and not node.op.checks:
            found.append(node)
            values.update(node.outs)
    return found


def _moved(graph: Graph, found: Sequence[TraceNode]) -> set[TraceNode]:
    """Those of ``found`` that turns need not compute: all but repetitions that other nodes read."""
    moved = set(found)
    outputs = set(graph.outputs)
    for node in reversed(found):
        readers = [user for out in node.outs for user in graph.users(out)]
        if node.op.renames and (not moved.issuperset(readers) or not outputs.isdisjoint(node.outs)):
            moved.discard(node)
    return moved


def replayed(graph: Graph, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of ``graph``, every op with the line it had."""
    origins = iter([node.origin for node in graph.nodes])

    def apply(op: OpDef, given: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        origin: Origin = next(origins)
        with at_origin(origin):
            return apply_op(op, *given, **attrs)

    return evaluate(graph, operands, apply)
