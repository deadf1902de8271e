"""Computes several matrix products as one: products of equal right operands, and products that are added up.

A loop over time that multiplies every step by the same weights makes many small products. Those of the steps' inputs do
not wait for each other: if the inputs are neighbours in memory, they are rows of one product. Their gradient is a sum of
products, ``a1.T @ d1 + a2.T @ d2 + ...``: one product of all rows of ``a`` and ``d``, which the kernels that compute
them write next to each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jitgrad.compiler.compiler_ops import COMPONENT, INSERT_SLICES, Index
from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, row_major, view_location
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.linalg import MATMUL
from jitgrad.ops.movement import PERMUTE_DIMS, RESHAPE, SLICE, SUM


@dataclass(frozen=True, eq=False, slots=True)
class _Block:
    """``count`` rows of ``base``, as a matrix of as many columns, from row ``first`` on."""

    base: Value
    first: int
    count: int


@dataclass(frozen=True, eq=False, slots=True)
class _Sum:
    """A sum ``root`` of ``parts``, which can be computed as one, and of ``rest``."""

    root: TraceNode
    parts: tuple[TraceNode, ...]
    rest: tuple[Atom, ...]


def batch_products(graph: Graph, tuning: Tuning) -> Graph:
    """Make one product of those that share a right operand, and of those that are added up, where no data has to move.

    A product may take part if it has few rows (or rows that are summed over). The left operands of the first kind are
    neighbouring rows of one array; none depends on another's result, so the product is computed where the first one was.
    Operands of the second kind are such rows, or an elementwise op or ``insert_slices`` computes each of them, and it is
    no result of the program and part of no other array: then its kernel writes it next to the others. The sum over rows
    is regrouped, in an order that depends on nothing but the program. Products that would take much memory stay apart;
    to spare memory, all do.
    """
    if tuning.spare_memory >= 2:
        return graph
    return _Sums(_batch_rows(graph, tuning), tuning).run()


# --- one product for many: rows -----------------------------------------------------------------------------------------


def _batch_rows(graph: Graph, tuning: Tuning) -> Graph:
    by_operands: dict[tuple[Atom, Atom], list[tuple[_Block, TraceNode]]] = {}
    for node in graph.nodes:
        if is_product(node) and node.ins[0].aval.shape[0] <= tuning.max_batched_rows:
            block = _block(node.ins[0], graph)
            if block is not None:
                by_operands.setdefault((block.base, node.ins[1]), []).append((block, node))
    runs = [run for products in by_operands.values() for run in _runs(products, tuning.max_batched_result_bytes)]
    if not runs:
        return graph
    batches = {node: (block, run) for run in runs for block, node in run}
    new, wholes = Rewriter(graph), dict[TraceNode, Value]()  # by the first product of a run: the product of all
    for node in new.visit():
        if node not in batches:
            new.keep(node)
            continue
        block, run = batches[node]
        first_block, first = run[0]
        if first not in wholes:
            wholes[first] = _product_of_rows(new, run)
        index = ((block.first - first_block.first, 1, block.count), (0, 1, wholes[first].aval.shape[1]))
        new.origin = node.origin
        new.define(node.out, SLICE, wholes[first], index=index)
    return new.graph()


def is_product(node: TraceNode) -> bool:
    """Whether ``node`` is a product of two matrices that BLAS computes."""
    if not node.op.contraction or any(a.aval.ndim != 2 or 0 in a.aval.shape for a in node.ins):
        return False
    dtype = node.out.aval.dtype
    return dtype.kind == "f" and dtype.itemsize >= 4 and all(a.aval.dtype == dtype for a in node.ins)


def _block(atom: Atom, graph: Graph) -> _Block | None:
    """The neighbouring rows of an array that the matrix ``atom`` is a view of; None if it is none."""
    chain: list[TraceNode] = []
    rows, columns = atom.aval.shape
    while (node := graph.producer(atom)) is not None and node.op.kind is Kind.MOVEMENT:
        if node.op is COMPONENT:
            return None
        chain.append(node)
        atom = node.ins[0]
    if not isinstance(atom, Value) or not chain or columns == 0 or atom.aval.size % columns:
        return None
    at: Location | None = Location(Buffer(BufferRole.INPUT, atom.aval.nbytes), 0, row_major(atom.aval.shape))
    for node in reversed(chain):
        assert at is not None
        at = view_location(node, at, node.ins[0].aval)
        if at is None:
            return None
    assert at is not None
    first, rest = divmod(at.offset, columns * atom.aval.dtype.itemsize)
    in_order = (columns == 1 or at.strides[1] == 1) and (rows == 1 or at.strides[0] == columns)
    return _Block(atom, first, rows) if in_order and not rest else None


def _runs(
    products: Iterable[tuple[_Block, TraceNode]], max_bytes: int
) -> Iterator[list[tuple[_Block, TraceNode]]]:
    """Two or more products whose left operands follow each other without gaps, and whose results are not too large."""
    run: list[tuple[_Block, TraceNode]] = []
    size = 0
    for block, node in sorted(products, key=lambda product: product[0].first):
        gap = bool(run) and block.first != run[-1][0].first + run[-1][0].count
        size += node.out.aval.nbytes
        if gap or size > max_bytes:
            if len(run) > 1:
                yield run
            run, size = [], node.out.aval.nbytes
        run.append((block, node))
    if len(run) > 1:
        yield run


def _rows_of(new: Rewriter, base: Value, first: int, count: int, columns: int) -> Value:
    """``count`` rows of ``base`` as a matrix of ``columns``."""
    whole = (base.aval.size // columns, columns)
    if base.aval.shape != whole:
        base = new.emit(RESHAPE, base, shape=whole)
    return base if count == whole[0] else new.emit(SLICE, base, index=((first, 1, count), (0, 1, columns)))


def _product_of_rows(new: Rewriter, run: Sequence[tuple[_Block, TraceNode]]) -> Value:
    block, node = run[0]
    new.origin = node.origin
    left = _rows_of(new, block.base, block.first, sum(b.count for b, _ in run), node.ins[0].aval.shape[1])
    return new.emit(MATMUL, left, node.ins[1])


# --- one product for a sum of many -------------------------------------------------------------------------------------


class _Sums:
    """Sums of products ``a.T @ d``, and of sums over the rows of matrices."""

    def __init__(self, graph: Graph, tuning: Tuning) -> None:
        self.graph, self.tuning = graph, tuning
        self.order = {node: k for k, node in enumerate(graph.nodes)}
        self.uses = Counter[Atom](atom for node in graph.nodes for atom in node.ins)
        self.uses.update(graph.outputs)
        self.fixed: set[Atom] = set(graph.outputs)  # values that have a place in memory already
        self.fixed.update(atom for node in graph.nodes if node.op is INSERT_SLICES for atom in node.ins)
        self.gathered: dict[frozenset[Value], tuple[tuple[Value, ...], Value]] = {}  # values -> (their order, matrix)
        self.after: dict[TraceNode, list[TraceNode]] = {}  # nodes to put behind a node
        self.instead: dict[TraceNode, list[TraceNode]] = {}  # nodes to put in place of the last node of a sum

    def run(self) -> Graph:
        sums = list(self.sums())
        orders = {total: self.wanted_order(total) for total in sums if total.parts[0].op.contraction}
        for summed in sorted(orders, key=lambda summed: orders[summed] is None):
            self.join_products(summed, orders[summed])
        for summed in sums:
            if summed.parts[0].op is SUM:
                self.join_totals(summed)
        if not self.instead:
            return self.graph
        nodes: list[TraceNode] = []
        for node in self.graph.nodes:
            nodes += self.instead.get(node, (node,))
            nodes += self.after.get(node, ())
        return replace(self.graph, nodes=tuple(nodes))

    def sums(self) -> Iterator[_Sum]:
        """Every tree of additions, from the last one, with the products or sums over rows among its leaves."""
        inside: set[TraceNode] = set()
        for node in reversed(self.graph.nodes):
            if node.op is not ADD or node in inside:
                continue
            leaves: list[Atom] = []
            work: list[Atom] = list(node.ins)
            while work:
                atom = work.pop()
                producer = self.graph.producer(atom)
                if producer is not None and self._adds(producer, node):
                    inside.add(producer)
                    work += producer.ins
                else:
                    leaves.append(atom)
            producers = {a: part for a in leaves if (part := self._part(a, node)) is not None}
            parts = sorted(producers.values(), key=self.order.__getitem__)
            if len(parts) > 1:
                yield _Sum(node, tuple(parts), tuple(a for a in leaves if a not in producers))

    def _adds(self, producer: TraceNode, root: TraceNode) -> bool:
        out, total = producer.outs[0], root.out
        same = out.aval.shape == total.aval.shape and out.aval.dtype == total.aval.dtype
        return producer.op is ADD and same and self.uses[out] == 1

    def _part(self, atom: Atom, root: TraceNode) -> TraceNode | None:
        """The product or sum over rows that computes the leaf ``atom`` of a sum, if it can be joined with others."""
        node = self.graph.producer(atom)
        if node is None or self.uses[atom] > 1 or atom.aval.shape != root.out.aval.shape:
            return None
        if atom.aval.dtype != root.out.aval.dtype:
            return None
        x = node.ins[0].aval if node.ins else None
        if is_product(node):
            joins = node.ins[1].aval.shape[0] <= self.tuning.max_batched_rows and self._transposed(node) is not None
        else:
            joins = (
                x is not None
                and (node.op, x.ndim, dict(node.attrs).get("axis")) == (SUM, 2, (0,))
                and x.dtype == atom.aval.dtype
                and x.dtype.kind == "f"
                and x.shape[0] <= self.tuning.max_batched_rows
            )
        return node if joins else None

    def _transposed(self, product: TraceNode) -> Value | None:
        """``a`` of a product ``a.T @ d``."""
        producer = self.graph.producer(product.ins[0])
        source = producer.ins[0] if producer is not None and producer.op is PERMUTE_DIMS else None
        return source if isinstance(source, Value) else None

    # --- joining ---------------------------------------------------------------------------------------------------

    def wanted_order(self, summed: _Sum) -> list[int] | None:
        """The order in which operands of a sum of products are in memory already; None if any order will do."""
        return self._in_order([self._transposed(n) for n in summed.parts]) or self._in_order(
            [n.ins[1] for n in summed.parts]
        )

    def join_products(self, summed: _Sum, order: Sequence[int] | None) -> None:
        pairs = [(self._transposed(n), n.ins[1]) for n in summed.parts]
        known = self._gathered(d for _, d in pairs) or self._gathered(a for a, _ in pairs)
        if order is not None:
            pairs = [pairs[k] for k in order]
        elif known is not None:
            place: dict[Atom | None, int] = {value: k for k, value in enumerate(known[0])}
            pairs.sort(key=lambda pair: place.get(pair[0], place.get(pair[1], 0)))
        new = Rewriter(self.graph, summed.root.origin)
        right = self.gather([d for _, d in pairs], new)
        left = self.gather([a for a, _ in pairs], new) if right is not None else None
        if left is None or right is None:
            return
        new.origin = summed.parts[0].origin
        self.finish(summed, new, new.emit(MATMUL, new.emit(PERMUTE_DIMS, left, axes=(1, 0)), right))

    def join_totals(self, summed: _Sum) -> None:
        new = Rewriter(self.graph, summed.root.origin)
        matrix = self.gather([n.ins[0] for n in summed.parts], new, any_order=True)
        if matrix is not None:
            new.origin = summed.parts[0].origin
            self.finish(summed, new, new.emit(SUM, matrix, axis=(0,)))

    def finish(self, summed: _Sum, new: Rewriter, total: Value) -> None:
        """Put the nodes of ``new``, which compute the parts' sum ``total``, in place of the whole sum."""
        if summed.root in self.instead:
            return
        new.origin = summed.root.origin
        for atom in summed.rest:
            total = new.emit(ADD, total, atom)
        self.instead[summed.root] = [*new.nodes[:-1], replace(new.nodes[-1], outs=summed.root.outs)]

    def _gathered(self, values: Iterable[Atom | None]) -> tuple[tuple[Value, ...], Value] | None:
        return self.gathered.get(frozenset(v for v in values if isinstance(v, Value)))

    def _in_order(self, parts: Sequence[Atom | None]) -> list[int] | None:
        """The order in which ``parts`` are neighbouring rows of one array, if they are."""
        blocks = [_block(a, self.graph) if a is not None and a.aval.ndim == 2 else None for a in parts]
        rows = [b for b in blocks if b is not None]
        if len(rows) < len(parts) or any(b.base is not rows[0].base for b in rows):
            return None
        order = sorted(range(len(parts)), key=lambda k: rows[k].first)
        follows = all(
            rows[j].first + rows[j].count == rows[k].first for j, k in zip(order, order[1:], strict=False)
        )
        return order if follows else None

    def gather(self, parts: Sequence[Atom | None], new: Rewriter, any_order: bool = False) -> Value | None:
        """One matrix of the rows of all ``parts`` in their order; None if that would take copies."""
        values = [v for v in parts if isinstance(v, Value)]
        key, order = frozenset(values), tuple(values)
        known = self.gathered.get(key)
        if known is not None and len(key) == len(parts):
            return known[1] if any_order or known[0] == order else None
        columns = values[0].aval.shape[1]
        placed = self._in_order(values)
        if placed is not None and (any_order or placed == list(range(len(values)))):
            block = _block(values[placed[0]], self.graph)
            assert block is not None
            return _rows_of(new, block.base, block.first, sum(v.aval.shape[0] for v in values), columns)
        if len(key) < len(parts) or not all(map(self._placeable, values)):
            return None
        if sum(v.aval.nbytes for v in values) > self.tuning.max_batched_operand_bytes:
            return None
        matrix = self.assemble(values, columns, new)
        self.gathered[key] = order, matrix
        return matrix

    def _placeable(self, value: Value) -> bool:
        """Whether the kernel that computes ``value`` can write it to any place."""
        producer = self.graph.producer(value)
        if producer is None or value in self.fixed:
            return False
        return producer.op is INSERT_SLICES or (producer.op.kind is Kind.ELEMENTWISE and producer.op.scalar is not None)

    def assemble(self, values: Sequence[Value], columns: int, new: Rewriter) -> Value:
        """The rows of ``values`` one after the other, behind the node that computes the last of them."""
        indices: list[Index] = []
        total = 0
        for value in values:
            rows = value.aval.shape[0]
            indices.append(((total, 1, rows), (0, 1, columns)))
            total += rows
        rows_of_all = Rewriter(self.graph, new.origin)
        matrix = rows_of_all.emit(INSERT_SLICES, *values, indices=tuple(indices), shape=(total, columns))
        last = max(self.order[node] for v in values if (node := self.graph.producer(v)) is not None)
        self.after.setdefault(self.graph.nodes[last], []).extend(rows_of_all.nodes)
        self.fixed.update(values)
        return matrix
