"""Computes values piece by piece along short axes: one op per position there, in loops over the other axes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from itertools import product

from jitgrad.compiler.compiler_ops import IDENTITY
from jitgrad.compiler.fusion.axis_maps import NONE, align, rename
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.passes.unroll_reductions import combined
from jitgrad.core.aval import Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.core.origin import Origin
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.convolution import FOLD, UNFOLD
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import BROADCAST_TO, EXPAND_DIMS, PLACE, SLICE, SQUEEZE

Position = tuple[int | None, ...]  # per axis of a value: the index of a piece of length 1; None: the whole axis


def is_divisible(node: TraceNode) -> bool:
    """Whether pieces of ``node``'s result can be computed from pieces of its operands."""
    if node.op.renames:
        return True
    if node.op.kind is Kind.REDUCE:
        monoid = node.op.monoid
        boolean = monoid is not None and monoid is not monoid.for_dtype(node.out.aval.dtype)
        return monoid is not None and not boolean and is_fusible(node)
    return node.op.kind is Kind.ELEMENTWISE and is_fusible(node)


def aligned(node: TraceNode, k: int) -> tuple[int, ...]:
    """For each axis of operand ``k`` of a divisible ``node`` that is no reduction: the result's axis, or NONE."""
    if node.op.renames:
        return rename(node)
    own, shape = node.ins[k].aval.shape, node.out.aval.shape
    return tuple(NONE if own[d] == 1 else axis for d, axis in enumerate(align(own, shape)))


def is_disjoint_fold(node: TraceNode) -> bool:
    """Whether ``node`` puts windows back into an image in which no two of them overlap."""
    if node.op is not FOLD:
        return False
    sizes = zip(node.attr("kernel"), node.attr("stride"), node.attr("dilation"), strict=True)
    return all(size == 1 or (apart == 1 and size <= by) for size, by, apart in sizes)


