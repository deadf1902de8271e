"""Matrix products that belong together as one: of equal right operands by rows, of sums along what is summed over.

A loop over time that multiplies every step by the same weights makes many small products. Those of the steps' inputs do
not wait for each other: if the inputs lie next to each other they are rows of one product. Their gradient is a sum of
products, ``a1.T @ d1 + a2.T @ d2 + ...``: one product of all rows of ``a`` and ``d``, which the kernels that compute
them write next to each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, row_major, view_location
from jitgrad.compiler.passes.slices import INSERT_SLICES
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind
from jitgrad.core.origin import Origin

# Products of more rows keep BLAS busy on their own, and one of them leaves its result in cache for what reads it.
MAX_ROWS = 256
# The results of one product for many wait in memory for those who read them, as long as a loop over time may be; and so
# do the operands of one product for a sum. More bytes than these stay with what each step needs.
MAX_RESULT_BYTES = 16 << 20
MAX_OPERAND_BYTES = 64 << 20


@dataclass(frozen=True, eq=False, slots=True)
class _Block:
    """Some rows of ``base``, seen as a matrix of as many columns: ``count`` from row ``first`` on."""

    base: Value
    first: int
    count: int


@dataclass(frozen=True, eq=False, slots=True)
class _Sum:
    """A sum ``root`` of ``parts``, which can be computed as one, and of ``rest``."""

    root: TraceNode
    parts: tuple[TraceNode, ...]
    rest: tuple[Atom, ...]


def batch_products(graph: Graph) -> Graph:
    """Make one product of those that share a right operand, and of those that are added up, where no data has to move.

    A product may take part if it has at most `MAX_ROWS` rows (or rows that are summed over). The left operands of the
    first kind are neighbouring rows of one array; so none depends on another's result, and the product can stand where
    the first one stood. Operands of the second kind are that, or each is computed by an elementwise op or assembled,
    is no result of the program and part of nothing else: then its maker writes it to its place among the others. The
    sum over rows is regrouped, in an order that depends on nothing but the program. What would take much memory stays.
    """
    return _Sums(_batch_rows(graph)).run()


# --- one product for many: rows -----------------------------------------------------------------------------------------


def _batch_rows(graph: Graph) -> Graph:
    made_by = {id(out): node for node in graph.nodes for out in node.outs}
    found: dict[tuple[int, int], list[tuple[_Block, TraceNode]]] = {}
    for node in graph.nodes:
        if is_product(node) and node.ins[0].aval.shape[0] <= MAX_ROWS:
            block = _block(node.ins[0], made_by)
            if block is not None:
                found.setdefault((id(block.base), id(node.ins[1])), []).append((block, node))
    chosen: dict[int, tuple[_Block, Value]] = {}  # by the id of a product: its rows in the product of all
    first: dict[int, list[TraceNode]] = {}  # what stands before the first product of each run
    order = {id(node): k for k, node in enumerate(graph.nodes)}
    for products in found.values():
        for run in _runs(products):
            together, whole = _product_of_rows(run)
            first[id(min((node for _, node in run), key=lambda node: order[id(node)]))] = together
            start = run[0][0].first
            chosen.update({id(n): (_Block(b.base, b.first - start, b.count), whole) for b, n in run})
    if not chosen:
        return graph
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        nodes += first.get(id(node), ())
        if id(node) in chosen:
            block, whole = chosen[id(node)]
            index = ((block.first, 1, block.count), (0, 1, whole.aval.shape[1]))
            node = TraceNode(REGISTRY["slice"], (whole,), node.outs, (("index", index),), node.origin)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def is_product(node: TraceNode) -> bool:
    """Whether ``node`` is a product of two matrices that BLAS makes."""
    if node.op.name != "matmul" or any(a.aval.ndim != 2 or 0 in a.aval.shape for a in node.ins):
        return False
    dtype = node.out.aval.dtype
    return dtype.kind == "f" and dtype.itemsize >= 4 and all(a.aval.dtype == dtype for a in node.ins)


def _block(atom: Atom, made_by: Mapping[int, TraceNode]) -> _Block | None:
    """The rows of an array that the matrix ``atom`` shows, or None if it shows no neighbouring ones."""
    chain: list[TraceNode] = []
    rows, columns = atom.aval.shape
    while (node := made_by.get(id(atom))) is not None and node.op.kind is Kind.MOVEMENT:
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


def _runs(products: Iterable[tuple[_Block, TraceNode]]) -> Iterator[list[tuple[_Block, TraceNode]]]:
    """Two or more products whose left operands follow each other without gaps, and whose results are not too large."""
    run: list[tuple[_Block, TraceNode]] = []
    size = 0
    for block, node in sorted(products, key=lambda found: found[0].first):
        gap = bool(run) and block.first != run[-1][0].first + run[-1][0].count
        size += node.out.aval.nbytes
        if gap or size > MAX_RESULT_BYTES:
            if len(run) > 1:
                yield run
            run, size = [], node.out.aval.nbytes
        run.append((block, node))
    if len(run) > 1:
        yield run


def _rows_of(base: Value, first: int, count: int, columns: int, origin: Origin) -> tuple[list[TraceNode], Value]:
    """``count`` rows of ``base`` as a matrix of ``columns``."""
    nodes: list[TraceNode] = []
    whole = (base.aval.size // columns, columns)
    if base.aval.shape != whole:
        base = _append(nodes, "reshape", (base,), whole, {"shape": whole}, origin)
    if count != whole[0]:
        index = ((first, 1, count), (0, 1, columns))
        base = _append(nodes, "slice", (base,), (count, columns), {"index": index}, origin)
    return nodes, base


def _product_of_rows(run: Sequence[tuple[_Block, TraceNode]]) -> tuple[list[TraceNode], Value]:
    block, node = run[0]
    count = sum(b.count for b, _ in run)
    nodes, left = _rows_of(block.base, block.first, count, node.ins[0].aval.shape[1], node.origin)
    right = node.ins[1]
    return nodes, _append(nodes, "matmul", (left, right), (count, right.aval.shape[1]), {}, node.origin)


def _append(
    nodes: list[TraceNode],
    name: str,
    ins: tuple[Atom, ...],
    shape: tuple[int, ...],
    attrs: Mapping[str, Any],
    origin: Origin,
) -> Value:
    out = Value(Aval(shape, ins[0].aval.dtype))
    nodes.append(TraceNode(REGISTRY[name], ins, (out,), tuple(sorted(attrs.items())), origin))
    return out


# --- one product for a sum of many -------------------------------------------------------------------------------------


class _Sums:
    """Sums of products ``a.T @ d``, and of sums over the rows of matrices."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made_by = {id(out): node for node in graph.nodes for out in node.outs}
        self.order = {id(node): k for k, node in enumerate(graph.nodes)}
        self.uses = Counter(id(a) for node in graph.nodes for a in node.ins)
        self.uses.update(map(id, graph.outputs))
        self.fixed = set(map(id, graph.outputs))  # ids of values that have a place already
        self.fixed.update(id(a) for node in graph.nodes if node.op is INSERT_SLICES for a in node.ins)
        self.gathered: dict[frozenset[int], tuple[tuple[int, ...], Value]] = {}  # by what they hold: in which order
        self.after: dict[int, list[TraceNode]] = {}  # what to put behind a node
        self.instead: dict[int, list[TraceNode]] = {}  # what to put in place of the last node of a sum

    def run(self) -> Graph:
        sums = list(self.sums())
        products = [found for found in sums if found.parts[0].op.name == "matmul"]
        orders = {id(found.root): self.wanted_order(found) for found in products}
        for found in sorted(products, key=lambda found: orders[id(found.root)] is None):
            self.join_products(found, orders[id(found.root)])
        for found in sums:
            if found.parts[0].op.name == "sum":
                self.join_totals(found)
        if not self.instead:
            return self.graph
        nodes: list[TraceNode] = []
        for node in self.graph.nodes:
            nodes += self.instead.get(id(node), (node,))
            nodes += self.after.get(id(node), ())
        return replace(self.graph, nodes=tuple(nodes))

    def sums(self) -> Iterator[_Sum]:
        """Every tree of additions, from the last one, with the products or sums over rows among its leaves."""
        inside: set[int] = set()
        for node in reversed(self.graph.nodes):
            if node.op.name != "add" or id(node) in inside:
                continue
            leaves: list[Atom] = []
            work: list[Atom] = list(node.ins)
            while work:
                atom = work.pop()
                maker = self.made_by.get(id(atom))
                if maker is not None and self._adds(maker, node):
                    inside.add(id(maker))
                    work += maker.ins
                else:
                    leaves.append(atom)
            makers = {id(a): self.made_by[id(a)] for a in leaves if self._is_part(a, node)}
            parts = sorted(makers.values(), key=lambda n: self.order[id(n)])
            if len(parts) > 1:
                yield _Sum(node, tuple(parts), tuple(a for a in leaves if id(a) not in makers))

    def _adds(self, maker: TraceNode, root: TraceNode) -> bool:
        out, total = maker.outs[0], root.out
        same = out.aval.shape == total.aval.shape and out.aval.dtype == total.aval.dtype
        return maker.op.name == "add" and same and self.uses[id(out)] == 1

    def _is_part(self, atom: Atom, root: TraceNode) -> bool:
        node = self.made_by.get(id(atom))
        if node is None or self.uses[id(atom)] > 1 or atom.aval.shape != root.out.aval.shape:
            return False
        if node.out.aval.dtype != root.out.aval.dtype:
            return False
        if is_product(node):
            return node.ins[1].aval.shape[0] <= MAX_ROWS and self._transposed(node) is not None
        x = node.ins[0].aval if node.ins else None
        return (
            x is not None
            and (node.op.name, x.ndim, dict(node.attrs).get("axis")) == ("sum", 2, (0,))
            and x.dtype == node.out.aval.dtype
            and x.dtype.kind == "f"
            and x.shape[0] <= MAX_ROWS
        )

    def _transposed(self, product: TraceNode) -> Value | None:
        """``a`` of a product ``a.T @ d``."""
        maker = self.made_by.get(id(product.ins[0]))
        source = maker.ins[0] if maker is not None and maker.op.name == "permute_dims" else None
        return source if isinstance(source, Value) else None

    # --- joining ---------------------------------------------------------------------------------------------------

    def wanted_order(self, found: _Sum) -> list[int] | None:
        """The order in which operands of a sum of products lie in memory already; None if any order will do."""
        return self._in_order([self._transposed(n) for n in found.parts]) or self._in_order(
            [n.ins[1] for n in found.parts]
        )

    def join_products(self, found: _Sum, order: Sequence[int] | None) -> None:
        pairs = [(self._transposed(n), n.ins[1]) for n in found.parts]
        known = self.gathered.get(frozenset(id(d) for _, d in pairs)) or self.gathered.get(
            frozenset(id(a) for a, _ in pairs)
        )
        if order is not None:
            pairs = [pairs[k] for k in order]
        elif known is not None:
            place = {key: k for k, key in enumerate(known[0])}
            pairs.sort(key=lambda pair: place.get(id(pair[0]), place.get(id(pair[1]), 0)))
        nodes: list[TraceNode] = []
        right = self.gather([d for _, d in pairs], found.root, nodes)
        left = self.gather([a for a, _ in pairs], found.root, nodes) if right is not None else None
        if left is None or right is None:
            return
        shape, origin = found.root.out.aval.shape, found.parts[0].origin
        turned = _append(nodes, "permute_dims", (left,), left.aval.shape[::-1], {"axes": (1, 0)}, origin)
        product = _append(nodes, "matmul", (turned, right), shape, {}, origin)
        self.finish(found, nodes, product)

    def join_totals(self, found: _Sum) -> None:
        nodes: list[TraceNode] = []
        matrix = self.gather([n.ins[0] for n in found.parts], found.root, nodes, any_order=True)
        if matrix is not None:
            total = _append(nodes, "sum", (matrix,), found.root.out.aval.shape, {"axis": (0,)}, found.parts[0].origin)
            self.finish(found, nodes, total)

    def finish(self, found: _Sum, nodes: list[TraceNode], total: Value) -> None:
        """Put ``nodes``, which compute the parts' sum ``total``, in place of the whole sum."""
        if id(found.root) in self.instead:
            return
        for atom in found.rest:
            total = _append(nodes, "add", (total, atom), total.aval.shape, {}, found.root.origin)
        nodes[-1] = replace(nodes[-1], outs=found.root.outs)
        self.instead[id(found.root)] = nodes

    def _in_order(self, parts: Sequence[Atom | None]) -> list[int] | None:
        """The order in which ``parts`` are neighbouring rows of one array, if they are."""
        blocks = [_block(a, self.made_by) if a is not None and a.aval.ndim == 2 else None for a in parts]
        known = [b for b in blocks if b is not None]
        if len(known) < len(parts) or any(b.base is not known[0].base for b in known):
            return None
        order = sorted(range(len(parts)), key=lambda k: known[k].first)
        follows = all(
            known[j].first + known[j].count == known[k].first for j, k in zip(order, order[1:], strict=False)
        )
        return order if follows else None

    def gather(
        self, parts: Sequence[Atom | None], root: TraceNode, nodes: list[TraceNode], any_order: bool = False
    ) -> Value | None:
        """One matrix of the rows of all ``parts`` in their order; None if that would take copies."""
        values = [v for v in parts if isinstance(v, Value)]
        key, order = frozenset(map(id, values)), tuple(map(id, values))
        known = self.gathered.get(key)
        if known is not None and len(key) == len(parts):
            return known[1] if any_order or known[0] == order else None
        columns = values[0].aval.shape[1]
        placed = self._in_order(values)
        if placed is not None and (any_order or placed == list(range(len(values)))):
            block = _block(values[placed[0]], self.made_by)
            assert block is not None
            count = sum(v.aval.shape[0] for v in values)
            more, matrix = _rows_of(block.base, block.first, count, columns, root.origin)
            nodes += more
            return matrix
        if len(key) < len(parts) or not all(map(self._placeable, values)):
            return None
        if sum(v.aval.nbytes for v in values) > MAX_OPERAND_BYTES:
            return None
        matrix = self.assemble(values, columns, root.origin)
        self.gathered[key] = order, matrix
        return matrix

    def _placeable(self, value: Value) -> bool:
        """Whether the maker of ``value`` can write it to any place."""
        maker = self.made_by.get(id(value))
        if maker is None or id(value) in self.fixed:
            return False
        return maker.op is INSERT_SLICES or (maker.op.kind is Kind.ELEMENTWISE and maker.op.scalar is not None)

    def assemble(self, values: Sequence[Value], columns: int, origin: Origin) -> Value:
        """The rows of ``values`` one after the other, from where the last of them is known."""
        starts = [0]
        for value in values:
            starts.append(starts[-1] + value.aval.shape[0])
        indices = tuple(
            ((start, 1, value.aval.shape[0]), (0, 1, columns)) for start, value in zip(starts, values, strict=False)
        )
        shape = (starts[-1], columns)
        out = Value(Aval(shape, values[0].aval.dtype))
        node = TraceNode(INSERT_SLICES, tuple(values), (out,), (("indices", indices), ("shape", shape)), origin)
        last = max((self.made_by[id(v)] for v in values), key=lambda n: self.order[id(n)])
        self.after.setdefault(id(last), []).append(node)
        self.fixed.update(map(id, values))
        return out
