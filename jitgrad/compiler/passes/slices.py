"""Computes slices of elementwise results alone, and writes the parts of a whole straight to their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod

from jitgrad.compiler.compiler_ops import IDENTITY, INSERT_SLICES, Index
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Shape
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.core.origin import Origin
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import PLACE, RESHAPE, SLICE

# A border is zeroed by itself if the whole is at least so large: it takes several steps.
LEAST_WHOLE = 1 << 14

_Parts = tuple[list[Value], list[Index]]  # values, and the place of each in a whole


def push_slices_up(graph: Graph, tuning: Tuning) -> Graph:
    """``slice(f(x, y))`` becomes ``f(slice(x), slice(y))`` where only slices of ``f``'s result are read.

    So an op on the gates of a recurrent cell joins the kernels of the single gates. One slice moves up as far as it can,
    several different ones through some ops only.
    """
    graph = _push_single_up(graph)
    for _ in range(tuning.max_slice_steps):
        moved = _push_up_once(graph)
        if moved is graph:
            break
        graph = moved
    return graph


def _push_single_up(graph: Graph) -> Graph:
    """Compute of elementwise results only the part that is read, where all readers read the same part."""
    parts = _only_parts(graph)
    if not parts:
        return graph
    new = Rewriter(graph)
    slices: dict[tuple[Atom, Index], Atom] = {}
    for node in new.visit():
        old = graph.producer(node.outs[0])
        index = parts.get(node.outs[0])
        if index is not None and old is not None:
            ins: list[Atom] = []
            for atom, now in zip(old.ins, node.ins, strict=True):
                own = _own_index(atom, index, old.out.aval.shape)
                done = own is None or parts.get(atom) is not None
                if not done and own is not None and (now, own) not in slices:
                    slices[now, own] = _slice(new, now, own)
                ins.append(now if done or own is None else slices[now, own])
            new.replace(node.outs[0], new.emit(node.op, *ins, **dict(node.attrs)))
        elif old is not None and old.op is SLICE and old.ins[0] in parts:
            new.replace(node.out, node.ins[0])
        else:
            new.keep(node)
    return new.graph()


def _slice(new: Rewriter, atom: Atom, index: Index) -> Value:
    """``index`` of ``atom``; of a slice: a slice of that of which it is one."""
    node = new.producer(atom)
    if node is not None and node.op is SLICE:
        inner = zip(node.attr("index"), index, strict=True)
        atom, index = node.ins[0], tuple((i[0] + i[1] * start, i[1] * step, n) for i, (start, step, n) in inner)
    return new.emit(SLICE, atom, index=index)


def _only_parts(graph: Graph) -> dict[Atom, Index]:
    """The elementwise results of which all readers read one part, which is smaller, and that part."""
    parts: dict[Atom, Index] = {}
    results = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.op.kind is not Kind.ELEMENTWISE or node.op.scalar is None or node.outs[0] in results:
            continue
        if any(atom.aval.weak and atom.aval.shape for atom in node.ins):
            continue
        wanted: set[Index | None] = set()
        for user in graph.users(node.outs[0]):
            if user.op is SLICE:
                wanted.add(user.attr("index"))
            else:
                of = parts.get(user.outs[0])
                wanted.add(None if of is None else _own_index(node.out, of, user.out.aval.shape))
        index = next(iter(wanted)) if len(wanted) == 1 else None
        if index is not None and prod(n for _, _, n in index) < node.out.aval.size:
            parts[node.out] = index
    return parts


def _own_index(atom: Atom, index: Index, shape: Shape) -> Index | None:
    """The part of an operand that the part ``index`` of an elementwise result of ``shape`` needs; None: all of it."""
    own = atom.aval.shape
    missing = len(shape) - len(own)
    entries = zip(index[missing:], own, shape[missing:], strict=True)
    found = tuple([entry if n == m else (0, 1, 1) for entry, n, m in entries])
    return None if all(entry == (0, 1, n) for entry, n in zip(found, own, strict=True)) else found


def _push_up_once(graph: Graph) -> Graph:
    new = Rewriter(graph)
    for node in new.visit():
        producer = graph.producer(node.ins[0]) if node.op is SLICE else None
        if producer is None or not _only_sliced(graph, producer):
            new.keep(node)
        else:
            ins = [_sliced(new, atom, node, producer.out.aval.shape) for atom in producer.ins]
            new.origin = producer.origin
            new.define(node.out, producer.op, *ins, **dict(producer.attrs))
    return new.graph()


def _only_sliced(graph: Graph, producer: TraceNode) -> bool:
    if producer.op.kind is not Kind.ELEMENTWISE or producer.op.scalar is None or producer.out in graph.outputs:
        return False
    users = graph.users(producer.out)
    return all(n.op is SLICE for n in users) and sum(n.out.aval.size for n in users) <= producer.out.aval.size


def _sliced(new: Rewriter, atom: Atom, node: TraceNode, shape: Shape) -> Atom:
    """The part of an operand that the slice ``node`` of the result needs."""
    index = _own_index(atom, node.attr("index"), shape)
    return atom if index is None else new.emit(SLICE, atom, index=index)


def insert_slices(graph: Graph) -> Graph:
    """Sums of ``place`` and every ``concat`` become one ``insert_slices``, whose parts are written in place.

    The gradients of ``x[:, :k]`` and of ``x[:, k:]`` are placed in zeros and added; where they do not overlap, the sum
    is each part in its place. Parts with the same place, as of a row that a loop reads twice, are added by themselves
    first. (It differs from the sum in one thing: a part's -0.0 stays -0.0.)
    """
    new = Rewriter(graph)
    wholes = _Wholes(graph, new)
    for node in new.visit():
        if not wholes.take(node):
            wholes.define(node.ins)
            new.keep(node)
    wholes.define(graph.outputs)
    return new.graph()


class _Wholes:
    """The arrays made of parts so far. One is written only where it is read: most are terms of a larger sum."""

    def __init__(self, graph: Graph, new: Rewriter) -> None:
        self.new = new
        self.counts = Counter[Atom](atom for node in graph.nodes for atom in node.ins)
        self.counts.update(graph.outputs)
        self.parts: dict[Atom, _Parts] = {}
        self.shapes: dict[Atom, Shape] = {}  # of the whole that has the parts, whose reshape the value is
        self.origins: dict[Atom, Origin] = {}
        self.defined: set[Atom] = set()
        self.placed: set[Value] = set()

    def take(self, node: TraceNode) -> bool:
        """Note the parts of ``node``'s result, if it is made of parts."""
        parts = self._parts(node)
        if parts is not None:
            self.parts[node.out], self.origins[node.out] = parts, node.origin
            shaped = node.op in (RESHAPE, ADD)
            self.shapes[node.out] = self.shapes[node.ins[0]] if shaped else node.out.aval.shape
        return parts is not None

    def define(self, atoms: Iterable[Atom]) -> None:
        """Write those of ``atoms`` that are made of parts, unless they are written already."""
        for atom in atoms:
            if isinstance(atom, Value) and atom in self.parts and atom not in self.defined:
                self.defined.add(atom)
                parts, indices = self.parts[atom]
                self.define(parts)
                here, self.new.origin = self.new.origin, self.origins[atom]
                places = [self._placed_once(part) for part in parts]
                shape, attrs = self.shapes[atom], {"indices": tuple(indices), "shape": self.shapes[atom]}
                if shape == atom.aval.shape:
                    self.new.define(atom, INSERT_SLICES, *places, **attrs)
                else:
                    self.new.define(atom, RESHAPE, self.new.emit(INSERT_SLICES, *places, **attrs), shape=atom.aval.shape)
                self.new.origin = here

    def _placed_once(self, part: Value) -> Value:
        """The kernel of a part writes it in one place only, so that it has to write a second result for another."""
        if part in self.placed:
            return self.new.emit(IDENTITY, part)
        self.placed.add(part)
        return part

    def _parts(self, node: TraceNode) -> _Parts | None:
        if node.op is PLACE and isinstance(node.ins[0], Value):
            return [node.ins[0]], [node.attr("index")]
        if node.op is CONCAT and all(isinstance(a, Value) and a.aval.dtype == node.out.aval.dtype for a in node.ins):
            return [a for a in node.ins if isinstance(a, Value)], side_by_side(node)
        if node.op is RESHAPE and node.ins[0] in self.parts and self.counts[node.ins[0]] == 1:
            return self.parts[node.ins[0]]  # so that places in a flattened array, such as diagonals, meet in a sum
        if node.op is not ADD or any(a not in self.parts or a.aval.shape != node.out.aval.shape for a in node.ins):
            return None
        if len({self.shapes[a] for a in node.ins}) > 1:
            return None
        if any(self.counts[a] > 1 and len(self.parts[a][0]) > 1 for a in node.ins):
            return None  # the sum is needed by itself too
        return self._sum(*(self.parts[a] for a in node.ins))

    def _sum(self, first: _Parts, second: _Parts) -> _Parts | None:
        """The parts of a sum: those with the same place are added, all others must not overlap."""
        at = dict(zip(second[1], second[0], strict=True))
        common = at.keys() & set(first[1])
        others = [index for index in at if index not in common]
        if any(not disjoint(i, j) for i in first[1] if i not in common for j in others):
            return None
        parts: list[Value] = []
        for part, index in zip(*first, strict=True):
            if index in common:
                self.define((part, at[index]))
                part = self.new.emit(ADD, part, at[index])
            parts.append(part)
        return [*parts, *[at[index] for index in others]], [*first[1], *others]


def side_by_side(node: TraceNode) -> list[Index]:
    """The places of the operands of ``node``, a ``concat``."""
    axis, start, indices = node.attr("axis"), 0, []
    for atom in node.ins:
        shape = atom.aval.shape
        indices.append(tuple((start if k == axis else 0, 1, n) for k, n in enumerate(shape)))
        start += shape[axis]
    return indices


def uncovered(shape: Shape, indices: Sequence[Index]) -> list[Index]:
    """What must be zero of a whole of ``shape`` whose parts at ``indices`` do not overlap: its border, or all of it."""
    covered = sum(prod(n for _, _, n in index) for index in indices)
    everything: Index = tuple((0, 1, n) for n in shape)
    if covered >= prod(shape):
        return []
    spans = [[_span(entry) for entry in index] for index in indices if all(n for _, _, n in index)]
    low = [min(s[0] for s in column) for column in zip(*spans, strict=True)]
    high = [max(s[1] for s in column) + 1 for column in zip(*spans, strict=True)]
    inner = prod(b - a for a, b in zip(low, high, strict=True)) if spans else 0
    if covered < inner or 2 * inner < prod(shape) or prod(shape) < LEAST_WHOLE:
        return [everything]
    borders: list[Index] = []
    for k, n in enumerate(shape):
        inside = tuple((a, 1, b - a) for a, b in zip(low[:k], high[:k], strict=True))
        for start, stop in ((0, low[k]), (high[k], n)):
            if stop > start:
                borders.append((*inside, (start, 1, stop - start), *everything[k + 1 :]))
    return borders


def disjoint(a: Index, b: Index) -> bool:
    """Whether two regions certainly share no element: on some axis their spans do not meet, or they take turns."""
    return any(_apart(x, y) for x, y in zip(a, b, strict=True))


def _apart(x: tuple[int, int, int], y: tuple[int, int, int]) -> bool:
    take_turns = x[1] == y[1] and (x[0] - y[0]) % x[1] != 0
    return take_turns or _span(x)[1] < _span(y)[0] or _span(y)[1] < _span(x)[0]


def _span(entry: tuple[int, int, int]) -> tuple[int, int]:
    start, step, n = entry
    ends = (start, start + step * (n - 1))
    return min(ends), max(ends)
