"""Chooses the short axes along which values are computed piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitgrad.compiler.cost import LEAST_GATHERED, expensive
from jitgrad.compiler.fusion.axis_maps import NONE, AxisMap, Definitions
from jitgrad.compiler.passes.axis_unroller import AxisUnroller, aligned, is_disjoint_fold, is_divisible
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Aval, Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.convolution import UNFOLD
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import BROADCAST_TO, RESHAPE

_PAIR = 2  # axes that a sum over points keeps

Axis = tuple[Atom | TraceNode, int]  # a value, or the node that reduces it; the axis there
_ShortRow = tuple[frozenset[Axis], frozenset[Axis]]  # the axes that a reduction reduces, and those that it keeps


def unroll_axes(graph: Graph, tuning: Tuning) -> Graph:
    """``max(x, axis=(1, 3))`` of ``x[n,2,m,2]`` becomes ``maximum`` of four slices ``x[:, i, :, j]``.

    Likewise ``sum(d * d, axis=2)`` of ``d[n,n,3]``, with all values that have this axis, if another sum is over one of the
    other axes: no loop nest has reductions over several of its axes. The loops are then over the other axes. So are those of
    up to four coordinates of points, which vectors hold better than rows so short.
    """
    if not any(node.op.kind is Kind.REDUCE or node.op is BROADCAST_TO for node in graph.nodes):
        return graph
    if not any(1 < n <= tuning.max_pieces for node in graph.nodes for v in (*node.ins, *node.outs) for n in v.aval.shape):
        return graph
    axes = _Axes(graph, tuning)
    if not (cut := axes.chosen()):
        return graph

    def is_cut(value: Value, k: int) -> bool:
        return axes.find((value, k)) in cut

    def is_cut_in(node: TraceNode, k: int) -> bool:
        return axes.find((node, k)) in cut

    return AxisUnroller(graph, is_cut, is_cut_in, axes.repeated).run()


class _Axes:
    """The axes of all values that loops compute; axes along which one loop would run are the same axis."""

    def __init__(self, graph: Graph, tuning: Tuning) -> None:
        self.tuning = tuning
        self.nodes = [node for node in graph.nodes if is_divisible(node)]
        unfolded = [node.out for node in graph.nodes if node.op is UNFOLD]
        self.computed: set[Atom] = {*[node.out for node in self.nodes], *unfolded}
        self.parent: dict[Axis, Axis] = {}
        for node in self.nodes:
            self.connect(node)
        self.windows = {self.find((v, k)) for v in unfolded for k in (v.aval.ndim - 4, v.aval.ndim - 3)}
        self.graph, self.definitions = graph, Definitions(graph)
        self.repeated: set[Atom] = {  # arrays of which every element is read for many elements of some result
            read.root
            for node in self.nodes
            if node.op.kind is Kind.ELEMENTWISE
            for read in self.definitions.reads(node)
            if read.root.aval.size * tuning.repeated_reads <= node.out.aval.size
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
                self.join((out, k), (node, axis))
            maps = [tuple(range(node.ins[0].aval.ndim))]
        else:
            maps = [() if isinstance(a, Literal) else aligned(node, k) for k, a in enumerate(node.ins)]
        loop, _ = self.loop(node)
        for atom, axes in zip(node.ins, maps, strict=True):
            if atom in self.computed:
                for k, axis in enumerate(axes):
                    if axis != NONE and atom.aval.shape[k] != 1:
                        self.join((atom, k), (loop, axis))

    def chosen(self) -> set[Axis]:
        """The axes to cut."""
        cut, streamed, joined = set[Axis](), self.streamed(), self.joined()
        rows = _ShortRows()  # that values depend on
        for node in self.nodes:
            before = rows.behind(node.ins)
            if node.op.kind is Kind.REDUCE:
                gone = self.reduced(node)
                cut |= self.wanted(node, rows.any_cut(before, cut))
                for reduced in rows.split(before, gone):
                    cut |= reduced
                cut |= {axis for axis in joined.intersection(self.axes(node)) if self.is_few(node, axis)}
                if self.has_short_columns(node):
                    cut |= {self.find((node, k)) for k in _kept(node)} - streamed
                if self.is_short_row(node):
                    if gone.isdisjoint(streamed):
                        cut |= gone | (self.interleaved(node.out) - streamed)
                    before |= rows.add(gone, self.kept(node))
            elif before and rows.any_cut(before, cut):
                cut |= self.interleaved(node.out) - streamed
            if before:
                rows.of[node.out] = before
        for atom in self.stored():
            cut |= self.repeating(atom)
        for node in self.graph.nodes:
            if is_disjoint_fold(node):
                (x,) = node.ins
                cut |= {self.find((x, k)) for k in (x.aval.ndim - 4, x.aval.ndim - 3)}
        return self.affordable(cut - self.counted()) if cut else cut

    def counted(self) -> set[Axis]:
        """The axes of large arrays of positions, which would have to be stored to be read in pieces."""
        found = set[Axis]()
        for node in self.nodes:
            for read in self.definitions.reads(node) if not node.op.renames else ():
                producer = self.graph.producer(read.root)
                if producer is not None and producer.op.kind is Kind.INDEX and read.root not in self.repeated:
                    found |= {self.find((self.loop(node)[0], k)) for k in read.dims if k != NONE}
        return found

    def stored(self) -> list[Atom]:
        """The values that must be in memory element by element: results, and operands of reshapes."""
        return [*self.graph.outputs, *(node.ins[0] for node in self.graph.nodes if node.op is RESHAPE)]

    def repeating(self, atom: Atom) -> set[Axis]:
        """The short axes along which ``atom`` repeats elements, if its last axis is one: a loop reads one, writes several."""
        root, dims = self.definitions.resolve(atom)
        shape = atom.aval.shape
        gone = tuple(k for k, n in enumerate(shape) if k not in dims and n != 1)
        real = [k for k, n in enumerate(shape) if n != 1]
        if not gone or gone[-1] != real[-1] or not self.are_few(shape, gone):
            return set()
        if list(gone) == real[len(real) - len(gone) :] and self.is_costly(root):
            return set()
        return {self.find((atom, k)) for k in gone}

    def streamed(self) -> set[Axis]:
        """The axes along which large arrays are read or written: the elements of a piece are apart in memory.

        A kernel assembles vectors of such pieces one element at a time; transposing whole rows to lanes is faster, but for
        few pieces that are interleaved.
        """
        largest: dict[Axis, int] = {}
        seen: list[tuple[Axis, int]] = []
        for node in self.nodes:
            loop, shape = self.loop(node)
            for k in range(len(shape)):
                axis = self.find((loop, k))
                largest[axis] = max(largest.get(axis, 0), prod(shape))
            if not node.op.renames:
                for root, dims in self.definitions.reads(node):
                    if root not in self.computed:
                        far = [k for k, is_far in zip(dims, self.far_apart(root.aval), strict=True) if is_far and k != NONE]
                        seen += [(self.find((loop, k)), root.aval.size) for k in far]
        needed: list[Atom] = [a for node in self.graph.nodes if not is_divisible(node) for a in node.ins]
        for atom in (*needed, *self.graph.outputs):
            seen += [(self.find((atom, k)), atom.aval.size) for k, is_far in enumerate(self.far_apart(atom.aval)) if is_far]
        return {axis for axis, size in seen if size * self.tuning.repeated_reads > largest.get(axis, 0)}

    def interleaved(self, value: Value) -> set[Axis]:
        """The axis of ``value`` along which pieces are interleaved, if there is one.

        Where a loop over points reduces the coordinates of each, what is computed of them with the result is, too.
        """
        near = [k for k, is_far in enumerate(self.far_apart(value.aval)) if not is_far]
        return {self.find((value, k)) for k in near if self.are_few(value.aval.shape, (k,))}

    def far_apart(self, aval: Aval) -> list[bool]:
        """For each axis of an array in order: False if the pieces along it are interleaved, and few.

        Kernels read and write these as one array, by shuffles of whole vectors.
        """
        if aval.dtype.itemsize < LEAST_GATHERED:
            return [True] * aval.ndim
        most, shape = self.tuning.interleaved_pieces, aval.shape
        return [not (1 < n <= most and prod(shape[k + 1 :]) == 1) for k, n in enumerate(shape)]

    def loop(self, node: TraceNode) -> tuple[Value | TraceNode, Shape]:
        """The node or value whose axes are those of ``node``'s loop, and their lengths."""
        if node.op.kind is Kind.REDUCE:
            return node, node.ins[0].aval.shape
        return node.out, node.out.aval.shape

    def is_costly(self, atom: Atom) -> bool:
        """Whether costly functions compute ``atom``: stores to elements that are apart would prevent vectorising them."""
        work, visited = [atom], set[Atom]()
        while work:
            producer = self.graph.producer(work[-1])
            visited.add(work.pop())
            if producer is not None and (producer.op.renames or producer.op.kind is Kind.ELEMENTWISE):
                if producer.op.kind is Kind.ELEMENTWISE and expensive(producer.op):
                    return True
                work += [a for a in producer.ins if a not in visited]
        return False

    def reduced(self, node: TraceNode) -> set[Axis]:
        return {self.find((node, k)) for k in _gone(node)}

    def wanted(self, node: TraceNode, of_pieces: bool) -> set[Axis]:
        """The axes to cut because no loop nest, or no vectorised one, reduces as ``node`` does.

        ``of_pieces``: it reduces what another reduction makes of pieces, with which a loop over few more pieces can go on.
        """
        shape, gone = node.ins[0].aval.shape, _gone(node)
        windows = bool(gone) and self.reduced(node) <= self.windows
        if self.has_loops(shape, gone) and not windows:
            return set()
        behind = tuple(range(gone[-1] + 1, len(shape)))
        near = prod(shape[k] for k in behind)  # rows that are neighbours in memory
        many = prod(shape[k] for k in gone) > self.tuning.max_pieces
        lanes = near >= (self.tuning.min_packed_rows if many and _together(shape, gone) else self.tuning.min_row_lanes)
        if many and not lanes and near < self.tuning.min_lanes:
            gone = behind
        elif lanes and not windows and (many or not of_pieces):
            return set()  # rows are the lanes of vectors
        return {self.find((node, k)) for k in gone} if self.are_few(shape, gone) else set()

    def joined(self) -> set[Axis]:
        """The axes along which arrays are joined of parts of one element, as ``stack`` does, for nothing but loops.

        The parts need not be in memory where reductions are in pieces along such an axis.
        """
        whole = [*self.graph.outputs, *(a for node in self.graph.nodes if not is_divisible(node) for a in node.ins)]
        stored = {self.definitions.resolve(a).root for a in whole}
        found = set[Axis]()
        for node in self.nodes:
            for read in self.definitions.reads(node) if not node.op.renames else ():
                producer = self.graph.producer(read.root)
                if producer is not None and producer.op is CONCAT and read.root not in stored:
                    axis = producer.attr("axis")
                    if read.dims[axis] != NONE and all(part.aval.shape[axis] == 1 for part in producer.ins):
                        found.add(self.find((self.loop(node)[0], read.dims[axis])))
        return found

    def axes(self, node: TraceNode) -> list[Axis]:
        """The axes of the loop of ``node``, in order."""
        loop, shape = self.loop(node)
        return [self.find((loop, k)) for k in range(len(shape))]

    def is_few(self, node: TraceNode, axis: Axis) -> bool:
        """Whether the loop of ``node`` may be cut along ``axis``."""
        return self.are_few(self.loop(node)[1], (self.axes(node).index(axis),))

    def kept(self, row: TraceNode) -> set[Axis]:
        """The axes that the reduction ``row`` keeps, but for those of length 1."""
        return {self.find((row, k)) for k in _kept(row) if row.ins[0].aval.shape[k] != 1}

    def affordable(self, cut: set[Axis]) -> set[Axis]:
        """``cut`` without axes along which values would be cut into too many or too small pieces."""
        total = 0
        for node in self.nodes:
            key, shape = self.loop(node)
            own = [k for k in range(len(shape)) if shape[k] != 1 and self.find((key, k)) in cut]
            pieces = prod(shape[k] for k in own)
            total += pieces if own else 0
            if pieces > self.tuning.max_pieces:
                cut -= {self.find((key, k)) for k in own}
        return cut if total <= self.tuning.max_unrolled_nodes else set()

    def are_few(self, shape: Shape, gone: AxisMap) -> bool:
        few = prod(shape[k] for k in gone)
        return 0 < few <= self.tuning.max_pieces and prod(shape) // few >= self.tuning.min_piece

    def has_loops(self, shape: Shape, gone: AxisMap) -> bool:
        """Whether a loop nest reduces the axes ``gone`` of ``shape``: rows, columns or both, or rows that fill vectors."""
        real = [k for k, n in enumerate(shape) if n != 1]
        kept = [k for k in real if k not in gone]
        if not gone or not kept:
            return True
        if kept == real[real.index(kept[0]) :][: len(kept)]:
            return True  # the reduced axes are before and behind the kept ones
        return _together(shape, gone) and prod(shape[gone[-1] + 1 :]) >= self.tuning.min_lanes

    def has_short_columns(self, node: TraceNode) -> bool:
        """Whether ``node`` reduces many points to a few numbers for each coordinate, or pair of coordinates."""
        shape, gone, most = node.ins[0].aval.shape, _gone(node), self.tuning.interleaved_pieces
        kept = [k for k, n in enumerate(shape) if n != 1 and k not in gone]
        if not gone or not kept or kept[0] < gone[-1] or prod(shape[k] for k in gone) < self.tuning.min_points:
            return False
        return len(kept) <= _PAIR and all(shape[k] <= most for k in kept) and self.are_few(shape, tuple(kept))

    def is_short_row(self, node: TraceNode) -> bool:
        """Whether ``node`` reduces short trailing axes."""
        shape, gone = node.ins[0].aval.shape, _gone(node)
        kept = [k for k, n in enumerate(shape) if n != 1 and k not in gone]
        return bool(gone and kept) and kept[-1] < gone[0] and self.are_few(shape, gone)


