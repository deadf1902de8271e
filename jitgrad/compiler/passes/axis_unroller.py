"""Values piece by piece along short axes: one op per position there, all of them in the loops over what is left."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from jitgrad.compiler.fusion.axis_maps import NONE, RENAMING, align, rename
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.unroll_reductions import fold
from jitgrad.core.aval import Aval, Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind
from jitgrad.ops.identity import IDENTITY

Position = tuple[int | None, ...]  # per axis of a value: where a piece of length 1 lies; None: it has all of that axis


def is_divisible(node: TraceNode) -> bool:
    """Whether pieces of ``node``'s result can be computed from pieces of its operands."""
    if node.op.name in RENAMING:
        return True
    if node.op.kind is Kind.REDUCE:
        monoid = node.op.monoid
        boolean = monoid is not None and monoid is not monoid.for_dtype(node.out.aval.dtype)
        return monoid is not None and not boolean and is_fusible(node)
    return node.op.kind is Kind.ELEMENTWISE and is_fusible(node)


def aligned(node: TraceNode, k: int) -> tuple[int, ...]:
    """For each axis of operand ``k`` of a divisible ``node`` that is no reduction: the result's axis, or NONE."""
    if node.op.name in RENAMING:
        return rename(node)
    own, shape = node.ins[k].aval.shape, node.out.aval.shape
    return tuple(NONE if own[d] == 1 else axis for d, axis in enumerate(align(own, shape)))


def is_disjoint_fold(node: TraceNode) -> bool:
    """Whether ``node`` puts windows back into an image in which no two of them overlap."""
    if node.op.name != "fold":
        return False
    sizes = zip(node.attr("kernel"), node.attr("stride"), node.attr("dilation"), strict=True)
    return all(size == 1 or (apart == 1 and size <= by) for size, by, apart in sizes)


