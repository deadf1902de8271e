"""Computes reductions and matrix products of float16 in float32, the dtype of kernels' accumulators and of BLAS."""

from __future__ import annotations

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Graph, TraceNode
from jitgrad.core.op import Kind
from jitgrad.eager.float16 import HALF, SINGLE, in_kernels
from jitgrad.ops.arithmetic import ASTYPE


def upcast_fp16_reductions(graph: Graph) -> Graph:
    """``sum(x)`` of float16 becomes ``astype(sum(astype(x, f32)), f16)``: what eager computes, rounded once.

    Eager accumulates products of numbers and of matrices likewise. Extrema are exact in both dtypes.
    """
    if not in_kernels() or not any(map(_accumulates, graph.nodes)):
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        if _accumulates(node):
            upcast = {x: new.emit(ASTYPE, x, dtype=SINGLE) for x in dict.fromkeys(node.ins)}
            total = new.emit(node.op, *[upcast[x] for x in node.ins], **dict(node.attrs))
            new.replace(node.out, new.emit(ASTYPE, total, dtype=HALF))
        else:
            new.keep(node)
    return new.graph()


def _accumulates(node: TraceNode) -> bool:
    if node.op.kind is Kind.REDUCE:
        return node.out.aval.dtype == HALF == node.ins[0].aval.dtype
    return node.op.contraction and node.out.aval.dtype == HALF
