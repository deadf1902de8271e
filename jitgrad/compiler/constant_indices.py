"""Reads and writes at indices that are known while tracing, and are few runs of evenly spaced ones, as slices.

``d[i, k - i]`` with ``i = np.arange(n)`` is a diagonal: a slice of the flattened ``d`` with a step. A slice is a view that
kernels read in place, or a part that they write in place; a gather is a call of a library. ``x[[0, 2, 5]]`` is two slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.passes.slices import disjoint
from jitgrad.core.aval import Array, Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind, OpDef
from jitgrad.eager.run import run_eagerly
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.creation import COPY, FULL
from jitgrad.ops.indexing import GATHER, INDEX_ADD, INDEX_GET, INDEX_PUT, INDEX_PUT_ADD, PUT_SLICE, SCATTER_ADD, TAKE
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import BROADCAST_TO, PLACE, RESHAPE, SLICE, SliceIndex

_Run = tuple[int, int, int]  # start, step and length

_MAX_COMPUTED = 1 << 13  # elements of an index array that the trace computes: compiling takes no longer for that
_MAX_RUNS = 8  # slices in place of one library call, which takes some 7 us, and a copy less than one


class _Selected(NamedTuple):
    """What indices select of an array: one slice of it after the other along ``axis``, with as many elements.

    ``slices`` has in place of its entry for that axis one of ``runs`` for each slice.
    """

    whole: Shape
    slices: SliceIndex
    axis: int
    runs: tuple[_Run, ...]

    @property
    def shape(self) -> Shape:
        """Of all slices together."""
        total = sum(length for _, _, length in self.runs)
        return tuple([total if k == self.axis else length for k, (_, _, length) in enumerate(self.slices)])

    @property
    def indices(self) -> list[SliceIndex]:
        """Each of the slices."""
        return [(*self.slices[: self.axis], run, *self.slices[self.axis + 1 :]) for run in self.runs]


class _Known(NamedTuple):
    """An array that is known while tracing, and the inputs of the program of which it was computed."""

    array: Array
    sources: frozenset[Value]


def slice_constant_indices(graph: Graph, constants: Mapping[Value, Array]) -> tuple[Graph, set[Value]]:
    """``graph`` with slices for indices that are few runs, and which of the inputs ``constants`` that relies on.

    Indices out of bounds stay as they are. The bits are the same but for one: of what is added
    to zeros, a -0.0 stays -0.0, as in `jitgrad.compiler.passes.slices.insert_slices`.
    """
    if all(node.op not in _ACCESSES for node in graph.nodes):
        return graph, set()
    new = _Slicer(graph, constants)
    for node in new.visit():
        new.note(node)
        if not new.rewritten(node):
            new.keep(node)
    return _without_unread(new.graph(), new.known.keys()), new.used


def _without_unread(graph: Graph, known: Collection[Atom]) -> Graph:
    """``graph`` without the nodes that only gave indices a shape."""
    read, nodes = set(graph.outputs), list[TraceNode]()
    for node in reversed(graph.nodes):
        if len(node.outs) > 1 or node.out not in known or node.out in read:
            nodes.append(node)
            read.update(node.ins)
    return replace(graph, nodes=tuple(reversed(nodes)))


class _Made(NamedTuple):
    """What a node computes that is not in the program yet."""

    op: OpDef
    ins: tuple[Atom, ...]
    attrs: Mapping[str, Any]


class _Slicer(Rewriter):
    def __init__(self, graph: Graph, constants: Mapping[Value, Array]) -> None:
        super().__init__(graph)
        self.known: dict[Atom, _Known] = {v: _Known(array, frozenset({v})) for v, array in constants.items()}
        self.used: set[Value] = set()

    def note(self, node: TraceNode) -> None:
        """An array of integers that ``node`` computes of known ones alone, if it is small, is known too."""
        pure = node.op.kind in (Kind.MOVEMENT, Kind.INDEX, Kind.ELEMENTWISE) or node.op is COPY
        if not pure or len(node.outs) > 1 or node.out.aval.dtype.kind not in "iub" or node.out.aval.size > _MAX_COMPUTED:
            return
        operands = [self._known(atom) for atom in node.ins]
        if any(x is None for x in operands):
            return
        known = [x for x in operands if x is not None]
        arrays, attrs = [x.array for x in known], dict(node.attrs)
        with np.errstate(all="ignore"):
            value = run_eagerly(node.op, arrays, [atom.aval for atom in node.ins], attrs)
        self.known[node.out] = _Known(np.asarray(value), frozenset[Value]().union(*[x.sources for x in known]))

    def _known(self, atom: Atom) -> _Known | None:
        if isinstance(atom, Literal):
            whole = isinstance(atom.value, int)
            return _Known(np.asarray(atom.value, atom.aval.dtype), frozenset()) if whole else None
        return self.known.get(atom)

    def rewritten(self, node: TraceNode) -> bool:
        """Whether ``node`` reads or writes a slice, which is then in the program in its place."""
        access = _ACCESSES.get(node.op)
        if access is None or not node.ins[0].aval.size or not isinstance(node.ins[0], Value):
            return False
        values, indices = access.operands(node.ins)
        known = [x for x in map(self._known, indices) if x is not None and x.array.size and x.array.dtype.kind in "iu"]
        if len(known) < len(indices):
            return False
        part = access.part(node.ins[0].aval.shape, dict(node.attrs), [x.array.astype(np.int64) for x in known])
        if part is None or not self._access(node, part, values):
            return False
        self.used.update(*[x.sources for x in known])
        return True

    def _access(self, node: TraceNode, part: _Selected, values: Atom | None) -> bool:
        x = node.ins[0]
        if values is None:
            self._read(node.out, self._shaped(x, part.whole), part)
            return True
        if values.aval.dtype != x.aval.dtype or x.aval.dtype.kind == "b":
            return False
        pieces = self._pieces(self._shaped(values, part.shape), part)
        if self._is_zeros(x) and all(disjoint(i, j) for (_, i), (_, j) in combinations(pieces, 2)):
            placed = [_Made(PLACE, (piece,), {"shape": part.whole, "index": i}) for piece, i in pieces]
            self._define_whole(node.out, self._sum(placed))
            return True
        put = _Made(RESHAPE, (x,), {"shape": part.whole})
        for k, (piece, index) in enumerate(pieces):
            whole = self._shaped(x, part.whole) if k == 0 else self.emit(put.op, *put.ins, **put.attrs)
            if node.op is not INDEX_PUT:
                piece = self.emit(ADD, self.emit(SLICE, whole, index=index), piece)
            put = _Made(PUT_SLICE, (whole, piece), {"index": index})
        self._define_whole(node.out, put)
        return True

    def _read(self, out: Value, x: Atom, part: _Selected) -> None:
        if len(part.runs) == 1:
            self._define_whole(out, _Made(SLICE, (x,), {"index": part.indices[0]}))
        else:
            slices = tuple([self.emit(SLICE, x, index=index) for index in part.indices])
            self._define_whole(out, _Made(CONCAT, slices, {"axis": part.axis}))

    def _pieces(self, values: Atom, part: _Selected) -> list[tuple[Atom, SliceIndex]]:
        """The part of ``values`` for each slice, and the slice."""
        if len(part.runs) == 1:
            return [(values, part.indices[0])]
        pieces: list[tuple[Atom, SliceIndex]] = []
        start = 0
        for index in part.indices:
            length = index[part.axis][2]
            own = tuple([(start, 1, length) if k == part.axis else (0, 1, n) for k, (_, _, n) in enumerate(index)])
            pieces.append((self.emit(SLICE, values, index=own), index))
            start += length
        return pieces

    def _sum(self, terms: Sequence[_Made]) -> _Made:
        """The terms added in order; the last step is not in the program yet."""
        total = terms[0]
        for term in terms[1:]:
            ins = [self.emit(made.op, *made.ins, **made.attrs) for made in (total, term)]
            total = _Made(ADD, tuple(ins), {})
        return total

    def _shaped(self, atom: Atom, shape: Shape) -> Atom:
        return atom if atom.aval.shape == shape else self.emit(RESHAPE, atom, shape=shape)

    def _define_whole(self, out: Value, made: _Made) -> None:
        """``out`` is the result of ``made`` in its own shape."""
        if made.op.abstract([atom.aval for atom in made.ins], made.attrs).shape == out.aval.shape:  # type: ignore[union-attr]
            self.define(out, made.op, *made.ins, **made.attrs)
        else:
            self.define(out, RESHAPE, self.emit(made.op, *made.ins, **made.attrs), shape=out.aval.shape)

    def _is_zeros(self, atom: Atom) -> bool:
        node = self.producer(atom)
        number = node.ins[0] if node is not None and node.op in (FULL, BROADCAST_TO) else None
        return isinstance(number, Literal) and number.value == 0 and not _is_negative(number.value)


def _is_negative(zero: complex) -> bool:
    value = complex(zero)
    return math.copysign(1.0, value.real) < 0 or math.copysign(1.0, value.imag) < 0


# --- what indices select --------------------------------------------------------------------------------------------


def _runs(array: Array) -> tuple[_Run, ...]:
    """Runs of evenly spaced numbers, none of which are equal, in row-major order; () if they are too many."""
    runs: list[_Run] = []
    flat = array.reshape(-1)
    while flat.size:
        if len(runs) == _MAX_RUNS:
            return ()
        start, step = int(flat[0]), int(flat[1] - flat[0]) if flat.size > 1 else 1
        even = flat == start + step * np.arange(flat.size)
        length = flat.size if even.all() else int(even.argmin())
        if step == 0:
            step = length = 1
        runs.append((start, step, length))
        flat = flat[length:]
    return tuple(runs)


def _one_run(array: Array) -> _Run | None:
    runs = _runs(array)
    return runs[0] if len(runs) == 1 else None


def _inside(indices: Sequence[Array], lengths: Sequence[int]) -> list[Array] | None:
    """``indices`` counted from the start; None if one is out of bounds."""
    if any(i.min() < -n or i.max() >= n for i, n in zip(indices, lengths, strict=True)):
        return None
    return [np.where(i < 0, i + n, i) for i, n in zip(indices, lengths, strict=True)]


def _at_axes(x: Shape, axes: Sequence[int], indices: Sequence[Array]) -> _Selected | None:
    """The part at ``indices`` along neighbouring ``axes``: a slice along each of them, or along all of them as one."""
    first, stop = axes[0], axes[-1] + 1
    inside = _inside(indices, x[first:stop]) if stop - first == len(axes) else None
    if inside is None:
        return None
    before: SliceIndex = tuple([(0, 1, n) for n in x[:first]])
    after: SliceIndex = tuple([(0, 1, n) for n in x[stop:]])
    line = len(axes) > 1 and sum(n > 1 for n in np.broadcast_shapes(*[i.shape for i in inside])) < 2
    spaced = [None] if line else [_one_run(i) for i in inside]  # all diagonals are lines of the same flattened array
    along = tuple([entry for entry in spaced if entry is not None])
    if len(along) == len(axes) and _is_grid(inside):
        return _Selected(x, (*before, *along, *after), first, along[:1])
    flat = sum(i * prod(x[axis + 1 : stop]) for i, axis in zip(inside, axes, strict=True))
    runs = _runs(np.asarray(flat))
    whole = (*x[:first], prod(x[first:stop]), *x[stop:])
    return _Selected(whole, (*before, *runs[:1], *after), first, runs) if runs else None


def _is_grid(indices: Sequence[Array]) -> bool:
    """Whether the arrays have axes of their own, in order: together they select every combination."""
    ndim = max(i.ndim for i in indices)
    own = [[ndim - i.ndim + k for k, n in enumerate(i.shape) if n > 1] for i in indices]
    listed = [k for axes in own for k in axes]
    return all(a < b for a, b in zip(listed, listed[1:], strict=False))


def _along(x: Shape, attrs: Mapping[str, Any], indices: Sequence[Array]) -> _Selected | None:
    return _at_axes(x, (attrs["axis"],), indices)


def _for_each(x: Shape, attrs: Mapping[str, Any], indices: Sequence[Array]) -> _Selected | None:
    """The part of a ``gather`` whose indices are the same in all lines along ``axis``."""
    axis, (index,) = attrs["axis"], indices
    line = index[tuple([np.s_[:] if k == axis else np.s_[:1] for k in range(index.ndim)])]
    inside = _inside([line], [x[axis]]) if bool((index == line).all()) else None
    runs = () if inside is None else _runs(inside[0])
    if not runs:
        return None
    return _Selected(x, tuple([runs[0] if k == axis else (0, 1, n) for k, n in enumerate(index.shape)]), axis, runs)


class _Access(NamedTuple):
    """How an op has its operands, and what its indices select."""

    operands: Callable[[Sequence[Atom]], tuple[Atom | None, Sequence[Atom]]]  # (the values that it writes, the indices)
    part: Callable[[Shape, Mapping[str, Any], Sequence[Array]], _Selected | None]


def _part_at_axes(x: Shape, attrs: Mapping[str, Any], indices: Sequence[Array]) -> _Selected | None:
    return _at_axes(x, attrs["axes"], indices)


_ACCESSES: Mapping[OpDef, _Access] = {
    TAKE: _Access(lambda ins: (None, ins[1:]), _along),
    GATHER: _Access(lambda ins: (None, ins[1:]), _for_each),
    INDEX_GET: _Access(lambda ins: (None, ins[1:]), _part_at_axes),
    INDEX_ADD: _Access(lambda ins: (ins[2], ins[1:2]), _along),
    SCATTER_ADD: _Access(lambda ins: (ins[2], ins[1:2]), _for_each),
    INDEX_PUT: _Access(lambda ins: (ins[1], ins[2:]), _part_at_axes),
    INDEX_PUT_ADD: _Access(lambda ins: (ins[1], ins[2:]), _part_at_axes),
}
