"""Products of matrices and vectors as multiplications and sums: memory bounds them, so they had better fuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jitgrad.core.aval import Aval, Dtype, Shape
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import REGISTRY
from jitgrad.core.origin import Origin
from jitgrad.eager.float16 import HALF, compute_dtype, in_kernels

# bytes of a matrix: BLAS multiplies smaller ones by one row faster than a kernel sums columns (256 x 256: 10 us, 15 us)
BEYOND_CACHE = 1 << 21


def decompose_matvec(graph: Graph) -> Graph:
    """Rewrite every ``matmul`` of the same float dtypes that uses each element of the larger operand, or each pair, once.

    ``x @ w`` becomes ``sum(x * w, axis=1)``, ``w @ x`` becomes ``sum(w[:, newaxis] * x, axis=0)``, and a product of one
    column and one row becomes ``column * row``; of batches likewise. Reading and writing take longer than the arithmetic.
    As ordinary nodes the two products of a linear model and its gradient join what lies between them, and ``x`` is read
    once for both.
    """
    if not any(node.op.name == "matmul" for node in graph.nodes):
        return graph
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

    def shaped(self, atom: Atom, shape: Shape, origin: Origin) -> Atom:
        """``atom`` with other axes of length 1; of what it is itself a reshape of, if that has the shape."""
        source = atom
        while source.aval.shape != shape and (maker := self.made_by.get(id(source))) is not None:
            if not _keeps_order(maker):
                return self.emit("reshape", (atom,), {"shape": shape}, origin)
            source = maker.ins[0]
        return source if source.aval.shape == shape else self.emit("reshape", (atom,), {"shape": shape}, origin)

    def pays(self, ins: tuple[Atom, ...], column: bool) -> bool:
        """Whether a product of one matrix or a batch of them with a ``column``, or with a row, had better be a kernel.

        A sum along the rows of the matrix in memory always had, one over its columns only where BLAS waits for memory;
        of many small matrices it is slower, and fuses with little.
        """
        matrix = ins[0] if column else ins[1]
        axis, maker = matrix.aval.ndim - (1 if column else 2), self.made_by.get(id(matrix))
        if maker is not None and maker.op.name == "permute_dims":
            axis = maker.attr("axes")[axis]
        if axis == matrix.aval.ndim - 1:
            return True
        if max(atom.aval.ndim for atom in ins) > 2:
            return False
        return column or matrix.aval.nbytes >= BEYOND_CACHE

    def as_row(self, node: TraceNode, ins: tuple[Atom, ...]) -> Atom | None:
        """A vector times a matrix as a product of two matrices, which needs no NumPy."""
        if ins[0].aval.ndim != 1 or ins[1].aval.ndim != 2:
            return None
        row = self.shaped(ins[0], (1, ins[0].aval.size), node.origin)
        return self.shaped(self.emit("matmul", (row, ins[1]), {}, node.origin), node.out.aval.shape, node.origin)

    def spelled(self, node: TraceNode, ins: tuple[Atom, ...]) -> Atom | None:
        """The result of ``node`` in other words, or None if it is a product in its own right."""
        if node.op.name != "matmul" or (sizes := _sizes(node)) is None:
            return None
        (m, k, n), left, right = sizes, ins[0].aval.shape[:-2], ins[1].aval.shape[:-2]
        dtype = node.out.aval.dtype
        if k > 1 and (m, n) != (1, 1) and not self.pays(ins, n == 1):
            return None if dtype == HALF else self.as_row(node, ins)
        # without the axes of length 1, which would hide that an operand is a permutation of something
        rows: Shape
        columns: Shape
        if k == 1:
            rows, columns = ((1,), (n,)) if m == 1 else ((m,), (1,)) if n == 1 else ((m, 1), (1, n))
        elif n == 1:
            rows, columns = (k,) if m == 1 else (m, k), (1, k) if right and m > 1 else (k,)
        else:
            rows, columns = (k, 1), (k, n)
        # NumPy's product of float16 matrices adds up float32 products
        a = self.converted(self.shaped(ins[0], (*left, *rows), node.origin), compute_dtype(dtype), node.origin)
        b = self.converted(self.shaped(ins[1], (*right, *columns), node.origin), compute_dtype(dtype), node.origin)
        total = self.emit("multiply", (a, b), {}, node.origin)
        if k > 1:
            axis = total.aval.ndim - (1 if n == 1 else 2)
            total = self.emit("sum", (total,), {"axis": (axis,)}, node.origin)
        return self.shaped(self.converted(total, dtype, node.origin), node.out.aval.shape, node.origin)

    def converted(self, atom: Atom, dtype: Dtype, origin: Origin) -> Atom:
        return atom if atom.aval.dtype == dtype else self.emit("astype", (atom,), {"dtype": dtype}, origin)


def _sizes(node: TraceNode) -> tuple[int, int, int] | None:
    """Rows, inner size and columns of a ``matmul`` that is to be spelled; None for one that is not."""
    x, y, out = node.ins[0].aval, node.ins[1].aval, node.out.aval
    if x.dtype.kind != "f" or not x.dtype == y.dtype == out.dtype or (out.dtype == HALF and not in_kernels()):
        return None
    m, k = (1, *x.shape)[-2:]
    n = y.shape[-1] if y.ndim > 1 else 1
    work = out.size * k
    once = k == 1 or (1 in (m, n) and work == max(x.size, y.size))
    return (m, k, n) if work and once else None


def _keeps_order(node: TraceNode) -> bool:
    """Whether the elements of ``node``'s result follow each other as those of its operand do."""
    if node.op.name == "permute_dims":
        shape = node.ins[0].aval.shape
        long = [axis for axis in node.attr("axes") if shape[axis] != 1]
        return long == sorted(long)
    return node.op.name in ("reshape", "expand_dims", "squeeze")
