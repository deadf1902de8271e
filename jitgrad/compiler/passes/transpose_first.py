"""Transposes before cheap ops where the array itself is read too, so that no multiple of it is written beside it."""

from __future__ import annotations

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.movement import PERMUTE_DIMS


def transpose_first(graph: Graph) -> Graph:
    """``x - (0.5 * x).T`` becomes ``x - 0.5 * x.T``, which reads ``x`` twice and writes nothing for it.

    The op is cheap, its other operands are numbers, and something else reads ``x``. What reads the transpose reads other
    large arrays in their order: if all were transposed, `sink_transposes` would have moved the transposition further.
    """
    if not any(node.op is PERMUTE_DIMS for node in graph.nodes):
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        chain = _chain(graph, node) if node.op is PERMUTE_DIMS else []
        if not chain:
            new.keep(node)
            continue
        source = large_operand(chain[-1])
        assert source is not None
        moved: Value = new.emit(PERMUTE_DIMS, new.current(source), **dict(node.attrs))
        for op in reversed(chain):
            large = large_operand(op)
            ins = [moved if atom is large else new.current(atom) for atom in op.ins]
            if op is chain[0]:
                new.define(node.out, op.op, *ins, **dict(op.attrs))
            else:
                moved = new.emit(op.op, *ins, **dict(op.attrs))
    return new.graph()


def _chain(graph: Graph, node: TraceNode) -> list[TraceNode]:
    """The cheap ops before the transposition ``node`` that can follow it, last one first; none without a gain."""
    original = graph.producer(node.out)
    if original is None or not _is_read_among_others(graph, original):
        return []
    found: list[TraceNode] = []
    atom = original.ins[0]
    while isinstance(atom, Value) and len(graph.users(atom)) == 1 and atom not in graph.outputs:
        producer = graph.producer(atom)
        if producer is None or not is_multiple(producer):
            break
        found.append(producer)
        large = large_operand(producer)
        assert large is not None
        atom = large
    is_read = isinstance(atom, Value) and (len(graph.users(atom)) > 1 or atom in graph.outputs)
    return found if is_read else []


def is_multiple(node: TraceNode) -> bool:
    """Whether ``node`` is a cheap op of one array and of numbers."""
    if node.op.kind is not Kind.ELEMENTWISE or node.op.scalar is None or expensive(node.op):
        return False
    large = large_operand(node)
    return large is not None and large.aval.dtype == node.out.aval.dtype and sum(a is large for a in node.ins) == 1


def large_operand(node: TraceNode) -> Value | None:
    """The one operand with the shape of the result, if all others are numbers."""
    large = [a for a in node.ins if a.aval.shape == node.out.aval.shape]
    numbers = all(a.aval.size == 1 and not a.aval.shape for a in node.ins if a not in large)
    return large[0] if len(large) == 1 and numbers and isinstance(large[0], Value) else None


def _is_read_among_others(graph: Graph, node: TraceNode) -> bool:
    """Whether elementwise ops read the transpose ``node`` together with arrays that are not transposed."""
    users = graph.users(node.out)
    return bool(users) and node.out not in graph.outputs and all(_mixes(graph, user, node.out) for user in users)


def _mixes(graph: Graph, user: TraceNode, value: Value) -> bool:
    if user.op.kind is not Kind.ELEMENTWISE or user.op.scalar is None:
        return False
    others: list[Atom] = [a for a in user.ins if a is not value and a.aval.shape == value.aval.shape]
    return any((producer := graph.producer(a)) is None or producer.op is not PERMUTE_DIMS for a in others)
