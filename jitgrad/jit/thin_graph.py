"""Cuts a graph down to some rows of every array, where each result depends on everything.

An axis keeps some of its positions: those of the wanted elements, and random ones that stand for all
others; see `axis_classes`. What is read elsewhere is read at the nearest position that is kept, and
sums are scaled up. The values of such a graph are others; rounding moves them about as far as those
of the whole graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape
from jitgrad.core.gc_paused import gc_paused
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.jit.axis_classes import AxisClasses
from jitgrad.jit.sampled_graph import PICK, Sample
from jitgrad.ops.arithmetic import MULTIPLY
from jitgrad.ops.creation import FULL
from jitgrad.ops.movement import SLICE, SUM

BESIDE = 8192  # elements of each result that tell how far others move
WORTH = 0.15  # of the elements of the whole graph: of more there is too little to be gained

KeptAxes = tuple[np.ndarray[Any, Any] | None, ...]  # the positions along each axis; None: all of them


def _read_rows(x: np.ndarray[Any, Any], axes: KeptAxes) -> np.ndarray[Any, Any]:
    for k, positions in enumerate(axes):
        if positions is not None:
            x = np.take(x, positions, axis=k)
    return x


def _write_rows(x: np.ndarray[Any, Any], v: np.ndarray[Any, Any], axes: tuple[np.ndarray[Any, Any], ...]) -> np.ndarray[Any, Any]:
    out = np.array(x, copy=True, order="C")
    out[np.ix_(*axes)] = v
    return out


ROWS: OpDef = define(
    "rows(x, *, axes)",
    kind=Kind.MOVEMENT,
    eager=lambda x, *, axes: _read_rows(x, axes),
    abstract=lambda avals, attrs: Aval(
        tuple(n if a is None else a.size for n, a in zip(avals[0].shape, attrs["axes"], strict=True)), avals[0].dtype
    ),
    register=False,
)
PUT_ROWS: OpDef = define(
    "put_rows(x, v, *, axes)",
    kind=Kind.MOVEMENT,
    eager=lambda x, v, *, axes: _write_rows(x, v, axes),
    abstract=lambda avals, attrs: Aval(avals[0].shape, avals[0].dtype),
    register=False,
)
LOOK_UP: OpDef = define(
    "look_up(x, *, table)",
    kind=Kind.MOVEMENT,
    eager=lambda x, *, table: table[x],
    abstract=lambda avals, attrs: Aval(avals[0].shape, avals[0].dtype),
    register=False,
)


SUM_OF_PART: OpDef = define(
    "sum_of_part(x, *, axis, shape, scale)",  # of an array of ``shape``, of whose terms ``x`` has one in ``scale``
    kind=Kind.REDUCE,
    monoid=SUM.monoid,
    eager=lambda x, *, axis, shape, scale: SUM.eager(x, axis=axis) * x.dtype.type(scale),
    abstract=lambda avals, attrs: SUM.abstract(avals, {"axis": attrs["axis"]}),
    register=False,
)


class _NotThinError(Exception):
    """An op whose result cannot be cut down."""


@gc_paused()
def thinned(graph: Graph, wanted: Mapping[int, np.ndarray[Any, Any]]) -> Sample | None:
    """A graph whose outputs stand for the elements at ``wanted[k]`` of output ``k``, in order, and
    others beside them.

    None if there is an op that needs all of its operands, or little to be gained.
    """
    classes = AxisClasses(graph)
    whole = sum(out.aval.size for node in graph.nodes for out in node.outs)
    for all_axes in (False, True):
        thinner = _Thinner(classes, classes.kept_positions(wanted, all_axes))
        if sum(math.prod(thinner.shape(out)) for node in graph.nodes for out in node.outs) <= WORTH * whole:
            break
    else:
        return None
    beside = {k: thinner.some_of(graph.outputs[k]) for k in wanted}
    try:
        for value in graph.inputs:
            thinner.small[value] = thinner.rows(value, value.aval, thinner.axes(value))
        for node in graph.nodes:
            thinner.add_node(node)
        everything = {k: np.concatenate([positions, beside[k]]) for k, positions in wanted.items()}
        outputs = tuple([thinner.at(graph.outputs[k], positions) for k, positions in everything.items()])
    except _NotThinError:
        return None
    return Sample(Graph(graph.name, graph.inputs, tuple(thinner.nodes), outputs), True, beside)


def _nearest(kept: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """For each of ``positions`` the number of the one in ``kept`` that is nearest."""
    after = np.clip(np.searchsorted(kept, positions), 1, max(1, kept.size - 1))
    before = after - 1
    after = np.minimum(after, kept.size - 1)
    return np.where(np.abs(kept[after] - positions) <= np.abs(positions - kept[before]), after, before)


class _Thinner:
    """Builds the smaller graph, node by node."""

    def __init__(self, classes: AxisClasses, kept: Mapping[int, np.ndarray[Any, Any]]) -> None:
        self.classes = classes
        self.kept = kept
        self.nodes: list[TraceNode] = []
        self.small: dict[Atom, Atom] = {}
        self._places: dict[Any, np.ndarray[Any, Any]] = {}

    # --- axes ------------------------------------------------------------------------------------

    def axes(self, atom: Atom) -> KeptAxes:
        return tuple([self.kept.get(c) for c in self.classes.of(atom)])

    def shape(self, atom: Atom) -> Shape:
        """That of what is kept of ``atom``."""
        return tuple([n if a is None else a.size for n, a in zip(atom.aval.shape, self.axes(atom), strict=True)])

    def some_of(self, atom: Atom) -> np.ndarray[Any, Any]:
        """Random ones of the elements of ``atom`` that are kept."""
        random = np.random.default_rng(0)
        index = [random.choice(self.positions(atom, k), BESIDE) for k in range(len(atom.aval.shape))]
        return np.asarray(np.ravel_multi_index(index, atom.aval.shape)) if index else np.zeros(BESIDE, np.int64)

    def is_whole(self, *atoms: Atom) -> bool:
        return not any(c in self.kept for atom in atoms for c in self.classes.of(atom))

    def positions(self, atom: Atom, k: int) -> np.ndarray[Any, Any]:
        """The positions that are kept of axis ``k``."""
        kept = self.kept.get(self.classes.of(atom)[k])
        return np.arange(atom.aval.shape[k]) if kept is None else kept

    def nearest(self, atom: Atom, k: int, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Where what is kept of axis ``k`` has what is nearest to each of ``positions``."""
        kept = self.kept.get(self.classes.of(atom)[k])
        return positions if kept is None else _nearest(kept, positions)

    def same(self, atom: Atom, *axes: int) -> tuple[int, ...]:
        """What two ``atom``s have in common of which ``axes`` the same positions are kept."""
        return tuple([id(self.kept.get(self.classes.of(atom)[k])) for k in axes])

    def scale(self, atom: Atom, axes: Sequence[int]) -> float:
        """By how many times fewer terms sums along ``axes`` have."""
        return math.prod([atom.aval.shape[k] / self.positions(atom, k).size for k in axes])

    def once(self, key: Any, make: Callable[[], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """What ``make`` gives, which is the same for every node with ``key``."""
        if key not in self._places:
            self._places[key] = make()
        return self._places[key]

    # --- nodes -----------------------------------------------------------------------------------

    def emit(self, op: OpDef, ins: Sequence[Atom], like: Aval, attrs: Mapping[str, Any]) -> Value:
        aval = op.abstract([atom.aval for atom in ins], attrs)
        assert isinstance(aval, Aval)
        out = Value(Aval(aval.shape, like.dtype, aval.weak))
        self.nodes.append(TraceNode(op, tuple(ins), (out,), tuple(attrs.items())))
        return out

    def read(self, atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else self.small[atom]

    def rows(self, atom: Atom, like: Aval, axes: KeptAxes) -> Atom:
        """What ``atom`` of the new graph has at ``axes``."""
        return atom if all(a is None for a in axes) else self.emit(ROWS, [atom], like, {"axes": axes})

    def at(self, output: Atom, positions: np.ndarray[Any, Any]) -> Atom:
        """The elements at ``positions`` of an output, all of which are kept."""
        shape = output.aval.shape
        index = [self.nearest(output, k, i) for k, i in enumerate(np.unravel_index(positions, shape))] if shape else []
        flat = np.ravel_multi_index(index, self.shape(output)) if shape else positions
        return self.emit(PICK, [self.read(output)], output.aval, {"positions": np.asarray(flat)})

    def add_node(self, node: TraceNode) -> None:
        if self.is_whole(*node.ins, *node.outs):
            self.nodes.append(TraceNode(node.op, tuple(map(self.read, node.ins)), node.outs, node.attrs))
            self.small.update(zip(node.outs, node.outs, strict=True))
            return
        if node.op.multiple:
            raise _NotThinError
        attrs, ins, out = dict(node.attrs), [self.read(a) for a in node.ins], node.out.aval
        if node.op.kind is Kind.ELEMENTWISE or node.op.name in ("permute_dims", "expand_dims", "squeeze", "copy"):
            small = self.emit(node.op, ins, out, attrs)
        elif (rule := _RULES.get(node.op.name)) is not None:
            small = rule(self, node, ins, attrs)
        else:
            raise _NotThinError
        if small.aval.shape != self.shape(node.out):
            raise _NotThinError
        self.small[node.out] = small


Thinning = Callable[[_Thinner, TraceNode, list[Atom], dict[str, Any]], Any]


def _scaled(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any], scale: float) -> Value:
    """The op of ``node``, which adds up fewer terms."""
    aval = node.out.aval
    result = t.emit(node.op, ins, aval, attrs)
    if scale == 1.0:
        return result
    if aval.dtype.kind != "f":
        raise _NotThinError
    return t.emit(MULTIPLY, [result, Literal(scale)], aval, {})


def _sum(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    aval, scale = node.out.aval, t.scale(node.ins[0], attrs["axis"])
    if scale == 1.0 or aval.dtype.kind != "f":
        return _scaled(t, node, ins, attrs, scale)
    return t.emit(SUM_OF_PART, ins, aval, {**attrs, "shape": node.ins[0].aval.shape, "scale": scale})


def _extremum(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    return t.emit(node.op, ins, node.out.aval, attrs)


def _product(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    return _scaled(t, node, ins, attrs, t.scale(node.ins[0], [len(node.ins[0].aval.shape) - 1]))


def _cumulative(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    return _scaled(t, node, ins, attrs, t.scale(node.out, [attrs["axis"]]))


def _with_shape(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    return t.emit(node.op, ins, node.out.aval, {**attrs, "shape": t.shape(node.out)})


def _iota(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Atom:
    return t.rows(t.emit(node.op, ins, node.out.aval, attrs), node.out.aval, t.axes(node.out))


def _reshape(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Atom:
    x, out = node.ins[0], node.out
    shape, given = out.aval.shape, x.aval.shape

    def places() -> np.ndarray[Any, Any]:
        flat = np.ravel_multi_index(np.ix_(*[t.positions(out, k) for k in range(len(shape))]), shape)
        index = [t.nearest(x, k, i) for k, i in enumerate(np.unravel_index(flat, given))]
        return np.asarray(np.ravel_multi_index(index, t.shape(x)))

    if shape == given and t.axes(x) == t.axes(out):
        return ins[0]
    key = "reshape", shape, given, t.same(x, *range(len(given))), t.same(out, *range(len(shape)))
    return t.emit(PICK, ins, out.aval, {"positions": t.once(key, places)})


def _slice(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Atom:
    x, out = node.ins[0], node.out
    if t.is_whole(x):
        return t.rows(t.emit(SLICE, ins, out.aval, attrs), out.aval, t.axes(out))
    return t.rows(ins[0], out.aval, tuple([_sliced(t, x, out, k, s, step) for k, (s, step, _) in enumerate(attrs["index"])]))


def _sliced(t: _Thinner, x: Atom, out: Value, k: int, start: int, step: int) -> np.ndarray[Any, Any]:
    """Where what is kept of axis ``k`` of ``x`` has what is kept of a slice of it."""
    key = "slice", t.same(x, k), t.same(out, k), x.aval.shape[k], out.aval.shape[k], start, step
    return t.once(key, lambda: t.nearest(x, k, start + step * t.positions(out, k)))


def _put(t: _Thinner, base: Atom, part: Atom, node: TraceNode, v: Atom, index: Any) -> Value:
    """``base`` with ``part``, which is kept of ``v``, at the slices ``index``."""
    targets, sources = [], []
    for k, (start, step, m) in enumerate(index):
        number, rest = np.divmod(t.positions(node.out, k) - start, step)
        inside = np.flatnonzero((rest == 0) & (number >= 0) & (number < m))
        targets.append(inside)
        sources.append(t.nearest(v, k, number[inside]))
    part = t.rows(part, node.out.aval, tuple(sources))
    return t.emit(PUT_ROWS, [base, part], node.out.aval, {"axes": tuple(targets)})


def _put_slice(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    return _put(t, ins[0], ins[1], node, node.ins[1], attrs["index"])


def _place(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    aval = node.out.aval
    base = t.emit(FULL, [Literal(0)], aval, {"shape": t.shape(node.out), "dtype": aval.dtype})
    return _put(t, base, ins[0], node, node.ins[0], attrs["index"])


def _concat(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    axis, out, start = attrs["axis"], node.out.aval, 0
    kept, parts = t.positions(node.out, axis), []
    for atom, small in zip(node.ins, ins, strict=True):
        n = atom.aval.shape[axis]
        inside = kept[(kept >= start) & (kept < start + n)] - start
        axes: list[Any] = [None] * len(out.shape)
        key = "concat", t.same(atom, axis), t.same(node.out, axis), n, start
        axes[axis] = t.once(key, partial(t.nearest, atom, axis, inside))
        parts.append(t.rows(small, atom.aval, tuple(axes)))
        start += n
    return t.emit(node.op, parts, out, attrs)


def _looked_up(t: _Thinner, index: Atom, small: Atom, x: Atom, axis: int) -> Atom:
    """Indices into ``axis`` of ``x`` as those of what is kept of it."""
    if t.is_whole(x):
        return small
    n = x.aval.shape[axis]
    table = t.once(("table", t.same(x, axis), n), lambda: t.nearest(x, axis, np.arange(n)))
    return t.emit(LOOK_UP, [small], index.aval, {"table": table})


def _indexed(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    """take, gather and their kin: operand 1 has indices into an axis of operand 0."""
    index = _looked_up(t, node.ins[1], ins[1], node.ins[0], attrs["axis"])
    return t.emit(node.op, [ins[0], index, *ins[2:]], node.out.aval, attrs)


def _index_get(t: _Thinner, node: TraceNode, ins: list[Atom], attrs: dict[str, Any]) -> Value:
    first = len(node.ins) - len(attrs["axes"])
    pairs = zip(attrs["axes"], node.ins[first:], ins[first:], strict=True)
    indices = [_looked_up(t, atom, small, node.ins[0], axis) for axis, atom, small in pairs]
    return t.emit(node.op, [*ins[:first], *indices], node.out.aval, attrs)


_RULES: Mapping[str, Thinning] = {
    "sum": _sum,
    "max": _extremum,
    "min": _extremum,
    "any": _extremum,
    "all": _extremum,
    "matmul": _product,
    "cumulative_sum": _cumulative,
    "broadcast_to": _with_shape,
    "full": _with_shape,
    "iota": _iota,
    "reshape": _reshape,
    "slice": _slice,
    "put_slice": _put_slice,
    "place": _place,
    "concat": _concat,
    "take": _indexed,
    "gather": _indexed,
    "index_add": _indexed,
    "scatter_add": _indexed,
    "index_get": _index_get,
    "index_put": _index_get,
    "index_put_add": _index_get,
}