class AxisUnroller(Rewriter):
    """Rewrites a graph so that values are computed in pieces along the axes for which ``is_cut(value, axis)`` holds.

    A piece keeps all axes, the cut ones with length 1, so its op has the same attributes. An op that cannot be divided
    reads the concatenation of the pieces.
    """

    def __init__(
        self,
        graph: Graph,
        is_cut: Callable[[Value, int], bool],
        is_cut_in: Callable[[TraceNode, int], bool],
        repeated: Container[Atom],
    ) -> None:
        super().__init__(graph)
        self.is_cut = is_cut
        self.is_cut_in = is_cut_in  # (reduction, axis of its operand)
        self.repeated = repeated  # arrays that are read many times over: their pieces are worth a copy in order
        self.pieces: dict[Atom, dict[Position, Value]] = {}  # of values that are computed in pieces
        self.slices: dict[tuple[Value, Position], Value] = {}  # pieces of other values
        self.wholes: dict[Atom, Value] = {}

    def run(self) -> Graph:
        for node in self.visit():
            if is_divisible(node) and (self.reduce(node) if node.op.kind is Kind.REDUCE else self.divide(node)):
                continue
            if is_disjoint_fold(node) and node.ins[0] in self.pieces and self.fold(node):
                continue
            ins = [self.whole(a) for a in node.ins]
            self.keep(replace(node, ins=tuple(ins)) if any(map(operator.is_not, ins, node.ins)) else node)
        outputs = tuple(self.whole(a) for a in self.source.outputs)
        return replace(self.source, nodes=tuple(self.nodes), outputs=outputs)

    # --- nodes in pieces -----------------------------------------------------------------------------------------

    def positions(self, shape: Shape, cut: Callable[[int], bool]) -> Iterator[Position]:
        return product(*[range(n) if n > 1 and cut(k) else (None,) for k, n in enumerate(shape)])

    def divide(self, node: TraceNode) -> bool:
        """Compute ``node`` in pieces, if its result is cut."""
        out = node.out
        positions = list(self.positions(out.aval.shape, lambda k: self.is_cut(out, k)))
        if len(positions) == 1:
            return False
        maps = [() if isinstance(a, Literal) else aligned(node, k) for k, a in enumerate(node.ins)]
        pieces = self.pieces[out] = {}
        for at in positions:
            ins = [
                self.piece(a, tuple(None if k == NONE else at[k] for k in axes))
                for a, axes in zip(node.ins, maps, strict=True)
            ]
            pieces[at] = self.again(node, ins, _cut_shape(out.aval.shape, at))
        return True

    def reduce(self, node: TraceNode) -> bool:
        """Compute a reduction in pieces, if its operand is cut: over cut axes by an op on all pieces."""
        (x,), reduced = node.ins, set(node.attr("axis"))
        positions = list(self.positions(x.aval.shape, lambda k: self.is_cut_in(node, k)))
        if len(positions) == 1:
            return False
        parts: dict[Position, list[Atom]] = {}
        for at in positions:
            parts.setdefault(tuple(p for k, p in enumerate(at) if k not in reduced), []).append(self.piece(x, at))
        rest = tuple(k for k in sorted(reduced) if positions[0][k] is None and x.aval.shape[k] > 1)
        results = {at: self.reduced(node, some, rest) for at, some in parts.items()}
        if len(results) > 1:
            self.pieces[node.out] = results
        else:
            self.wholes[node.out] = next(iter(results.values()))
        return True

    def reduced(self, node: TraceNode, parts: list[Atom], rest: tuple[int, ...]) -> Value:
        """One piece of a reduction: of all ``parts``, then over the axes ``rest``; the other reduced ones are 1 long."""
        total = parts[0]
        if len(parts) > 1 or not rest:
            total = combined(self, node, parts)
        if rest:
            total = self.emit(node.op, total, axis=rest)
        dropped, removed = [], 0
        for k in sorted(node.attr("axis")):
            if k in rest:
                removed += 1
            else:
                dropped.append(k - removed)
        assert isinstance(total, Value)
        return self.emit(SQUEEZE, total, axis=tuple(dropped)) if dropped else total

    def again(self, node: TraceNode, ins: list[Atom], shape: Shape) -> Value:
        """``node`` on other operands, with a result of ``shape``."""
        return self.emit(node.op, *ins, **({"shape": shape} if node.op is BROADCAST_TO else dict(node.attrs)))

    # --- windows -------------------------------------------------------------------------------------------------

    def unfolded(self, node: TraceNode, at: Position) -> Value:
        """The elements at one place of all windows of an image: a slice of it."""
        x, steps = node.ins[0], zip(node.attr("stride"), node.attr("dilation"), strict=True)
        counts, self.origin = node.out.aval.shape[-2:], node.origin
        inside = tuple(((p or 0) * apart, by, n) for p, (by, apart), n in zip(at[-4:-2], steps, counts, strict=True))
        part = self.emit(SLICE, self.whole(x), index=(*((0, 1, n) for n in x.aval.shape[:-2]), *inside))
        return self.emit(EXPAND_DIMS, part, axis=(part.aval.ndim - 2, part.aval.ndim - 1))

    def fold(self, node: TraceNode) -> bool:
        """Windows that do not overlap, put back into an image: every piece has elements of its own there."""
        pieces = self.pieces[node.ins[0]]
        if not all(map(_is_one_window, pieces)):
            return False
        shape, images = node.out.aval.shape, list[Value]()
        for at, piece in pieces.items():
            part = self.emit(SQUEEZE, piece, axis=(piece.aval.ndim - 4, piece.aval.ndim - 3))
            inside = tuple(
                (p or 0, by, n) for p, by, n in zip(at[-4:-2], node.attr("stride"), part.aval.shape[-2:], strict=True)
            )
            index = (*((0, 1, n) for n in shape[:-2]), *inside)
            images.append(self.emit(PLACE, self.emit(IDENTITY, part), shape=shape, index=index))
        total = images[0]
        for image in images[1:]:
            total = self.emit(ADD, total, image)
        self.wholes[node.out] = total
        return True

    # --- operands ------------------------------------------------------------------------------------------------

    def piece(self, atom: Atom, at: Position) -> Atom:
        """The piece of ``atom`` at a position; ``atom`` itself where it is not cut."""
        if isinstance(atom, Literal) or all(p is None for p in at):
            return self.whole(atom)
        if atom in self.pieces:
            return self.pieces[atom][at]
        key = atom, at
        if key not in self.slices:
            producer = self.source.producer(atom)
            if producer is not None and producer.op is UNFOLD and _is_one_window(at):
                origin = self.origin
                self.slices[key] = self.unfolded(producer, at)
                self.origin = origin
                return self.slices[key]
            index = tuple((0, 1, n) if p is None else (p, 1, 1) for p, n in zip(at, atom.aval.shape, strict=True))
            part = self.emit(SLICE, self.whole(atom), index=index)
            copied = atom in self.repeated and _last_is_cut(atom.aval.shape, at)
            self.slices[key] = self.emit(IDENTITY, part) if copied else part
        return self.slices[key]

    def whole(self, atom: Atom) -> Atom:
        """``atom`` in the new graph in one piece."""
        if atom not in self.wholes:
            if isinstance(atom, Literal) or atom not in self.pieces:
                return atom
            producer, pieces = self.source.producer(atom), self.pieces[atom]
            assert producer is not None
            origin, self.origin = self.origin, producer.origin
            repeats = producer.op is BROADCAST_TO and self.pieces.get(producer.ins[0], {}).keys() != pieces.keys()
            if producer.op.renames and not repeats:
                self.wholes[atom] = self.again(producer, [self.whole(producer.ins[0])], atom.aval.shape)
            else:
                self.wholes[atom] = self.joined(pieces, copied=producer.op.renames)
            self.origin: Origin = origin
        return self.wholes[atom]

    def joined(self, pieces: dict[Position, Value], copied: bool) -> Value:
        """The pieces put together again, one axis after the other."""
        if copied:
            pieces = {at: self.emit(IDENTITY, piece) for at, piece in pieces.items()}
        axes = [k for k, p in enumerate(next(iter(pieces))) if p is not None]
        for axis in reversed(axes):
            rows: dict[Position, list[Value]] = {}
            for at, piece in pieces.items():
                rows.setdefault((*at[:axis], None, *at[axis + 1 :]), []).append(piece)
            pieces = {at: self.emit(CONCAT, *row, axis=axis) for at, row in rows.items()}
        (whole,) = pieces.values()
        return whole


def _cut_shape(shape: Shape, at: Position) -> Shape:
    return tuple(n if p is None else 1 for n, p in zip(shape, at, strict=True))


def _last_is_cut(shape: Shape, at: Position) -> bool:
    """Whether a piece's elements are apart in memory, in an array in order."""
    return next((p for n, p in zip(reversed(shape), reversed(at), strict=True) if n != 1), None) is not None


def _is_one_window(at: Position) -> bool:
    """Whether ``at``, of windows [..., kh, kw, oh, ow], is a place in a window and nothing else."""
    return all(p is None for k, p in enumerate(at) if k not in (len(at) - 4, len(at) - 3))
