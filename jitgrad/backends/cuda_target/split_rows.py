"""Cuts long rows that are reduced into parts, where there are too few of them to keep a device busy."""

from __future__ import annotations

from collections.abc import Iterable
from math import log2, prod
from typing import NamedTuple

from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Shape
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.movement import BROADCAST_TO, EXPAND_DIMS, PERMUTE_DIMS, RESHAPE, SLICE, SQUEEZE

_MIN_PART = 1024  # elements of a part: one warp's row
_MIN_PARTS = 4  # fewer gain less than the kernels that merge them cost
_ALIGNED = 8  # elements; parts of multiples of it start where vectors may
_VIEWS = frozenset({PERMUTE_DIMS, SLICE, EXPAND_DIMS, SQUEEZE, RESHAPE, BROADCAST_TO})


class _Cut(NamedTuple):
    """Arrays of ``shape`` are reduced along ``axis`` and all axes behind it, of which ``parts`` pieces are to be made."""

    shape: Shape
    axis: int
    parts: int

    @property
    def whole(self) -> bool:
        """Whether each position along the axis is a part: then shapes stay."""
        return self.parts == self.shape[self.axis]

    def ends(self, node: TraceNode) -> bool:
        """Whether ``node`` is a reduction along these axes."""
        if node.op.kind is not Kind.REDUCE or node.op.monoid is None or node.ins[0].aval.shape != self.shape:
            return False
        return tuple(sorted(node.attr("axis"))) == tuple(range(self.axis, len(self.shape)))


def split_long_rows(graph: Graph, tuning: Tuning) -> Graph:
    """Where few long rows are reduced, compute their elements and sums in parts, and merge the parts in their order.

    A block runs one row, so 8 rows of 65,536 elements keep 8 blocks busy. ``sum(x, axis=1)`` of them becomes
    ``sum(sum(reshape(x, (8, 64, 1024)), axis=2), axis=1)``, the first of which has 512 rows. Elementwise ops on such
    arrays follow, so that they share kernels with the sums. Each sum of softmax or of a normalisation is a kernel over all
    elements then, and a second one, small. A block reads its row for each sum as well, as it cannot hold it.
    """
    if not tuning.max_split_rows:
        return graph
    reductions = [node for node in graph.nodes if node.op.kind is Kind.REDUCE and is_fusible(node)]
    for shape in dict.fromkeys(node.ins[0].aval.shape for node in reductions):
        cut = _cut_of(shape, [node for node in reductions if node.ins[0].aval.shape == shape], tuning)
        if cut is not None:
            graph = _reduce_in_parts(graph, cut) if cut.whole else _Splitter(graph, cut).run()
    return graph


