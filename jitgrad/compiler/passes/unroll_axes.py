"""Which axes are so short that what runs along them is better computed in pieces, and why it should be."""

from __future__ import annotations

from math import prod

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.fusion.axis_maps import NONE, RENAMING, AxisMap, Definitions
from jitgrad.compiler.passes.axis_unroller import AxisUnroller, aligned, is_disjoint_fold, is_divisible
from jitgrad.compiler.passes.canonicalize_reductions import MIN_LANES
from jitgrad.core.aval import Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind

# At most so many pieces of one value (a window of 3x3x3), each of at least so many elements, and so many ops in all.
MAX_PIECES = 27
LEAST_PIECE = 16
MAX_NODES = 512

# Read so many times, an array is worth a copy whose elements lie side by side.
REPEATED = 8

Axis = tuple[int, int]  # id of a value, or of the node that reduces it; the axis there


def unroll_axes(graph: Graph) -> Graph:
    """``max(x, axis=(1, 3))`` of ``x[n,2,m,2]`` becomes ``maximum`` of four slices ``x[:, i, :, j]``.

    Likewise ``sum(d * d, axis=2)`` of ``d[n,n,3]``, with all that runs along this axis, if it is summed over one of the
    others, too: no loop nest has reductions over several of its axes. The loops are over the other axes then.
    """
    if not any(node.op.kind is Kind.REDUCE or node.op.name == "broadcast_to" for node in graph.nodes):
        return graph
    if not any(1 < n <= MAX_PIECES for node in graph.nodes for v in (*node.ins, node.out) for n in v.aval.shape):
        return graph
    axes = _Axes(graph)
    if not (cut := axes.chosen()):
        return graph

    def is_cut(value: Value, k: int) -> bool:
        return axes.find((id(value), k)) in cut

    def is_cut_in(node: TraceNode, k: int) -> bool:
        return axes.find((id(node), k)) in cut

    return AxisUnroller(is_cut, is_cut_in, axes.repeated).run(graph)


