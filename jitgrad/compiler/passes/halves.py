"""Reductions of float16 in float32, where kernels have accumulators."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.aval import Aval
from jitgrad.half import HALF, SINGLE, in_kernels
from jitgrad.ir import Graph, TraceNode, Value
from jitgrad.op import REGISTRY, Kind


def widen_reductions(graph: Graph) -> Graph:
    """``sum(x)`` of float16 becomes ``astype(sum(astype(x, f32)), f16)``: what eager computes, rounded once.

    Products, which eager accumulates likewise, and extrema, which are exact in both, go the same way.
    """
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        of_half = node.op.kind is Kind.REDUCE and node.out.aval.dtype == HALF == node.ins[0].aval.dtype
        nodes += _widened(node) if of_half and in_kernels() else (node,)
    return graph if len(nodes) == len(graph.nodes) else replace(graph, nodes=tuple(nodes))


def _widened(node: TraceNode) -> tuple[TraceNode, ...]:
    (x,), out, origin = node.ins, node.out, node.origin
    wide, total = Value(Aval(x.aval.shape, SINGLE)), Value(Aval(out.aval.shape, SINGLE))
    cast = REGISTRY["astype"]
    return (
        TraceNode(cast, (x,), (wide,), (("dtype", SINGLE),), origin),
        replace(node, ins=(wide,), outs=(total,)),
        TraceNode(cast, (total,), (out,), (("dtype", HALF),), origin),
    )