def _cut_of(shape: Shape, reductions: Iterable[TraceNode], tuning: Tuning) -> _Cut | None:
    """How the reductions of arrays of ``shape`` are to be cut; None if their rows are short or many, or have no fit."""
    for node in reductions:
        axes = tuple(sorted(node.attr("axis")))
        rows, length = prod(shape[: axes[0]]), prod(shape[axes[0] :])
        if not axes[0] or axes != tuple(range(axes[0], len(shape))) or node.op.monoid is None:
            continue
        if rows > tuning.max_split_rows or length < tuning.min_split_row:
            continue
        n = shape[axes[0]]
        fits = [p for p in range(_MIN_PARTS, n + 1) if n % p == 0 and length // p >= _MIN_PART]
        aligned = [p for p in fits if length // p % _ALIGNED == 0]
        if fits:
            wanted = tuning.max_merged_blocks / rows
            return _Cut(shape, axes[0], min(aligned or fits, key=lambda p: abs(log2(p / wanted))))
    return None


def _in_two_steps(new: Rewriter, node: TraceNode, operand: Atom, cut: _Cut, behind: int) -> None:
    """The reduction ``node`` of ``operand``: first along ``behind`` axes behind the parts, then over the parts."""
    parts = new.emit(node.op, operand, axis=tuple(range(cut.axis + 1, cut.axis + 1 + behind)))
    new.define(node.out, node.op, parts, axis=(cut.axis,))


def _reduce_in_parts(graph: Graph, cut: _Cut) -> Graph:
    new = Rewriter(graph)
    for node in new.visit():
        if cut.ends(node):
            _in_two_steps(new, node, node.ins[0], cut, len(cut.shape) - cut.axis - 1)
        else:
            new.keep(node)
    return new.graph()


class _Splitter(Rewriter):
    """Gives the arrays of ``cut.shape`` that lead to its reductions, or come from them, one axis more."""

    def __init__(self, graph: Graph, cut: _Cut) -> None:
        super().__init__(graph)
        self.cut = cut
        n = cut.shape[cut.axis]
        self.pieces: Shape = (cut.parts, n // cut.parts)
        self.shape: Shape = self._split_shape(cut.shape)
        self.members = self._connected()
        outside = [atom for node in graph.nodes if node not in self.members for atom in node.ins]
        self.needed: set[Atom] = {*outside, *graph.outputs}
        self._split: dict[Atom, Atom] = {}

    def run(self) -> Graph:
        """The new program."""
        if not any(map(self.cut.ends, self.members)):
            return self.source
        old = dict(zip((node.outs for node in self.source.nodes), self.source.nodes, strict=True))
        for node in self.visit():
            if old[node.outs] not in self.members:
                self.keep(node)
            elif node.op.kind is Kind.REDUCE:
                self._reduce(node)
            else:
                self._elementwise(node)
        return self.graph()

    def _connected(self) -> set[TraceNode]:
        """The nodes over arrays of the shape, without those that share arrays with nodes whose form would be lost."""
        shape, nodes = self.cut.shape, [node for node in self.source.nodes if self._may_split(node)]
        group: dict[Atom, int] = {}
        nodes_of: dict[int, list[TraceNode]] = {}
        values_of: dict[int, list[Atom]] = {}
        for k, node in enumerate(nodes):
            nodes_of[k], values_of[k] = [node], []
            for atom in (*node.ins, *node.outs):
                if not isinstance(atom, Value) or atom.aval.shape != shape:
                    continue
                other = group.get(atom, k)
                if other != k:  # merge the earlier group into this one
                    nodes_of[k] += nodes_of.pop(other)
                    moved = values_of.pop(other)
                    values_of[k] += moved
                    group.update(dict.fromkeys(moved, k))
                elif atom not in group:
                    group[atom] = k
                    values_of[k].append(atom)
        producers: dict[Atom, TraceNode] = {out: node for node in self.source.nodes for out in node.outs}
        members: set[TraceNode] = set()
        for k, together in nodes_of.items():
            apart = [made for v in values_of[k] if (made := producers.get(v)) is not None and made not in together]
            if any(map(self.cut.ends, together)) and all(map(_is_read_as_view, apart)):
                members.update(together)
        return members

    def _may_split(self, node: TraceNode) -> bool:
        if node.op.kind is Kind.REDUCE:
            return node.ins[0].aval.shape == self.cut.shape and is_fusible(node)
        if len(node.outs) != 1 or node.outs[0].aval.shape != self.cut.shape:
            return False
        return node.op is BROADCAST_TO or (node.op.kind is Kind.ELEMENTWISE and is_fusible(node))

    def _split_shape(self, shape: Shape) -> Shape:
        """``shape``, which broadcasts to that of the cut, with the axis in two."""
        k = self.cut.axis - (len(self.cut.shape) - len(shape))
        if k < 0:
            return shape
        return (*shape[:k], *(self.pieces if shape[k] > 1 else (1, 1)), *shape[k + 1 :])

    def split(self, atom: Atom) -> Atom:
        """``atom``, an operand of a member, with the axis in two."""
        shape = self._split_shape(atom.aval.shape)
        if not isinstance(atom, Value) or shape == atom.aval.shape:
            return atom
        if atom not in self._split:
            self._split[atom] = self.emit(RESHAPE, atom, shape=shape)
        return self._split[atom]

    def _elementwise(self, node: TraceNode) -> None:
        attrs = {**dict(node.attrs), "shape": self.shape} if node.op is BROADCAST_TO else dict(node.attrs)
        self._split[node.out] = self.emit(node.op, *[self.split(atom) for atom in node.ins], **attrs)
        if node.out in self.needed:
            self.define(node.out, RESHAPE, self._split[node.out], shape=self.cut.shape)

    def _reduce(self, node: TraceNode) -> None:
        operand, axis = self.split(node.ins[0]), self.cut.axis
        if self.cut.ends(node):
            _in_two_steps(self, node, operand, self.cut, len(self.cut.shape) - axis)
            return
        axes = [k + (k > axis) for k in node.attr("axis")]
        if axis in axes:
            self.define(node.out, node.op, operand, axis=tuple(sorted([*axes, axis + 1])))
        else:
            self.define(node.out, RESHAPE, self.emit(node.op, operand, axis=tuple(axes)), shape=node.out.aval.shape)


def _is_read_as_view(node: TraceNode) -> bool:
    """Whether a result of ``node`` is in memory, or a view of it: what is computed from positions, or read at offsets, would
    be written for the new axis."""
    return node.op in _VIEWS or node.op.kind not in (Kind.MOVEMENT, Kind.INDEX)
