"""Transposed matrices that many small products multiply by, brought into order once.

The gradient of ``h @ w`` is ``d @ w.T``, and a loop over time computes one for every step. BLAS has kernels for small
products that copy nothing, but hardly any for a transposed right matrix: it turns ``w`` again for every product. A turned
copy takes as long as one of them (32 x 192 times 192 x 64: 22 us, and 8 with the copy).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from jitgrad.compiler.passes.batch_products import is_product
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.ops.identity import IDENTITY

LEAST_PRODUCTS = 4
MOST_WORK = 1 << 20  # multiplications: larger products turn their matrix in a small part of their time


def materialize_transposes(graph: Graph) -> Graph:
    """Copy a transposed matrix into the order of its rows where it is the right operand of many small products."""
    uses = Counter(id(node.ins[1]) for node in graph.nodes if _is_small(node))
    copies: dict[int, Value] = {}  # by the id of what was copied
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        if copies and _is_small(node) and id(node.ins[1]) in copies:
            node = replace(node, ins=(node.ins[0], copies[id(node.ins[1])]))
        nodes.append(node)
        if node.op.name == "permute_dims" and uses[id(node.out)] >= LEAST_PRODUCTS:
            copies[id(node.out)] = copy = Value(node.out.aval)
            nodes.append(TraceNode(IDENTITY, (node.out,), (copy,), (), node.origin))
    return replace(graph, nodes=tuple(nodes)) if copies else graph


def _is_small(node: TraceNode) -> bool:
    if not is_product(node):
        return False
    (m, k), n = node.ins[0].aval.shape, node.ins[1].aval.shape[1]
    return m * k * n <= MOST_WORK
