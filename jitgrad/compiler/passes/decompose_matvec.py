"""Rewrites products of matrices and vectors, and of many short rows, as multiplications and sums, which fuse: memory bounds
their time."""

from __future__ import annotations

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.ir import Atom, Graph, TraceNode
from jitgrad.eager.float16 import HALF, compute_dtype, in_kernels
from jitgrad.ops.arithmetic import ASTYPE, MULTIPLY
from jitgrad.ops.linalg import MATMUL
from jitgrad.ops.movement import EXPAND_DIMS, PERMUTE_DIMS, RESHAPE, SUM


def decompose_matvec(graph: Graph, tuning: Tuning) -> Graph:
    """Rewrite every ``matmul`` of one float dtype that uses each element of the larger operand, or each pair, once.

    ``x @ w`` becomes ``sum(x * w, axis=1)``, ``w @ x`` becomes ``sum(w[:, newaxis] * x, axis=0)``, and a product of one
    column and one row becomes ``column * row``; likewise with batch axes. Reading and writing take longer than the
    arithmetic. As ordinary nodes the two products of a linear model and its gradient fuse with the nodes between them,
    and one kernel reads ``x`` once for both.
    """
    if not any(node.op.contraction for node in graph.nodes):
        return graph
    new = _Decomposer(graph, tuning)
    for node in new.visit():
        result = new.decomposed(node) if node.op.contraction else None
        if result is None:
            new.keep(node)
        else:
            new.replace(node.out, result)
    return new.graph()


