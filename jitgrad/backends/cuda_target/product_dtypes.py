"""Gives the operands of matrix products one dtype, which cuBLAS needs: NumPy converts them itself."""

from __future__ import annotations

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, TraceNode
from jitgrad.ops.arithmetic import ASTYPE


def convert_factors(graph: Graph) -> Graph:
    """``matmul(x, y)`` of float32 and float64 becomes ``matmul(astype(x, f64), y)``; so do all with a result of floats."""
    if not any(map(_is_mixed, graph.nodes)):
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        if not _is_mixed(node):
            new.keep(node)
            continue
        dtype = node.out.aval.dtype
        factors: list[Atom] = [x if x.aval.dtype == dtype else new.emit(ASTYPE, x, dtype=dtype) for x in node.ins]
        new.replace(node.out, new.emit(node.op, *factors, **dict(node.attrs)))
    return new.graph()


def _is_mixed(node: TraceNode) -> bool:
    if not node.op.contraction:
        return False
    dtype = node.out.aval.dtype
    return dtype.kind in "fc" and any(x.aval.dtype != dtype for x in node.ins)
