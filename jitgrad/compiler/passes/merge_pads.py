"""Puts a value into zeros once for all the windows that are read of it and of the zeros around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from jitgrad.compiler.compiler_ops import Index
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.passes.slices import disjoint
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Shape
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.movement import PLACE, SLICE


class _Window(NamedTuple):
    """``out`` is what is read of a value among zeros, from ``starts`` on, counted from the value's first element."""

    out: Value
    starts: tuple[int, ...]
    place: TraceNode

    @property
    def stops(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(self.starts, self.out.aval.shape, strict=True)))


@dataclass(frozen=True, eq=False, slots=True)
class Pad:
    """An array of zeros with a value in it, ``before`` elements after its start, of which windows are slices."""

    shape: Shape
    before: tuple[int, ...]

    def index(self, starts: Sequence[int], shape: Shape) -> Index:
        """The slice of ``shape`` from ``starts`` on, counted from the value's first element."""
        return tuple((b + start, 1, n) for b, start, n in zip(self.before, starts, shape, strict=True))


def merge_pads(graph: Graph, tuning: Tuning) -> Graph:
    """``place(x, i) + place(x, j)`` become ``y[a] + y[b]`` of one ``y``, which is ``x`` among as many zeros as all need.

    The gradient of a stencil puts one array into zeros at every place from which it was read, and reads parts of the
    results. Places that `insert_slices` makes one whole of stay as they are: the rows that a loop reads are each written
    once, and no zeros around them.
    """
    groups: dict[Atom, list[_Window]] = {}
    apart = places_side_by_side(graph)
    for node in graph.nodes:
        if node.op is PLACE and node not in apart and all(step == 1 for _, step, _ in node.attr("index")):
            groups.setdefault(node.ins[0], []).extend(_windows(graph, node))
    pads: dict[Value, tuple[_Window, Pad]] = {}
    for windows in groups.values():
        pad = _pad_of(windows, tuning)
        if pad is not None:
            pads.update({window.out: (window, pad) for window in windows})
    return _read_from(graph, pads) if pads else graph


def _read_from(graph: Graph, pads: dict[Value, tuple[_Window, Pad]]) -> Graph:
    new, wholes = Rewriter(graph), dict[Pad, Value]()
    for node in new.visit():
        if node.outs[0] not in pads:
            new.keep(node)
            continue
        window, pad = pads[node.out]
        value, shape = window.place.ins[0], node.out.aval.shape
        inner, own = new.current(value), value.aval.shape
        if shape == own and not any(window.starts):
            new.replace(node.out, inner)
        elif _is_inside(window, own):
            new.define(node.out, SLICE, inner, index=Pad(own, (0,) * len(own)).index(window.starts, shape))
        else:
            if pad not in wholes:
                wholes[pad] = new.emit(PLACE, inner, index=pad.index((0,) * len(own), own), shape=pad.shape)
            new.define(node.out, SLICE, wholes[pad], index=pad.index(window.starts, shape))
    return eliminate_dead(new.graph())


def _windows(graph: Graph, place: TraceNode) -> Iterator[_Window]:
    """What is read of the result of ``place``: slices of it, if nothing else is."""
    starts = tuple(start for start, _, _ in place.attr("index"))
    users = graph.users(place.out)
    if users and place.out not in graph.outputs and all(_is_plain_slice(user) for user in users):
        for user in users:
            yield _Window(user.out, tuple(i[0] - s for i, s in zip(user.attr("index"), starts, strict=True)), place)
    else:
        yield _Window(place.out, tuple(-s for s in starts), place)


def _is_plain_slice(node: TraceNode) -> bool:
    return node.op is SLICE and all(step == 1 and n for _, step, n in node.attr("index"))


def _is_inside(window: _Window, shape: Shape) -> bool:
    return all(start >= 0 and stop <= n for start, stop, n in zip(window.starts, window.stops, shape, strict=True))


def _pad_of(windows: Sequence[_Window], tuning: Tuning) -> Pad | None:
    """One array for all ``windows`` of a value, if it is not much larger than what they are read from now."""
    if len(windows) == 1 and windows[0].out is windows[0].place.out:
        return None
    pad = _around(windows[0].place.ins[0].aval.shape, windows)
    largest = max(window.place.out.aval.size for window in windows)
    return pad if prod(pad.shape) <= (1 + tuning.max_pad_growth) * largest else None


def _around(own: Shape, windows: Sequence[_Window]) -> Pad:
    before = tuple(-min(0, *starts) for starts in zip(*[w.starts for w in windows], strict=True))
    stops = tuple(max(n, *ends) for n, ends in zip(own, zip(*[w.stops for w in windows], strict=True), strict=True))
    return Pad(tuple(b + stop for b, stop in zip(before, stops, strict=True)), before)


def common_pad(places: Sequence[TraceNode]) -> Pad:
    """An array of which the results of ``places``, as if of one value, are slices."""
    starts = list(zip(*[[start for start, _, _ in node.attr("index")] for node in places], strict=True))
    shape = tuple(n + max(own) - min(own) for n, own in zip(places[0].out.aval.shape, starts, strict=True))
    return Pad(shape, tuple(map(max, starts)))


def places_side_by_side(graph: Graph) -> set[TraceNode]:
    """The places in sums all of whose places are the same or do not overlap: parts of one whole."""
    sums: dict[Atom, dict[Index, list[TraceNode]]] = {}  # the places in a sum, by where they are
    whole, meeting = set[TraceNode](), set[TraceNode]()
    for node in graph.nodes:
        if node.op is PLACE:
            sums[node.out] = {node.attr("index"): [node]}
        elif node.op is ADD and all(a in sums and a.aval.shape == node.out.aval.shape for a in node.ins):
            first, second = (sums[a] for a in node.ins)
            places = {p for of in (first, second) for same in of.values() for p in same}
            if all(disjoint(i, j) for i in second.keys() - first.keys() for j in first):
                larger, smaller = (first, second) if len(first) >= len(second) else (second, first)
                sums[node.out] = larger | {i: [*larger.get(i, ()), *of] for i, of in smaller.items()}
                whole |= places if len(sums[node.out]) > 1 else set()
            else:
                meeting |= places
    return whole - meeting
