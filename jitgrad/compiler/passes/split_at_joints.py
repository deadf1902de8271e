"""Computes elementwise results box by box where their operands are joined from parts.

``roll(u, 1, 0)`` is two slices of ``u`` in one array. As a whole it has to be written to memory
before a kernel can read it. In a box of the result that lies in one part of each operand, every
operand is a slice, which a kernel reads where it lies. The boxes of a stencil are its interior and
its thin edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod

import numpy as np

from jitgrad.compiler.compiler_ops import IDENTITY, INSERT_SLICES, OFFSET_READ, Index
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.passes.slices import uncovered
from jitgrad.compiler.passes.unroll_reductions import combined
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.movement import BROADCAST_TO, SLICE, SQUEEZE

_FEW = 8  # times fewer elements, for which a whole is not worth writing
_MAX_ROUNDS = 4  # of finding what is read as a whole, and what then is

_Cuts = tuple[frozenset[int], ...]  # per axis, where parts meet
_Box = Index  # with steps of 1


def split_at_joints(graph: Graph, tuning: Tuning) -> Graph:
    """``f(insert_slices(a, b), c)`` becomes ``f(a, c[:k])`` and ``f(b, c[k:])``, written to one array.

    Only values without gaps count: those of zeros would give boxes with other ops, each a kernel of its own. A joined
    value that is in memory anyway gives no boxes, and small arrays do not either: a kernel over an edge takes longer.
    """
    if not any(node.op is INSERT_SLICES for node in graph.nodes):
        return graph
    regions = _regions(graph, tuning)
    if not regions.boxes:
        return graph
    new = _Splitter(graph, regions)
    for node in new.visit():
        new.place(node)
    return eliminate_dead(new.graph())


def _regions(graph: Graph, tuning: Tuning) -> _Regions:
    """The regions of joined values that nothing else reads: the others are in memory anyway."""
    whole = frozenset[Atom]()
    for _ in range(_MAX_ROUNDS):
        regions = _Regions(graph, tuning, whole)
        more = regions.read_whole()
        if not regions.boxes or more <= whole:
            return regions
        whole |= more
    return regions


class _Regions:
    """Connected elementwise nodes of one shape that read joined values, but for the values ``whole``.

    Attributes:
        boxes: by node, the boxes in which it is computed; the same for all nodes of a region.
    """

    def __init__(self, graph: Graph, tuning: Tuning, whole: frozenset[Atom]) -> None:
        self.graph = graph
        self.tuning = tuning
        self.whole = whole
        self.cuts: dict[Value, _Cuts] = {}
        self.joined: set[Atom] = set()  # that are nothing but slices side by side
        self._parent: dict[TraceNode, TraceNode] = {}
        for node in graph.nodes:
            self._add(node)
        for node in reversed(graph.nodes):
            self._add_producer(node)
        cuts: dict[TraceNode, _Cuts] = {}
        for node in self._parent:
            root, own = self._root(node), self.cuts.get(node.out, _none(node.out.aval.shape))
            cuts[root] = _union(cuts.get(root, _none(node.out.aval.shape)), own)
        self._saved, self._size = Counter[TraceNode](), Counter[TraceNode]()
        self._at_offsets: set[TraceNode] = set()  # regions
        self._measure()
        split = {root: _boxes(root.out.aval.shape, found) for root, found in cuts.items() if self._pays(root, found)}
        self.boxes = {node: split[root] for node in self._parent if (root := self._root(node)) in split}

    def read_whole(self) -> frozenset[Atom]:
        """The joined values that a node outside the boxes reads, itself or by a large slice, or that are results."""
        outputs, read = set(self.graph.outputs), set[Atom]()
        for node in reversed(self.graph.nodes):
            if node.outs[0] in self.joined:
                users = self.graph.users(node.outs[0])
                if node.outs[0] in outputs or any(user not in self.boxes and not self._is_unread(user, read) for user in users):
                    read.add(node.outs[0])
        return frozenset(read)

    def _is_unread(self, node: TraceNode, read: set[Atom]) -> bool:
        """Whether the result of ``node`` is joined too, and not read as a whole, or is a small part."""
        if node.op is SLICE and _FEW * node.out.aval.size <= node.ins[0].aval.size:
            return True
        return node.outs[0] in self.joined and node.outs[0] not in read

    def _pays(self, root: TraceNode, cuts: _Cuts) -> bool:
        count = prod(len(axis) + 1 for axis in cuts)
        if not 1 < count <= self.tuning.max_boxes or root.out.aval.size < self.tuning.min_split_elements:
            return False
        if root in self._at_offsets:
            return False
        kernels = 1 + self._size[root] // self.tuning.max_kernel_nodes
        return self._saved[root] >= (count - 1) * kernels * self.tuning.box_bytes

    def _measure(self) -> None:
        """Count the ops of each region, and the bytes of the joined values that it reads, which are written and read.

        A region that reads at offsets is one kernel already, and most often the next step reads its result so: in boxes it
        would be several kernels that write this whole, and read the joined values no less.
        """
        for node in self._parent:
            root = self._root(node)
            self._size[root] += 1
            if any(isinstance(a, Value) and _is_offset_read(self.graph.producer(a)) for a in node.ins):
                self._at_offsets.add(root)
        for value in self.joined:
            for root in {self._root(user) for user in self._readers(value) if user in self._parent}:
                self._saved[root] += 2 * value.aval.nbytes

    def _readers(self, value: Atom) -> Iterator[TraceNode]:
        """The nodes that read the join ``value``, itself or by slices; none for what is no join."""
        node = self.graph.producer(value)
        if node is not None and node.op is INSERT_SLICES:
            waiting = list(self.graph.users(node.out))
            for user in waiting:
                if user.op is not INSERT_SLICES and user.outs[0] in self.joined:
                    waiting += self.graph.users(user.outs[0])
                else:
                    yield user

    def _add(self, node: TraceNode) -> None:
        source = node.ins[0] if node.ins else None
        if node.outs[0] in self.whole:
            return
        if node.op is INSERT_SLICES and _is_joined(node):
            self.cuts[node.out] = _cuts_of_join(node, [self.cuts.get(a) for a in node.ins if isinstance(a, Value)])
            self.joined.add(node.out)
        elif isinstance(source, Value) and source in self.joined and node.op is IDENTITY:
            self.cuts[node.out] = self.cuts[source]
            self.joined.add(node.out)
        elif isinstance(source, Value) and source in self.joined and _is_plain_slice(node):
            self.cuts[node.out] = _cuts_of_slice(node, self.cuts[source])
            self.joined.add(node.out)
        elif node.op.kind is Kind.ELEMENTWISE and len(node.outs) == 1:
            values = [a for a in node.ins if isinstance(a, Value) and a.aval.shape == node.out.aval.shape]
            own = [self.cuts[a] for a in values if a in self.cuts]
            if not own:
                return
            self._parent[node] = node
            self.cuts[node.out] = own[0]
            for more in own[1:]:
                self.cuts[node.out] = _union(self.cuts[node.out], more)
            for atom in node.ins:
                producer = self.graph.producer(atom) if isinstance(atom, Value) else None
                if producer in self._parent and producer.out.aval.shape == node.out.aval.shape:
                    self._parent[self._root(producer)] = self._root(node)

    def _add_producer(self, node: TraceNode) -> None:
        """Take in a node that only nodes of regions read, which become one: it would be their only operand in memory."""
        if node.op.kind is not Kind.ELEMENTWISE or node in self._parent or len(node.outs) > 1:
            return
        users = self.graph.users(node.out)
        same = all(user in self._parent and user.out.aval.shape == node.out.aval.shape for user in users)
        if users and same and node.out not in self.graph.outputs:
            self._parent[node] = self._root(users[0])
            for user in users[1:]:
                self._parent[self._root(user)] = self._root(node)

    def _root(self, node: TraceNode) -> TraceNode:
        while (parent := self._parent[node]) is not node:
            node = parent
        return node


class _Splitter(Rewriter):
    def __init__(self, graph: Graph, regions: _Regions) -> None:
        super().__init__(graph)
        self.regions = regions
        self.old = {node.out: node for node in regions.boxes}
        self.clones: dict[tuple[Value, _Box], Atom] = {}  # of old values

    def place(self, node: TraceNode) -> None:
        boxes = self.regions.boxes.get(self.source.producer(node.outs[0]) or node)
        if boxes is None:
            if not (self._reduce(node) or self._cut(node)):
                self.keep(node)
            return
        parts = []
        for box in boxes:
            shape = tuple(n for _, _, n in box)
            ins = [self.part(atom, box, node.out.aval.shape) for atom in node.ins]
            if np.broadcast_shapes(*[atom.aval.shape for atom in ins]) != shape:
                ins[0] = self.emit(BROADCAST_TO, ins[0], shape=shape)
            parts.append(self.emit(node.op, *ins, **dict(node.attrs)))
            self.clones[node.out, box] = parts[-1]
        if self._is_needed_whole(node.out):
            self.define(node.out, INSERT_SLICES, *parts, indices=tuple(boxes), shape=node.out.aval.shape)

    def _is_needed_whole(self, value: Value) -> bool:
        users = self.source.users(value)
        return value in self.source.outputs or not all(u in self.regions.boxes or _reduces_all(u) for u in users)

    def _reduce(self, node: TraceNode) -> bool:
        """Reduce the boxes of an operand that exists in boxes alone."""
        region = self.old.get(node.ins[0]) if node.ins and isinstance(node.ins[0], Value) else None
        if region is None or not _reduces_all(node):
            return False
        boxes = self.regions.boxes[region]
        parts = [self._reduced(node, self.clones[region.out, box]) for box in boxes]
        self.replace(node.out, combined(self, node, parts))
        return True

    def _cut(self, node: TraceNode) -> bool:
        """Read a small part of a joined value from what that is joined of: the whole may not be needed."""
        old = self.source.producer(node.outs[0])
        if old is None or not _is_plain_slice(old) or _FEW * old.out.aval.size > old.ins[0].aval.size or not old.out.aval.size:
            return False
        source = self.source.producer(old.ins[0])
        if source is None or source.op is not INSERT_SLICES or not _is_joined(source):
            return False
        self.replace(node.out, self.sliced(old.ins[0], old.attr("index")))
        return True

    def _reduced(self, node: TraceNode, part: Atom) -> Atom:
        """The reduction ``node`` of one box; no pass after this one expects reductions of axes of length 1."""
        ones = tuple([k for k, n in enumerate(part.aval.shape) if n == 1])
        part = self.emit(SQUEEZE, part, axis=ones) if ones else part
        attrs = dict(node.attrs, axis=tuple(range(part.aval.ndim)))
        return self.emit(node.op, part, **attrs) if part.aval.ndim else part

    def part(self, atom: Atom, box: _Box, shape: Shape) -> Atom:
        """``box`` of ``atom`` as an operand of an elementwise op with results of ``shape``."""
        if isinstance(atom, Literal) or not atom.aval.shape:
            return atom
        own, missing = atom.aval.shape, len(shape) - len(atom.aval.shape)
        along = zip(box[missing:], own, shape[missing:], strict=True)
        return self.sliced(atom, tuple([entry if n == m else (0, 1, 1) for entry, n, m in along]))

    def sliced(self, atom: Atom, box: _Box) -> Atom:
        """``box`` of ``atom``: a slice of the value that it is part of."""
        if isinstance(atom, Literal) or (atom, box) in self.clones:
            return self.clones[atom, box] if isinstance(atom, Value) else atom
        node = self.source.producer(atom)
        if all(entry == (0, 1, n) for entry, n in zip(box, atom.aval.shape, strict=True)):
            return self.current(atom)
        if node is not None and node.op is INSERT_SLICES and atom in self.regions.joined:
            for part, index in zip(node.ins, node.attr("indices"), strict=True):
                if all(start <= a and a + n <= start + m for (start, _, m), (a, _, n) in zip(index, box, strict=True)):
                    return self.sliced(part, tuple([(a - i[0], 1, n) for i, (a, _, n) in zip(index, box, strict=True)]))
        if node is not None and node.op is IDENTITY and node not in self.regions.boxes:
            return self.sliced(node.ins[0], box)
        if node is not None and _is_plain_slice(node):
            index = node.attr("index")
            return self.sliced(node.ins[0], tuple([(i[0] + a, 1, n) for i, (a, _, n) in zip(index, box, strict=True)]))
        if node is not None and node.op is INSERT_SLICES and _is_joined(node) and _FEW * prod(_lengths(box)) <= atom.aval.size:
            parts = [(self.sliced(part, own), at) for part, own, at in _meeting(node, box)]
            self.clones[atom, box] = part = self.emit(
                INSERT_SLICES, *[p for p, _ in parts], indices=tuple([at for _, at in parts]), shape=_lengths(box)
            )
        else:
            self.clones[atom, box] = part = self.emit(SLICE, self.current(atom), index=box)
        return part


def _lengths(box: _Box) -> Shape:
    return tuple([n for _, _, n in box])


def _meeting(node: TraceNode, box: _Box) -> Iterator[tuple[Atom, _Box, _Box]]:
    """The parts of the joined ``node`` that ``box`` has elements of: which of them, and where in the box."""
    for part, index in zip(node.ins, node.attr("indices"), strict=True):
        spans = [(max(a, start), min(a + n, start + m)) for (start, _, m), (a, _, n) in zip(index, box, strict=True)]
        if all(first < stop for first, stop in spans):
            own = tuple([(first - start, 1, stop - first) for (first, stop), (start, _, _) in zip(spans, index, strict=True)])
            yield part, own, tuple([(first - a, 1, stop - first) for (first, stop), (a, _, _) in zip(spans, box, strict=True)])


def _is_joined(node: TraceNode) -> bool:
    """Whether ``node`` is nothing but parts side by side."""
    indices: Sequence[Index] = node.attr("indices")
    return not uncovered(node.out.aval.shape, indices) and all(step == 1 for i in indices for _, step, _ in i)


def _is_offset_read(node: TraceNode | None) -> bool:
    return node is not None and node.op is OFFSET_READ


def _is_plain_slice(node: TraceNode) -> bool:
    return node.op is SLICE and all(step == 1 for _, step, _ in node.attr("index"))


def _reduces_all(node: TraceNode) -> bool:
    return node.op.kind is Kind.REDUCE and node.op.monoid is not None and len(node.outs) == 1 and node.out.aval.shape == ()


def _none(shape: Shape) -> _Cuts:
    return (frozenset[int](),) * len(shape)


def _union(a: _Cuts, b: _Cuts) -> _Cuts:
    return tuple(x | y for x, y in zip(a, b, strict=True))


def _cuts_of_join(node: TraceNode, inner: Sequence[_Cuts | None]) -> _Cuts:
    shape = node.out.aval.shape
    cuts: list[set[int]] = [set() for _ in shape]
    for index, own in zip(node.attr("indices"), inner, strict=True):
        for k, (start, _, n) in enumerate(index):
            cuts[k] |= {start, start + n, *(start + place for place in (own[k] if own else ()))}
    return tuple(frozenset(c for c in places if 0 < c < n) for places, n in zip(cuts, shape, strict=True))


def _cuts_of_slice(node: TraceNode, whole: _Cuts) -> _Cuts:
    entries = zip(node.attr("index"), whole, strict=True)
    return tuple(frozenset(c - start for c in places if start < c < start + n) for (start, _, n), places in entries)


def _boxes(shape: Shape, cuts: _Cuts) -> list[_Box]:
    spans = [list(pairwise([0, *sorted(places), n])) for places, n in zip(cuts, shape, strict=True)]
    return [tuple((a, 1, b - a) for a, b in box) for box in product(*spans)]