class _ShortRows:
    """The reductions of short rows that values depend on, as bit sets; those over the same axes have one bit.

    All turns of an unrolled loop reduce the same axes, or each its own: sets of reductions would take the square of them.

    Attributes:
        of: the reductions behind each value that has any.
    """

    def __init__(self) -> None:
        self.of: dict[Atom, int] = {}
        self._rows: list[_ShortRow] = []
        self._bits: dict[_ShortRow, int] = {}
        self._keeping, self._reducing = dict[Axis, int](), dict[Axis, int]()
        self._cut, self._cut_axes = 0, set[Axis]()

    def behind(self, operands: Sequence[Atom]) -> int:
        before = 0
        for atom in operands:
            before |= self.of.get(atom, 0)
        return before

    def add(self, gone: set[Axis], kept: set[Axis]) -> int:
        """The bit of a reduction of the axes ``gone`` that keeps those ``kept``."""
        key = frozenset(gone), frozenset(kept)
        if key not in self._bits:
            bit = self._bits[key] = 1 << len(self._rows)
            self._rows.append(key)
            self._cut |= bit if gone <= self._cut_axes else 0
            for axes, users in ((kept, self._keeping), (gone, self._reducing)):
                for axis in axes:
                    users[axis] = users.get(axis, 0) | bit
        return self._bits[key]

    def any_cut(self, before: int, cut: set[Axis]) -> bool:
        """Whether one of ``before`` reduces nothing but axes in ``cut``, which only grows."""
        if len(cut) != len(self._cut_axes):
            new, self._cut_axes = cut - self._cut_axes, set(cut)
            touched = 0
            for axis in new:
                touched |= self._reducing.get(axis, 0)
            for row in self._among(touched & ~self._cut):
                self._cut |= self._bits[row] if row[0] <= cut else 0
        return bool(before & self._cut)

    def split(self, before: int, gone: set[Axis]) -> list[frozenset[Axis]]:
        """The axes that those of ``before`` reduce of whose kept axes a reduction of ``gone`` takes some, but not all."""
        among = 0
        for axis in gone:
            among |= self._keeping.get(axis, 0)
        return [reduced for reduced, kept in self._among(among & before) if not kept <= gone]

    def _among(self, bits: int) -> list[_ShortRow]:
        found = []
        while bits:
            found.append(self._rows[bits.bit_length() - 1])
            bits ^= 1 << bits.bit_length() - 1
        return found


def _gone(node: TraceNode) -> AxisMap:
    shape = node.ins[0].aval.shape
    return tuple(k for k in sorted(node.attr("axis")) if shape[k] != 1)


def _together(shape: Shape, gone: AxisMap) -> bool:
    """Whether the axes ``gone`` follow each other, but for axes of length 1."""
    real = [k for k, n in enumerate(shape) if n != 1]
    return list(gone) == real[real.index(gone[0]) :][: len(gone)]


def _kept(node: TraceNode) -> AxisMap:
    return tuple(k for k in range(node.ins[0].aval.ndim) if k not in node.attr("axis"))
