"""Reductions around a kept axis as two: over the end of a row, then over the rows."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.aval import Aval
from jitgrad.ir import Graph, TraceNode, Value
from jitgrad.op import Kind


def split_reductions(graph: Graph) -> Graph:
    """Rewrite every reduction over leading and trailing axes that keeps axes between them.

    The ``sum(x, axis=(0, 2, 3))`` of a batch norm becomes ``sum(sum(x, axis=(2, 3)), axis=0)``. No loop has rows and
    columns for the one; the first of the two is a reduction of rows, which fuses with what makes ``x``, and the second
    reads one number of each row.
    """
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        nodes += _split(node)
    return replace(graph, nodes=tuple(nodes))


def _split(node: TraceNode) -> tuple[TraceNode, ...]:
    if node.op.kind is not Kind.REDUCE or node.op.monoid is None or not node.ins[0].aval.size:
        return (node,)
    shape, attrs = node.ins[0].aval.shape, dict(node.attrs)
    trailing = _trailing(shape, frozenset(attrs["axis"]))
    leading = tuple(k for k in attrs["axis"] if k not in trailing)
    if not trailing or not leading:
        return (node,)
    first = node.op.abstract([node.ins[0].aval], {**attrs, "axis": trailing})
    assert isinstance(first, Aval)
    second = node.op.abstract([first], {**attrs, "axis": leading})
    if second != node.out.aval:
        return (node,)
    rows = Value(first)
    ends, starts = (tuple(sorted({**attrs, "axis": axes}.items())) for axes in (trailing, leading))
    return (replace(node, outs=(rows,), attrs=ends), replace(node, ins=(rows,), attrs=starts))


def _trailing(shape: tuple[int, ...], axes: frozenset[int]) -> tuple[int, ...]:
    """The axes of ``axes`` behind the last kept one, if some lie before it, too; else none. Axes of length 1 lie anywhere."""
    real = [k for k, n in enumerate(shape) if n != 1]
    kept = [k for k in real if k not in axes]
    if not kept or not any(k in axes and k < kept[0] for k in real):
        return ()
    return tuple(sorted(k for k in axes if k > kept[-1] and shape[k] != 1))