class _Axes:
    """The axes of all values that are computed in loops; those along which one loop would run are the same axis."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = [node for node in graph.nodes if is_divisible(node)]
        self.computed = {id(node.out) for node in self.nodes}
        unfolded = [node.out for node in graph.nodes if node.op.name == "unfold"]
        self.computed |= set(map(id, unfolded))
        self.parent: dict[Axis, Axis] = {}
        for node in self.nodes:
            self.connect(node)
        self.windows = {self.find((id(v), k)) for v in unfolded for k in (v.aval.ndim - 4, v.aval.ndim - 3)}
        self.graph, self.definitions = graph, Definitions(graph)
        self.repeated = {  # ids of arrays of which every element is read for many elements of some result
            id(read.root)
            for node in self.nodes
            if node.op.kind is Kind.ELEMENTWISE
            for read in self.definitions.reads(node)
            if read.root.aval.size * REPEATED <= node.out.aval.size
        }

    def find(self, key: Axis) -> Axis:
        while (above := self.parent.get(key, key)) != key:
            self.parent[key] = self.parent.get(above, above)
            key = above
        return key

    def join(self, a: Axis, b: Axis) -> None:
        self.parent[self.find(a)] = self.find(b)

    def connect(self, node: TraceNode) -> None:
        out = node.out
        if node.op.kind is Kind.REDUCE:
            kept = _kept(node)
            for k, axis in enumerate(kept):
                self.join((id(out), k), (id(node), axis))
            maps = [tuple(range(node.ins[0].aval.ndim))]
        else:
            maps = [() if isinstance(a, Literal) else aligned(node, k) for k, a in enumerate(node.ins)]
        loop, _ = self.loop(node)
        for atom, axes in zip(node.ins, maps, strict=True):
            if id(atom) in self.computed:
                for k, axis in enumerate(axes):
                    if axis != NONE and atom.aval.shape[k] != 1:
                        self.join((id(atom), k), (loop, axis))

    def chosen(self) -> set[Axis]:
        """The axes to cut."""
        found, streamed = set[Axis](), self.streamed()
        behind: dict[int, frozenset[int]] = {}  # per value: which reductions of short rows it depends on
        rows: dict[int, TraceNode] = {}
        for node in self.nodes:
            before = frozenset[int]().union(*[behind.get(id(a), ()) for a in node.ins])
            if node.op.kind is Kind.REDUCE:
                found |= self.wanted(node)
                for key in before:
                    if self.splits(node, rows[key]):
                        found |= self.reduced(rows[key])
                if _is_short_row(node):
                    if self.reduced(node).isdisjoint(streamed):
                        found |= self.reduced(node)
                    rows[id(node)] = node
                    before |= {id(node)}
            if before:
                behind[id(node.out)] = before
        for atom in self.laid_out():
            found |= self.repeating(atom)
        for node in self.graph.nodes:
            if is_disjoint_fold(node):
                (x,) = node.ins
                found |= {self.find((id(x), k)) for k in (x.aval.ndim - 4, x.aval.ndim - 3)}
        return self.affordable(found - self.counted()) if found else found

    def counted(self) -> set[Axis]:
        """The axes along which large arrays of positions run, which would have to lie in memory to be read in pieces."""
        found = set[Axis]()
        for node in self.nodes:
            for read in self.definitions.reads(node) if node.op.name not in RENAMING else ():
                maker = self.definitions.by_value.get(id(read.root))
                if maker is not None and maker.op.kind is Kind.INDEX and id(read.root) not in self.repeated:
                    found |= {self.find((self.loop(node)[0], k)) for k in read.dims if k != NONE}
        return found

    def laid_out(self) -> list[Atom]:
        """What has to lie in memory element by element: results, and what is reshaped."""
        return [*self.graph.outputs, *(node.ins[0] for node in self.graph.nodes if node.op.name == "reshape")]

    def repeating(self, atom: Atom) -> set[Axis]:
        """The short axes along which ``atom`` repeats elements, if the last axis is one: one is read, several are written."""
        root, dims = self.definitions.resolve(atom)
        shape = atom.aval.shape
        gone = tuple(k for k, n in enumerate(shape) if k not in dims and n != 1)
        real = [k for k, n in enumerate(shape) if n != 1]
        if not gone or gone[-1] != real[-1] or not _are_few(shape, gone):
            return set()
        if list(gone) == real[len(real) - len(gone) :] and self.is_costly(root):
            return set()
        return {self.find((id(atom), k)) for k in gone}

    def streamed(self) -> set[Axis]:
        """The axes along which large arrays are read or written: in pieces their elements lie apart in memory.

        Vectors are made of such one element at a time; rows of them are better turned into lanes as a whole.
        """
        largest: dict[Axis, int] = {}
        seen: list[tuple[Axis, int]] = []
        for node in self.nodes:
            loop, shape = self.loop(node)
            for k in range(len(shape)):
                axis = self.find((loop, k))
                largest[axis] = max(largest.get(axis, 0), prod(shape))
            if node.op.name not in RENAMING:
                for root, dims in self.definitions.reads(node):
                    if id(root) not in self.computed:
                        seen += [(self.find((loop, k)), root.aval.size) for k in dims if k != NONE]
        needed: list[Atom] = [a for node in self.graph.nodes if not is_divisible(node) for a in node.ins]
        for atom in (*needed, *self.graph.outputs):
            seen += [(self.find((id(atom), k)), atom.aval.size) for k in range(atom.aval.ndim)]
        return {axis for axis, size in seen if size * REPEATED > largest.get(axis, 0)}

    def loop(self, node: TraceNode) -> tuple[int, Shape]:
        """What the axes of ``node``'s loop are known by, and their lengths."""
        if node.op.kind is Kind.REDUCE:
            return id(node), node.ins[0].aval.shape
        return id(node.out), node.out.aval.shape

    def is_costly(self, atom: Atom) -> bool:
        """Whether costly functions make ``atom``: stores of elements that lie apart would keep them out of vectors."""
        work, seen = [atom], set[int]()
        while work:
            maker = self.definitions.by_value.get(id(work[-1]))
            seen.add(id(work.pop()))
            if maker is not None and (maker.op.name in RENAMING or maker.op.kind is Kind.ELEMENTWISE):
                if maker.op.kind is Kind.ELEMENTWISE and expensive(maker.op):
                    return True
                work += [a for a in maker.ins if id(a) not in seen]
        return False

    def reduced(self, node: TraceNode) -> set[Axis]:
        return {self.find((id(node), k)) for k in _gone(node)}

    def wanted(self, node: TraceNode) -> set[Axis]:
        """The axes to cut because no loop nest reduces as ``node`` does, or none that makes vectors."""
        shape, gone = node.ins[0].aval.shape, _gone(node)
        if _has_loops(shape, gone) and not (gone and self.reduced(node) <= self.windows):
            return set()
        behind = tuple(range(gone[-1] + 1, len(shape)))
        if prod(shape[k] for k in gone) > MAX_PIECES and prod(shape[k] for k in behind) < MIN_LANES:
            gone = behind
        return {self.find((id(node), k)) for k in gone} if _are_few(shape, gone) else set()

    def splits(self, node: TraceNode, row: TraceNode) -> bool:
        """Whether ``node`` reduces some of the axes that the reduction ``row`` keeps, but not all of them."""
        kept = {self.find((id(row), k)) for k in _kept(row) if row.ins[0].aval.shape[k] != 1}
        gone = self.reduced(node) & kept
        return bool(gone) and gone != kept

    def affordable(self, cut: set[Axis]) -> set[Axis]:
        """``cut`` without axes along which values would fall into too many pieces, or too small ones."""
        total = 0
        for node in self.nodes:
            key, shape = self.loop(node)
            own = [k for k in range(len(shape)) if shape[k] != 1 and self.find((key, k)) in cut]
            pieces = prod(shape[k] for k in own)
            total += pieces if own else 0
            if pieces > MAX_PIECES:
                cut -= {self.find((key, k)) for k in own}
        return cut if total <= MAX_NODES else set()


