"""Reads the parts of joined arrays where slices lie within one of them."""

from __future__ import annotations

from jitgrad.compiler.compiler_ops import Index
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import SLICE


def read_parts(graph: Graph) -> Graph:
    """``slice(concat(a, b))`` becomes ``slice(a)``, or ``a``, if it reads elements of ``a`` alone.

    What reads a coordinate of points that were stacked then needs no array of all coordinates, and joins the kernel that
    computes this one.
    """
    if not any(node.op is CONCAT for node in graph.nodes):
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        part = _part_read(new, node) if node.op is SLICE else None
        if part is None:
            new.keep(node)
        else:
            new.replace(node.out, part)
    return new.graph()


def _part_read(new: Rewriter, node: TraceNode) -> Atom | None:
    """What the slice ``node`` reads of one part of a joined array; None if it reads another array, or several parts."""
    joined = new.producer(node.ins[0])
    if joined is None or joined.op is not CONCAT:
        return None
    axis, index = joined.attr("axis"), node.attr("index")
    start, step, count = index[axis]
    first, last, offset = min(start, start + (count - 1) * step), max(start, start + (count - 1) * step), 0
    for part in joined.ins:
        length = part.aval.shape[axis]
        if count and offset <= first and last < offset + length:
            return _read(new, part, (*index[:axis], (start - offset, step, count), *index[axis + 1 :]), node)
        offset += length
    return None


def _read(new: Rewriter, part: Atom, index: Index, node: TraceNode) -> Atom | None:
    if not isinstance(part, Value) or (part.aval.dtype, part.aval.weak) != (node.out.aval.dtype, node.out.aval.weak):
        return None
    if index == tuple((0, 1, n) for n in part.aval.shape):
        return part
    return new.emit(SLICE, part, index=index)
