"""Reductions of a few long rows into one, element by element: nothing is gained by sharing rows among threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Attrs, Graph, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind, OpDef

# Each chunk of rows has a row of partial results, which costs as much as reading a row of the operand; with more rows, or
# shorter ones, that does not count.
MAX_ROWS = 16
MIN_COLUMNS = 4096

# The op on two operands that repeats to a reduction.
def unroll_reductions(graph: Graph) -> Graph:
    """``sum(x, axis=0)`` of a few long rows in memory becomes ``x[0] + x[1] + ...``, in eager's order.

    Only where ``x`` is not computed by a kernel: that one reduces what it computes while it has it.
    """
    made_by = {id(out): node for node in graph.nodes for out in node.outs}
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        short = node.op.kind is Kind.REDUCE and _is_short(node)
        if short and _in_memory(node.ins[0], made_by):
            nodes += _unrolled(node)
        else:
            nodes.append(node)
    return graph if len(nodes) == len(graph.nodes) else replace(graph, nodes=tuple(nodes))


def _is_short(node: TraceNode) -> bool:
    looks = node.ins[0].aval
    if node.op.monoid is None or node.attr("axis") != (0,) or node.out.aval.dtype.kind == "b":
        return False
    few = looks.ndim > 1 and 1 < looks.shape[0] <= MAX_ROWS
    return few and prod(looks.shape[1:]) >= MIN_COLUMNS and is_fusible(node)


def _in_memory(atom: Atom, made_by: dict[int, TraceNode]) -> bool:
    """Whether ``atom`` is no result of an op that kernels compute."""
    while isinstance(atom, Value) and (maker := made_by.get(id(atom))) is not None:
        if maker.op.kind is not Kind.MOVEMENT:
            return not is_fusible(maker)
        atom = maker.ins[0]
    return isinstance(atom, Value)


def _unrolled(node: TraceNode) -> list[TraceNode]:
    (x,), shape = node.ins, node.out.aval.shape
    nodes: list[TraceNode] = []
    rows: list[Atom] = []
    for k in range(x.aval.shape[0]):
        index = ((k, 1, 1), *((0, 1, n) for n in shape))
        part, row = (Value(Aval(own, x.aval.dtype)) for own in ((1, *shape), shape))
        nodes.append(TraceNode(REGISTRY["slice"], (x,), (part,), (("index", index),), node.origin))
        nodes.append(TraceNode(REGISTRY["squeeze"], (part,), (row,), (("axis", (0,)),), node.origin))
        rows.append(row)
    steps, _ = fold(node, rows)
    return [*nodes, *steps[:-1], replace(steps[-1], outs=node.outs)]


def fold(node: TraceNode, parts: Sequence[Atom]) -> tuple[list[TraceNode], Value]:
    """What combines ``parts``, of one shape, as the reduction ``node`` does, one after the other, in its result's dtype.

    At least one node; the last one makes the value that is returned.
    """
    assert node.op.monoid is not None
    step, dtype, nodes = REGISTRY[node.op.monoid.step], node.out.aval.dtype, list[TraceNode]()

    def emit(op: OpDef, ins: tuple[Atom, ...], attrs: Attrs = ()) -> Value:
        nodes.append(TraceNode(op, ins, (Value(Aval(parts[0].aval.shape, dtype)),), attrs, node.origin))
        return nodes[-1].out

    total: Atom | None = None
    for part in parts:
        if part.aval.dtype != dtype:
            part = emit(REGISTRY["astype"], (part,), (("dtype", dtype),))
        total = part if total is None else emit(step, (total, part))
    assert isinstance(total, Value)
    return nodes, total
