"""Reductions and matrix products of float16 in float32, where kernels have accumulators and BLAS has products."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind
from jitgrad.eager.float16 import HALF, SINGLE, in_kernels


def upcast_fp16_reductions(graph: Graph) -> Graph:
    """``sum(x)`` of float16 becomes ``astype(sum(astype(x, f32)), f16)``: what eager computes, rounded once.

    Products, which eager accumulates likewise, and extrema, which are exact in both, go the same way, and so do those of
    matrices.
    """
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        nodes += _widened(node) if _accumulates(node) and in_kernels() else (node,)
    return graph if len(nodes) == len(graph.nodes) else replace(graph, nodes=tuple(nodes))


def _accumulates(node: TraceNode) -> bool:
    if node.op.kind is Kind.REDUCE:
        return node.out.aval.dtype == HALF == node.ins[0].aval.dtype
    return node.op.name == "matmul" and node.out.aval.dtype == HALF


def _widened(node: TraceNode) -> tuple[TraceNode, ...]:
    out, origin, cast = node.out, node.origin, REGISTRY["astype"]
    wide: dict[int, Value] = {}
    casts: list[TraceNode] = []
    for x in node.ins:
        if id(x) not in wide:
            wide[id(x)] = Value(Aval(x.aval.shape, SINGLE))
            casts.append(TraceNode(cast, (x,), (wide[id(x)],), (("dtype", SINGLE),), origin))
    total = Value(Aval(out.aval.shape, SINGLE))
    ins: tuple[Atom, ...] = tuple(wide[id(x)] for x in node.ins)
    return (
        *casts,
        replace(node, ins=ins, outs=(total,)),
        TraceNode(cast, (total,), (out,), (("dtype", HALF),), origin),
    )