def _gone(node: TraceNode) -> AxisMap:
    shape = node.ins[0].aval.shape
    return tuple(k for k in sorted(node.attr("axis")) if shape[k] != 1)


def _kept(node: TraceNode) -> AxisMap:
    return tuple(k for k in range(node.ins[0].aval.ndim) if k not in node.attr("axis"))


def _are_few(shape: Shape, gone: AxisMap) -> bool:
    few = prod(shape[k] for k in gone)
    return 0 < few <= MAX_PIECES and prod(shape) // few >= LEAST_PIECE


def _has_loops(shape: Shape, gone: AxisMap) -> bool:
    """Whether the axes ``gone`` of an operand of ``shape`` are rows, columns or both, or rows that are the lanes of vectors."""
    real = [k for k, n in enumerate(shape) if n != 1]
    kept = [k for k in real if k not in gone]
    if not gone or not kept:
        return True
    if kept == real[real.index(kept[0]) :][: len(kept)]:
        return True  # what is reduced lies before and behind
    together = list(gone) == real[real.index(gone[0]) :][: len(gone)]
    return together and prod(shape[gone[-1] + 1 :]) >= MIN_LANES


def _is_short_row(node: TraceNode) -> bool:
    """Whether ``node`` reduces trailing axes, short ones."""
    shape, gone = node.ins[0].aval.shape, _gone(node)
    kept = [k for k, n in enumerate(shape) if n != 1 and k not in gone]
    return bool(gone and kept) and kept[-1] < gone[0] and _are_few(shape, gone)
