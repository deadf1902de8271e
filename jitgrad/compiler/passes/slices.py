"""Slices and what puts them back together: computed piece by piece, written straight to their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, users
from jitgrad.core.op import REGISTRY, Kind, OpDef, define
from jitgrad.ops.identity import IDENTITY

Index = tuple[tuple[int, int, int], ...]  # (start, step, length) per axis

# A border is zeroed by itself if the whole is at least so large: it takes several steps.
LEAST_WHOLE = 1 << 14
# One value at several places is put into zeros once, if that takes at most this part more memory than one place.
MOST_ROOM = 0.25

# Slices move up through at most this many elementwise ops.
MAX_STEPS = 8


def _assembled(*parts: np.ndarray[Any, Any], shape: Shape, indices: Sequence[Index]) -> np.ndarray[Any, Any]:
    out = np.zeros(shape, parts[0].dtype)
    for part, index in zip(parts, indices, strict=True):
        out[np.ix_(*(np.arange(n) * step + start for start, step, n in index))] = part
    return out


INSERT_SLICES: OpDef = define(
    "insert_slices(*parts, shape, indices)",
    kind=Kind.OPAQUE,
    eager=_assembled,
    abstract=lambda avals, attrs: Aval(attrs["shape"], avals[0].dtype),
    register=False,
)


def push_slices_up(graph: Graph) -> Graph:
    """``slice(f(x, y))`` becomes ``f(slice(x), slice(y))`` where slices are all that is read of ``f``'s result.

    So an op on the gates of a recurrent cell joins the kernels of the single gates.
    """
    for _ in range(MAX_STEPS):
        moved = _split_once(graph)
        if moved is graph:
            break
        graph = moved
    return graph


def _split_once(graph: Graph) -> Graph:
    reading = users(graph)
    results = set(map(id, graph.outputs))
    defined_by = {id(v): n for n in graph.nodes for v in n.outs}

    def splittable(node: TraceNode) -> bool:
        maker = defined_by.get(id(node.ins[0])) if node.op.name == "slice" else None
        if maker is None or maker.op.kind is not Kind.ELEMENTWISE or maker.op.scalar is None:
            return False
        readers = reading[id(maker.out)]
        only_slices = id(maker.out) not in results and all(n.op.name == "slice" for n in readers)
        return only_slices and sum(n.out.aval.size for n in readers) <= maker.out.aval.size

    chosen = {id(node) for node in graph.nodes if splittable(node)}
    if not chosen:
        return graph
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        if id(node) not in chosen:
            nodes.append(node)
            continue
        maker = defined_by[id(node.ins[0])]
        ins = []
        for atom in maker.ins:
            piece = _sliced(atom, node, maker.out.aval.shape)
            nodes += [piece] if piece is not None else []
            ins.append(atom if piece is None else piece.out)
        nodes.append(replace(maker, ins=tuple(ins), outs=node.outs))
    return replace(graph, nodes=tuple(nodes))


def _sliced(atom: Atom, node: TraceNode, shape: Shape) -> TraceNode | None:
    """The part of an operand that the slice ``node`` of the result needs; None: the operand as it is."""
    if isinstance(atom, Literal) or not atom.aval.shape:
        return None
    own = atom.aval.shape
    whole: Index = node.attr("index")[len(shape) - len(own) :]
    index = tuple(
        entry if n == m else (0, 1, 1) for entry, n, m in zip(whole, own, shape[len(shape) - len(own) :], strict=True)
    )
    if all(entry == (0, 1, n) for entry, n in zip(index, own, strict=True)):
        return None
    out = Value(Aval(tuple(n for _, _, n in index), atom.aval.dtype, atom.aval.weak))
    return TraceNode(REGISTRY["slice"], (atom,), (out,), (("index", index),), node.origin)


def insert_slices(graph: Graph) -> Graph:
    """Sums of disjoint ``place`` and every ``concat`` become one ``insert_slices``, whose parts are written in place.

    The gradient of ``x[:, :k]`` and of its neighbours are placed in zeros and added; where they do not overlap the
    sum is each part in its place. (It differs from the sum in one thing: a part's -0.0 stays -0.0.)
    """
    counts = Counter(id(a) for n in graph.nodes for a in n.ins)
    counts.update(map(id, graph.outputs))
    pieces: dict[int, tuple[list[Value], list[Index]]] = {}
    nodes: list[TraceNode] = []
    taken: set[int] = set()
    for node in graph.nodes:
        found = _parts(node, pieces, counts)
        if found is None:
            nodes.append(node)
            continue
        pieces[id(node.out)] = found
        parts, indices = list(found[0]), found[1]
        for k, part in enumerate(parts):
            if id(part) in taken:  # its maker can write it in one place only: let it write a second result
                parts[k] = Value(part.aval)
                nodes.append(TraceNode(IDENTITY, (part,), (parts[k],), (), node.origin))
            taken.add(id(part))
        attrs = (("indices", tuple(indices)), ("shape", node.out.aval.shape))
        nodes.append(TraceNode(INSERT_SLICES, tuple(parts), node.outs, attrs, node.origin))
    return replace(graph, nodes=tuple(nodes))


def _parts(
    node: TraceNode, pieces: Mapping[int, tuple[list[Value], list[Index]]], counts: Mapping[int, int]
) -> tuple[list[Value], list[Index]] | None:
    name, shape = node.op.name, node.outs[0].aval.shape
    if name == "place" and isinstance(node.ins[0], Value):
        return [node.ins[0]], [node.attr("index")]
    if name == "concat" and all(isinstance(a, Value) and a.aval.dtype == node.out.aval.dtype for a in node.ins):
        return [a for a in node.ins if isinstance(a, Value)], _side_by_side(node)
    if name != "add" or any(id(a) not in pieces or a.aval.shape != shape for a in node.ins):
        return None
    if any(counts[id(a)] > 1 and len(pieces[id(a)][0]) > 1 for a in node.ins):
        return None  # the sum is needed by itself too
    (parts, indices), (more, others) = (pieces[id(a)] for a in node.ins)
    if any(not _disjoint(i, j) for i in indices for j in others):
        return None
    return [*parts, *more], [*indices, *others]


def _side_by_side(node: TraceNode) -> list[Index]:
    axis, start, found = node.attr("axis"), 0, []
    for atom in node.ins:
        shape = atom.aval.shape
        found.append(tuple((start if k == axis else 0, 1, n) for k, n in enumerate(shape)))
        start += shape[axis]
    return found


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


def merge_pads(graph: Graph) -> Graph:
    """``place(x, i) + place(x, j)`` become ``y[a] + y[b]`` of one ``y``, which is ``x`` among as many zeros as all need.

    The gradient of a stencil puts one array into zeros at every place from which it was read.
    """
    groups: dict[tuple[int, Shape], list[TraceNode]] = {}
    for node in graph.nodes:
        if node.op.name == "place" and all(step == 1 for _, step, _ in node.attr("index")):
            groups.setdefault((id(node.ins[0]), node.attr("shape")), []).append(node)
    shared: dict[int, list[TraceNode]] = {}
    for (_, shape), places in groups.items():
        starts = list(zip(*[[start for start, _, _ in node.attr("index")] for node in places], strict=True))
        room = tuple(n + max(own) - min(own) for n, own in zip(shape, starts, strict=True))
        if len(places) > 1 and prod(room) <= (1 + MOST_ROOM) * prod(shape):
            shared.update({id(node): made for node, made in zip(places, _windows(places, starts, room), strict=True)})
    if not shared:
        return graph
    return replace(graph, nodes=tuple(new for node in graph.nodes for new in shared.get(id(node), [node])))


def _windows(places: Sequence[TraceNode], starts: Sequence[Sequence[int]], room: Shape) -> list[list[TraceNode]]:
    """For each of ``places`` of one value: the slice of one array of zeros and that value; with the first one, that array."""
    first = places[0]
    whole = Value(replace(first.out.aval, shape=room))
    most = tuple(map(max, starts))
    index = tuple((start, 1, n) for start, n in zip(most, first.ins[0].aval.shape, strict=True))
    attrs = (("index", index), ("shape", room))
    found: list[list[TraceNode]] = [[replace(first, outs=(whole,), attrs=attrs)]]
    for node, own in zip(places, zip(*starts, strict=True), strict=True):
        part = tuple((a - b, 1, n) for a, b, n in zip(most, own, node.out.aval.shape, strict=True))
        found.append([TraceNode(REGISTRY["slice"], (whole,), node.outs, (("index", part),), node.origin)])
    return [[*found[0], *found[1]], *found[2:]]


def _disjoint(a: Index, b: Index) -> bool:
    """Whether two regions certainly share no element: on some axis their spans do not meet, or they take turns."""
    return any(_apart(x, y) for x, y in zip(a, b, strict=True))


def _apart(x: tuple[int, int, int], y: tuple[int, int, int]) -> bool:
    take_turns = x[1] == y[1] and (x[0] - y[0]) % x[1] != 0
    return take_turns or _span(x)[1] < _span(y)[0] or _span(y)[1] < _span(x)[0]


def _span(entry: tuple[int, int, int]) -> tuple[int, int]:
    start, step, n = entry
    ends = (start, start + step * (n - 1))
    return min(ends), max(ends)
