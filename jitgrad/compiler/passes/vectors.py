"""Products of a matrix and a vector as a multiplication and a sum: memory bounds them, so they had better fuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jitgrad.aval import Aval, Dtype
from jitgrad.half import HALF, held, in_kernels
from jitgrad.ir import Atom, Graph, TraceNode, Value
from jitgrad.op import REGISTRY
from jitgrad.origin import Origin


def spell_vector_products(graph: Graph) -> Graph:
    """Rewrite every ``matmul`` of a matrix with a vector (or one column) of the same float dtype.

    ``x @ w`` becomes ``sum(x * w, axis=1)`` and ``x.T @ g`` becomes ``sum(x * g[:, newaxis], axis=0)``: each element of
    ``x`` is used once, and reading it takes longer than the arithmetic. As ordinary nodes the two products of a linear
    model and its gradient join what lies between them, and ``x`` is read once for both.
    """
    speller = _Speller()
    nodes: dict[int, Atom] = {}
    for node in graph.nodes:
        ins = tuple(nodes.get(id(a), a) for a in node.ins)
        found = speller.spelled(node, ins)
        if found is None:
            speller.append(node if ins == node.ins else replace(node, ins=ins))
        else:
            nodes[id(node.out)] = found
    outputs = tuple(nodes.get(id(a), a) for a in graph.outputs)
    return replace(graph, nodes=tuple(speller.nodes), outputs=outputs)


class _Speller:
    def __init__(self) -> None:
        self.nodes: list[TraceNode] = []
        self.made_by: dict[int, TraceNode] = {}

    def append(self, node: TraceNode) -> None:
        self.nodes.append(node)
        self.made_by.update({id(out): node for out in node.outs})

    def emit(self, name: str, ins: tuple[Atom, ...], attrs: Mapping[str, Any], origin: Origin) -> Atom:
        op = REGISTRY[name]
        aval = op.abstract([a.aval for a in ins], attrs)
        assert isinstance(aval, Aval)
        node = TraceNode(op, ins, (Value(aval),), tuple(sorted(attrs.items())), origin)
        self.append(node)
        return node.out

    def spelled(self, node: TraceNode, ins: tuple[Atom, ...]) -> Atom | None:
        """The result of ``node`` in other words, or None if it is no product of a matrix and a vector."""
        if node.op.name != "matmul":
            return None
        x, y = ins
        column = y.aval.ndim == 2 and y.aval.shape[1] == 1
        if x.aval.ndim != 2 or not (y.aval.ndim == 1 or column) or 0 in x.aval.shape or 1 in x.aval.shape:
            return None
        dtype = node.out.aval.dtype
        if dtype.kind != "f" or not x.aval.dtype == y.aval.dtype == dtype or (dtype == HALF and not in_kernels()):
            return None
        maker = self.made_by.get(id(x))
        transposed = maker is not None and maker.op.name == "permute_dims"
        if transposed:
            assert maker is not None
            matrix = maker.ins[0]
            rows = y if column else self.emit("expand_dims", (y,), {"axis": (1,)}, node.origin)
        else:
            matrix = x
            rows = self.emit("squeeze", (y,), {"axis": (1,)}, node.origin) if column else y
        # NumPy's product of float16 matrices adds up float32 products
        factors = tuple(self.converted(atom, held(dtype), node.origin) for atom in (matrix, rows))
        product = self.emit("multiply", factors, {}, node.origin)
        total = self.emit("sum", (product,), {"axis": (0,) if transposed else (1,)}, node.origin)
        total = self.converted(total, dtype, node.origin)
        return self.emit("expand_dims", (total,), {"axis": (1,)}, node.origin) if column else total

    def converted(self, atom: Atom, dtype: Dtype, origin: Origin) -> Atom:
        return atom if atom.aval.dtype == dtype else self.emit("astype", (atom,), {"dtype": dtype}, origin)