class _Decomposer(Rewriter):
    def __init__(self, graph: Graph, tuning: Tuning) -> None:
        super().__init__(graph)
        self.tuning = tuning

    def decomposed(self, node: TraceNode) -> Atom | None:
        """The result of ``node`` without a matrix product; None if BLAS computes it faster."""
        if node.out.aval.dtype.kind in "biu" and self.tuning.integer_products and node.ins[0].aval.size:
            return self.integer_product(node)
        if (sizes := _sizes(node)) is None:
            return None
        ins, (m, k, n) = node.ins, sizes
        if ins[1].aval.ndim == 2 and self.has_few_terms(m, ins[0].aval.size // k, k, n):
            return self.few_terms(ins, node.out.aval.dtype, k > m)
        if not (k == 1 or (1 in (m, n) and node.out.aval.size * k == max(atom.aval.size for atom in ins))):
            return None
        left, right, dtype = ins[0].aval.shape[:-2], ins[1].aval.shape[:-2], node.out.aval.dtype
        if k > 1 and (m, n) != (1, 1) and not self.pays(ins, n == 1):
            return None if dtype == HALF else self.as_row(node)
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
        a = self.converted(self.shaped(ins[0], (*left, *rows)), compute_dtype(dtype))
        b = self.converted(self.shaped(ins[1], (*right, *columns)), compute_dtype(dtype))
        total = self.emit(MULTIPLY, a, b)
        if k > 1:
            total = self.emit(SUM, total, axis=(total.aval.ndim - (1 if n == 1 else 2),))
        return self.shaped(self.converted(total, dtype), node.out.aval.shape)

    def has_few_terms(self, m: int, rows: int, k: int, n: int) -> bool:
        """Whether a product multiplies many points by a matrix of a few rows and columns, or many points by as many."""
        few, many = self.tuning.interleaved_pieces, self.tuning.min_points
        return 1 < n <= few and (1 < k <= few and rows >= many or 1 < m <= few and k >= many)

    def few_terms(self, ins: tuple[Atom, ...], dtype: Dtype, over_points: bool) -> Atom:
        """Each product of two elements, and their sum: the axes of a few elements become pieces (`unroll_axes`).

        ``over_points``: of columns ``x.T @ y``, over the first axis of both; else of ``x @ w``, over the last one of ``x``.
        """
        a, b = (self.converted(atom, compute_dtype(dtype)) for atom in ins)
        if over_points:
            return self.converted(self.sum_of_products(self.swapped(a), b, -1, -2, -3), dtype)
        return self.converted(self.sum_of_products(a, self.swapped(b), -2, 0, -1), dtype)

    def sum_of_products(self, a: Atom, b: Atom, left: int, right: int, over: int) -> Atom:
        """``sum(expand_dims(a, left) * expand_dims(b, right), axis=over)``."""
        rank = a.aval.ndim + 1
        a = self.emit(EXPAND_DIMS, a, axis=(left % rank,))
        b = self.emit(EXPAND_DIMS, b, axis=(right % (b.aval.ndim + 1),))
        return self.emit(SUM, self.emit(MULTIPLY, a, b), axis=(over % rank,))

    def swapped(self, atom: Atom) -> Atom:
        """``atom`` with its last two axes in the other order."""
        producer, last = self.producer(atom), atom.aval.ndim - 1
        axes = (*range(last - 1), last, last - 1)
        if producer is not None and producer.op is PERMUTE_DIMS and producer.attr("axes") == axes:
            return producer.ins[0]
        return self.emit(PERMUTE_DIMS, atom, axes=axes)

    def integer_product(self, node: TraceNode) -> Atom:
        """The products of each row and column, added up; a sum of bools is true where one is."""
        (x, y), dtype = node.ins, node.out.aval.dtype
        a, b = self.converted(x, dtype), self.converted(y, dtype)
        if y.aval.ndim > 1:
            b = self.swapped(b)
            b = self.emit(EXPAND_DIMS, b, axis=(y.aval.ndim - 2,)) if x.aval.ndim > 1 else b
        a = self.emit(EXPAND_DIMS, a, axis=(x.aval.ndim - 1,)) if min(x.aval.ndim, y.aval.ndim) > 1 else a
        total: Atom = self.emit(MULTIPLY, a, b)
        if total.aval.shape[-1] > 1:
            return self.converted(self.emit(SUM, total, axis=(total.aval.ndim - 1,)), dtype)
        return self.shaped(total, node.out.aval.shape)

    def pays(self, ins: tuple[Atom, ...], column: bool) -> bool:
        """Whether a kernel computes products of matrices with a ``column``, or with a row, faster than BLAS.

        A sum along the rows of the matrix in memory always does, one over its columns only if the matrix exceeds the
        cache; of many small matrices it is slower, and fuses with little.
        """
        matrix = ins[0] if column else ins[1]
        axis, producer = matrix.aval.ndim - (1 if column else 2), self.producer(matrix)
        if producer is not None and producer.op is PERMUTE_DIMS:
            axis = producer.attr("axes")[axis]
        if axis == matrix.aval.ndim - 1:
            return True
        if max(atom.aval.ndim for atom in ins) > 2:
            return False
        return column or matrix.aval.nbytes >= self.tuning.min_column_sum_bytes

    def as_row(self, node: TraceNode) -> Atom | None:
        """A vector times a matrix as a product of two matrices, which needs no NumPy."""
        vector, matrix = node.ins
        if vector.aval.ndim != 1 or matrix.aval.ndim != 2:
            return None
        return self.shaped(self.emit(MATMUL, self.shaped(vector, (1, vector.aval.size)), matrix), node.out.aval.shape)

    def shaped(self, atom: Atom, shape: Shape) -> Atom:
        """``atom`` with other axes of length 1: the value it is a reshape of, if that has the shape."""
        source = atom
        while source.aval.shape != shape:
            producer = self.producer(source)
            if producer is None or not _keeps_order(producer):
                return self.emit(RESHAPE, atom, shape=shape)
            source = producer.ins[0]
        return source

    def converted(self, atom: Atom, dtype: Dtype) -> Atom:
        return atom if atom.aval.dtype == dtype else self.emit(ASTYPE, atom, dtype=dtype)


def _sizes(node: TraceNode) -> tuple[int, int, int] | None:
    """Rows, inner size and columns of a ``matmul`` of one float dtype; None for any other."""
    x, y, out = node.ins[0].aval, node.ins[1].aval, node.out.aval
    if x.dtype.kind != "f" or not x.dtype == y.dtype == out.dtype or (out.dtype == HALF and not in_kernels()):
        return None
    m, k = (1, *x.shape)[-2:]
    n = y.shape[-1] if y.ndim > 1 else 1
    return (m, k, n) if out.size * k else None


def _keeps_order(node: TraceNode) -> bool:
    """Whether the elements of ``node``'s result follow each other as those of its operand do."""
    if node.op is PERMUTE_DIMS:
        shape = node.ins[0].aval.shape
        long = [axis for axis in node.attr("axes") if shape[axis] != 1]
        return long == sorted(long)
    return node.op.keeps_order
