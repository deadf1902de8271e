"""Slices and what puts them back together: computed piece by piece, written straight to their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitgrad.aval import Aval, Shape
from jitgrad.ir import Atom, Graph, Literal, TraceNode, Value, users
from jitgrad.op import REGISTRY, Kind, OpDef, define
from jitgrad.ops.identity import IDENTITY

Index = tuple[tuple[int, int, int], ...]  # (start, step, length) per axis

# Slices move up through at most this many elementwise ops.
MAX_STEPS = 8


def _assembled(*parts: np.ndarray[Any, Any], shape: Shape, indices: Sequence[Index]) -> np.ndarray[Any, Any]:
    out = np.zeros(shape, parts[0].dtype)
    for part, index in zip(parts, indices, strict=True):
        out[np.ix_(*(np.arange(n) * step + start for start, step, n in index))] = part
    return out


ASSEMBLE: OpDef = define(
    "assemble(*parts, shape, indices)",
    kind=Kind.OPAQUE,
    eager=_assembled,
    abstract=lambda avals, attrs: Aval(attrs["shape"], avals[0].dtype),
    register=False,
)


def split_elementwise(graph: Graph) -> Graph:
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


def assemble(graph: Graph) -> Graph:
    """Sums of disjoint ``place`` and every ``concat`` become one ``assemble``, whose parts are written in place.

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
        nodes.append(TraceNode(ASSEMBLE, tuple(parts), node.outs, attrs, node.origin))
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