class AxisUnroller:
    """Rewrites a graph so that values are computed in pieces along the axes for which ``is_cut(value, axis)`` holds.

    A piece keeps all axes, the cut ones with length 1, so its op has the attributes it had. What cannot be divided
    reads the concatenation of the pieces.
    """

    def __init__(
        self,
        is_cut: Callable[[Value, int], bool],
        is_cut_in: Callable[[TraceNode, int], bool],
        repeated: Container[int],
    ) -> None:
        self.is_cut = is_cut
        self.is_cut_in = is_cut_in  # (reduction, axis of its operand)
        self.repeated = repeated  # ids of arrays that are read many times over: their pieces are worth a copy in order
        self.nodes: list[TraceNode] = []
        self.pieces: dict[int, dict[Position, Value]] = {}  # of values that are computed in pieces
        self.taken: dict[tuple[int, Position], Value] = {}  # pieces of other values
        self.wholes: dict[int, Value] = {}
        self.made_by: dict[int, TraceNode] = {}

    def run(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            self.made_by.update({id(out): node for out in node.outs})
            if is_divisible(node) and node.op.kind is Kind.REDUCE and self.reduce(node):
                continue
            if is_divisible(node) and node.op.kind is not Kind.REDUCE and self.divide(node):
                continue
            if is_disjoint_fold(node) and id(node.ins[0]) in self.pieces and self.fold(node):
                continue
            self.nodes.append(replace(node, ins=tuple(self.whole(a) for a in node.ins)))
        outputs = tuple(self.whole(a) for a in graph.outputs)
        return replace(graph, nodes=tuple(self.nodes), outputs=outputs)

    # --- nodes in pieces -----------------------------------------------------------------------------------------

    def positions(self, shape: Shape, cut: Callable[[int], bool]) -> Iterator[Position]:
        return product(*[range(n) if n > 1 and cut(k) else (None,) for k, n in enumerate(shape)])

    def divide(self, node: TraceNode) -> bool:
        """Compute ``node`` in pieces, if its result is cut."""
        out = node.out
        found = list(self.positions(out.aval.shape, lambda k: self.is_cut(out, k)))
        if len(found) == 1:
            return False
        maps = [() if isinstance(a, Literal) else aligned(node, k) for k, a in enumerate(node.ins)]
        pieces = self.pieces[id(out)] = {}
        for at in found:
            ins = [
                self.piece(a, tuple(None if k == NONE else at[k] for k in axes), node)
                for a, axes in zip(node.ins, maps, strict=True)
            ]
            pieces[at] = self.again(node, ins, _cut_shape(out.aval.shape, at))
        return True

    def reduce(self, node: TraceNode) -> bool:
        """Compute a reduction in pieces, if its operand is cut: over cut axes by an op on all pieces."""
        (x,), gone = node.ins, set(node.attr("axis"))
        found = list(self.positions(x.aval.shape, lambda k: self.is_cut_in(node, k)))
        if len(found) == 1:
            return False
        parts: dict[Position, list[Atom]] = {}
        for at in found:
            parts.setdefault(tuple(p for k, p in enumerate(at) if k not in gone), []).append(self.piece(x, at, node))
        rest = tuple(k for k in sorted(gone) if found[0][k] is None and x.aval.shape[k] > 1)
        results = {at: self.reduced(node, some, rest) for at, some in parts.items()}
        if len(results) > 1:
            self.pieces[id(node.out)] = results
        else:
            self.wholes[id(node.out)] = next(iter(results.values()))
        return True

    def reduced(self, node: TraceNode, parts: list[Atom], rest: tuple[int, ...]) -> Value:
        """One piece of a reduction: of all ``parts``, then over the axes ``rest``, the other reduced ones being 1 long."""
        total = parts[0]
        if len(parts) > 1 or not rest:
            nodes, total = fold(node, parts)
            self.nodes += nodes
        assert isinstance(total, Value)
        if rest:
            total = self.emit(node, "", total, {"axis": rest})
        dropped, removed = [], 0
        for k in sorted(node.attr("axis")):
            if k in rest:
                removed += 1
            else:
                dropped.append(k - removed)
        return self.emit(node, "squeeze", total, {"axis": tuple(dropped)}) if dropped else total

    def again(self, node: TraceNode, ins: list[Atom], shape: Shape) -> Value:
        """``node`` on other operands, with a result of ``shape``."""
        aval = replace(node.out.aval, shape=shape)
        attrs = (("shape", shape),) if node.op.name == "broadcast_to" else () if node.op is IDENTITY else node.attrs
        self.nodes.append(TraceNode(node.op, tuple(ins), (Value(aval),), attrs, node.origin))
        return self.nodes[-1].out

    def emit(self, node: TraceNode, name: str, x: Atom, attrs: dict[str, Any]) -> Value:
        """The result of the op ``name`` (of ``node``'s own, if empty) on ``x``, for ``node``."""
        op = REGISTRY[name] if name else node.op
        aval = op.abstract([x.aval], attrs)
        assert isinstance(aval, Aval)
        self.nodes.append(TraceNode(op, (x,), (Value(aval),), tuple(attrs.items()), node.origin))
        return self.nodes[-1].out

    # --- windows -------------------------------------------------------------------------------------------------

    def unfolded(self, node: TraceNode, at: Position) -> Value:
        """The elements at one place of all windows of an image: a slice of it."""
        x, steps = node.ins[0], zip(node.attr("stride"), node.attr("dilation"), strict=True)
        counts = node.out.aval.shape[-2:]
        inside = tuple(((p or 0) * apart, by, n) for p, (by, apart), n in zip(at[-4:-2], steps, counts, strict=True))
        index = (*((0, 1, n) for n in x.aval.shape[:-2]), *inside)
        part = self.emit(node, "slice", self.whole(x), {"index": index})
        return self.emit(node, "expand_dims", part, {"axis": (part.aval.ndim - 2, part.aval.ndim - 1)})

    def fold(self, node: TraceNode) -> bool:
        """Windows that do not overlap, put back into an image: every piece has elements of its own there."""
        pieces = self.pieces[id(node.ins[0])]
        if not all(map(_is_one_window, pieces)):
            return False
        shape, images = node.out.aval.shape, list[Value]()
        for at, piece in pieces.items():
            part = self.emit(node, "squeeze", piece, {"axis": (piece.aval.ndim - 4, piece.aval.ndim - 3)})
            part = self.again(replace(node, op=IDENTITY), [part], part.aval.shape)
            inside = tuple(
                (p or 0, by, n) for p, by, n in zip(at[-4:-2], node.attr("stride"), part.aval.shape[-2:], strict=True)
            )
            index = (*((0, 1, n) for n in shape[:-2]), *inside)
            images.append(self.emit(node, "place", part, {"shape": shape, "index": index}))
        total = images[0]
        for image in images[1:]:
            total = self.again(replace(node, op=REGISTRY["add"], attrs=()), [total, image], shape)
        self.wholes[id(node.out)] = total
        return True

    # --- operands ------------------------------------------------------------------------------------------------

    def piece(self, atom: Atom, at: Position, node: TraceNode) -> Atom:
        """The piece of ``atom`` at a position, for ``node``; ``atom`` itself where it is not cut."""
        if isinstance(atom, Literal) or all(p is None for p in at):
            return self.whole(atom)
        if id(atom) in self.pieces:
            return self.pieces[id(atom)][at]
        key = id(atom), at
        if key not in self.taken:
            maker = self.made_by.get(id(atom))
            if maker is not None and maker.op.name == "unfold" and _is_one_window(at):
                self.taken[key] = self.unfolded(maker, at)
                return self.taken[key]
            whole = self.whole(atom)
            index = tuple((0, 1, n) if p is None else (p, 1, 1) for p, n in zip(at, atom.aval.shape, strict=True))
            aval = Aval(_cut_shape(atom.aval.shape, at), atom.aval.dtype)
            self.nodes.append(TraceNode(REGISTRY["slice"], (whole,), (Value(aval),), (("index", index),), node.origin))
            if id(atom) in self.repeated and _last_is_cut(atom.aval.shape, at):
                self.nodes.append(TraceNode(IDENTITY, self.nodes[-1].outs, (Value(aval),), (), node.origin))
            self.taken[key] = self.nodes[-1].out
        return self.taken[key]

    def whole(self, atom: Atom) -> Atom:
        """``atom`` in the new graph in one piece."""
        if isinstance(atom, Literal) or (id(atom) not in self.pieces and id(atom) not in self.wholes):
            return atom
        if id(atom) not in self.wholes:
            maker, pieces = self.made_by[id(atom)], self.pieces[id(atom)]
            repeats = maker.op.name == "broadcast_to" and self.pieces.get(id(maker.ins[0]), {}).keys() != pieces.keys()
            if maker.op.name in RENAMING and not repeats:
                made = self.again(maker, [self.whole(maker.ins[0])], atom.aval.shape)
            else:
                made = self.joined(pieces, maker)
            self.wholes[id(atom)] = made
        return self.wholes[id(atom)]

    def joined(self, pieces: dict[Position, Value], node: TraceNode) -> Value:
        """The pieces put together again, one axis after the other."""
        if node.op.name in RENAMING:
            pieces = {at: self.again(replace(node, op=IDENTITY), [v], v.aval.shape) for at, v in pieces.items()}
        axes = [k for k, p in enumerate(next(iter(pieces))) if p is not None]
        for axis in reversed(axes):
            rows: dict[Position, list[Value]] = {}
            for at, piece in pieces.items():
                rows.setdefault((*at[:axis], None, *at[axis + 1 :]), []).append(piece)
            pieces = {at: self.concat(row, axis, node) for at, row in rows.items()}
        (whole,) = pieces.values()
        return whole

    def concat(self, row: list[Value], axis: int, node: TraceNode) -> Value:
        op = REGISTRY["concat"]
        aval = op.abstract([v.aval for v in row], {"axis": axis})
        assert isinstance(aval, Aval)
        self.nodes.append(TraceNode(op, tuple(row), (Value(aval),), (("axis", axis),), node.origin))
        return self.nodes[-1].out


def _cut_shape(shape: Shape, at: Position) -> Shape:
    return tuple(n if p is None else 1 for n, p in zip(shape, at, strict=True))


def _last_is_cut(shape: Shape, at: Position) -> bool:
    """Whether a piece's elements lie apart in memory, in an array in order."""
    return next((p for n, p in zip(reversed(shape), reversed(at), strict=True) if n != 1), None) is not None


def _is_one_window(at: Position) -> bool:
    """Whether ``at``, of windows [..., kh, kw, oh, ow], is a place in a window and nothing else."""
    return all(p is None for k, p in enumerate(at) if k not in (len(at) - 4, len(at) - 3))
