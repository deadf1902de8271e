"""Cuts a graph down to what some elements of its outputs depend on.

Long reductions are replaced by reductions of a random part of their terms, scaled up. The values of
such a graph are estimates; the effect of rounding on them is about that on the whole graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.ops.arithmetic import MULTIPLY
from jitgrad.ops.movement import SUM

Positions = np.ndarray[Any, Any] | None  # of elements in row-major order; None: all

WHOLE_BELOW = 256  # values of so few elements are computed whole
MANY_TERMS = 1 << 17  # terms that the reductions of one node read at most, picked one by one
# Terms of a reduction of everything, and of each of several, from which it is estimated. The latter
# are few, as each may be of another row whose elements depend on a column, and so on.
ESTIMATE_ALL, ESTIMATE_ONE = 4096, 192

PICK: OpDef = define(
    "pick(x, *, positions)",
    kind=Kind.MOVEMENT,
    eager=lambda x, *, positions: np.take(x, positions),
    abstract=lambda avals, attrs: Aval(attrs["positions"].shape, avals[0].dtype),
    register=False,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A graph whose outputs are some elements of another's, and whether it estimates sums.

    ``beside``: where further elements of an output are from, which follow those that were wanted.
    """

    graph: Graph
    estimated: bool
    beside: Mapping[int, np.ndarray[Any, Any]] = field(default_factory=dict)


def sample(
    graph: Graph, wanted: Mapping[int, np.ndarray[Any, Any]], *, estimate: bool, most: float = math.inf
) -> Sample | None:
    """A graph whose outputs are the elements at ``wanted[k]`` of output ``k``, in order.

    ``estimate``: whether long reductions may read a part of their terms. None: more than ``most``
    elements would be computed.
    """
    sampler = _Sampler(graph, estimate, most)
    return Sample(sampler.rebuilt(wanted), sampler.estimated) if sampler.demand(wanted) else None


@lru_cache(maxsize=64)
def _part_of(terms: int, count: int) -> np.ndarray[Any, Any]:
    """About ``count`` of ``range(terms)``, the same ones each time, so that reductions of one axis
    read the same elements."""
    return sorted_set(np.random.default_rng(terms).integers(terms, size=count))


def sorted_set(positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`numpy.unique`, whose first call imports masked arrays, for 30 ms."""
    found = np.sort(positions, axis=None)
    return found[np.append(True, found[1:] != found[:-1])] if found.size else found


def _unique(positions: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """`numpy.unique` of positions below ``size``; marking is faster for many of them."""
    if positions.size < size // 64:
        return sorted_set(positions)
    marked = np.zeros(size, np.bool_)
    marked[positions] = True
    return np.flatnonzero(marked)


def _places_in(available: np.ndarray[Any, Any], positions: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """`numpy.searchsorted` of positions below ``size`` that are all available; a table is faster for
    many of them."""
    if positions.size < size // 64:
        return np.searchsorted(available, positions)
    table = np.empty(size, np.int64)
    table[available] = np.arange(available.size)
    return np.asarray(table[positions])


def _broadcast_positions(positions: np.ndarray[Any, Any], shape: Shape, operand: Shape) -> Positions:
    """Where the elements at ``positions`` of ``shape`` come from in an operand that is broadcast."""
    if operand == shape:
        return positions
    if math.prod(operand) == 1:
        return None
    index = np.unravel_index(positions, shape)[len(shape) - len(operand) :]
    return _ravel([np.zeros_like(i) if n == 1 else i for i, n in zip(index, operand, strict=True)], operand)


def _ravel(index: Sequence[np.ndarray[Any, Any]], shape: Shape) -> np.ndarray[Any, Any]:
    """`numpy.ravel_multi_index` for arrays that broadcast."""
    flat: Any = np.int64(0)
    for i, n in zip(index, shape, strict=True):
        flat = flat * n + i
    return np.asarray(flat)


class _Sampler:
    """First what each value is wanted for, from the outputs back; then the smaller graph."""

    def __init__(self, graph: Graph, estimate: bool, most: float) -> None:
        self.graph = graph
        self.left = most
        self.estimate = estimate
        self.estimated = False
        self.wanted: dict[Value, Positions] = {}
        self.reads: dict[TraceNode, list[Positions]] = {}
        self.scales: dict[TraceNode, float] = {}
        self.grids: dict[TraceNode, np.ndarray[Any, Any]] = {}  # where products of rows and columns have what is wanted
        self.nodes: list[TraceNode] = []
        self.small: dict[Value, Value] = {}  # what stands for each value in the new graph

    def demand(self, wanted: Mapping[int, np.ndarray[Any, Any]]) -> bool:
        """Find what is wanted of each value; False if it is too much."""
        for k, positions in wanted.items():
            self.want(self.graph.outputs[k], positions)
        for node in reversed(self.graph.nodes):
            if any(out in self.wanted for out in node.outs):
                if node.op.multiple:
                    self.wanted.update(dict.fromkeys(node.outs))
                self.reads[node] = self.needs(node)
                for atom, read in zip(node.ins, self.reads[node], strict=True):
                    self.want(atom, read)
                self.left -= self.size(node)
                if self.left < 0:
                    return False
        return True

    def size(self, node: TraceNode) -> int:
        """How many elements a run computes for ``node``."""
        found = [self.wanted.get(out, np.empty(0)) for out in node.outs]
        sizes = [out.aval.size if p is None else p.size for out, p in zip(node.outs, found, strict=True)]
        return sum(sizes) + sum(p.size for p in self.reads[node] if p is not None and p.ndim > 1)

    def rebuilt(self, wanted: Mapping[int, np.ndarray[Any, Any]]) -> Graph:
        """The smaller graph."""
        for value in self.graph.inputs:
            if self.wanted.get(value) is None:
                self.small[value] = value
            else:
                self.small[value] = self.add(PICK, (value,), value.aval, positions=self.wanted[value])
        for node in self.graph.nodes:
            if node in self.reads:
                self.rebuild(node)
        outputs = tuple([self.read(self.graph.outputs[k], positions) for k, positions in wanted.items()])
        return Graph(self.graph.name, self.graph.inputs, tuple(self.nodes), outputs)

    # --- from the outputs back -----------------------------------------------------------------------

    def want(self, atom: Atom, positions: Positions) -> None:
        if isinstance(atom, Literal):
            return
        if positions is None or atom.aval.size <= WHOLE_BELOW:
            self.wanted[atom] = None
            return
        before = self.wanted.get(atom, positions)
        if before is positions:
            unique = positions
            if positions.ndim != 1 or (positions.size > 1 and not np.all(positions[1:] > positions[:-1])):
                unique = _unique(positions, atom.aval.size)
        elif before is None:
            return
        else:
            both = np.concatenate([before, positions.reshape(-1)])
            unique = before if np.array_equal(before, positions) else _unique(both, atom.aval.size)
        self.wanted[atom] = None if 2 * unique.size > atom.aval.size else unique

    def needs(self, node: TraceNode) -> list[Positions]:
        """The positions of each operand that the wanted elements of ``node`` depend on."""
        everything: list[Positions] = [None] * len(node.ins)
        if node.op.multiple:
            return everything
        aval, positions = node.out.aval, self.wanted[node.out]
        if node.op.kind is Kind.REDUCE:
            return self.terms(node, positions)
        if positions is None and node.op.kind is Kind.MOVEMENT and aval.size <= WHOLE_BELOW < node.ins[0].aval.size:
            positions = np.arange(aval.size).reshape(aval.shape)  # few elements of many
        if node.op.contraction:
            return self.factors(node, positions) or everything
        if positions is None:
            return everything
        if node.op.kind is Kind.ELEMENTWISE:
            return [_broadcast_positions(positions, aval.shape, atom.aval.shape) for atom in node.ins]
        if node.op.kind is Kind.MOVEMENT:
            return [_moved_positions(node, positions)]
        if node.op.name == "copy":
            return [positions]
        return everything

    def terms(self, node: TraceNode, positions: Positions) -> list[Positions]:
        """The positions of the terms of a reduction, one row for each wanted result."""
        x, out, axes = node.ins[0].aval, node.out.aval, node.attr("axis")
        if not x.size or (positions is None and out.size > WHOLE_BELOW):
            return [None]
        rows: np.ndarray[Any, Any] = np.arange(out.size) if positions is None else positions
        count = x.size // out.size
        chosen = self.chosen_terms(node, rows.size, count)
        if chosen is None:
            return [None]
        if positions is None and x.size <= WHOLE_BELOW:
            return [None]
        kept = iter(np.unravel_index(rows[:, None], out.shape) if out.shape else ())
        reduced = iter(np.unravel_index(chosen[None, :], tuple(x.shape[k] for k in range(x.ndim) if k in axes)))
        index = [next(reduced) if k in axes else next(kept) for k in range(x.ndim)]
        return [np.broadcast_to(_ravel(index, x.shape), (rows.size, chosen.size))]

    def chosen_terms(self, node: TraceNode, rows: int, count: int) -> np.ndarray[Any, Any] | None:
        """Which of ``count`` terms each of ``rows`` sums of ``node`` reads; None: too many to be picked."""
        monoid = node.op.monoid
        is_product = monoid is not None and monoid.name == "prod"
        part = ESTIMATE_ALL if node.out.aval.size == 1 else ESTIMATE_ONE
        if not self.estimate or node.out.aval.dtype.kind != "f" or is_product or 2 * part > count:
            return np.arange(count) if rows * count <= MANY_TERMS else None
        chosen = _part_of(count, part)
        self.estimated = True
        if node.op.contraction or (monoid is not None and monoid.name == "sum"):
            self.scales[node] = count / chosen.size
        return chosen

    def factors(self, node: TraceNode, positions: Positions) -> list[Positions] | None:
        """The positions of the factors of each term of the wanted sums of a matrix product, one row for
        each sum; None: all of both matrices."""
        (x, y), out = [atom.aval for atom in node.ins], node.out.aval
        if x.ndim == y.ndim == 2 and positions is not None:
            return self.rows_and_columns(node, positions)
        whole = positions is None and (out.size > WHOLE_BELOW or max(x.size, y.size) <= WHOLE_BELOW)
        if whole or x.dtype != y.dtype or out.dtype.itemsize < 4 or not out.size or not x.size:
            return None
        wanted: np.ndarray[Any, Any] = np.arange(out.size) if positions is None else positions
        chosen = self.chosen_terms(node, wanted.size, x.shape[-1])
        if chosen is None:
            return None
        index = [*np.unravel_index(wanted[:, None], out.shape)] if out.shape else []
        column = [index.pop()] if y.ndim > 1 else []
        row = [index.pop()] if x.ndim > 1 else []
        terms = chosen[None, :]
        found = [(*_batch(index, x.shape[:-2]), *row, terms), (*_batch(index, y.shape[:-2]), terms, *column)]
        shape = (wanted.size, chosen.size)
        return [np.broadcast_to(_ravel(i, a.shape), shape) for i, a in zip(found, (x, y), strict=True)]

    def rows_and_columns(self, node: TraceNode, positions: np.ndarray[Any, Any]) -> list[Positions] | None:
        """The positions of the rows and columns whose product has the wanted elements: a BLAS product
        of smaller matrices is faster than many sums."""
        x, columns = node.ins[0].aval, node.out.aval.shape[1]
        i, j = np.unravel_index(positions, node.out.aval.shape)
        row, column = _unique(i, x.shape[0]), _unique(j, columns)
        inner = x.shape[1]
        if self.estimate and node.out.aval.dtype.kind == "f" and inner >= 2 * ESTIMATE_ONE:
            terms = _part_of(inner, ESTIMATE_ONE)
            self.estimated = True
            self.scales[node] = inner / terms.size
        else:
            terms = np.arange(inner)
        self.grids[node] = np.searchsorted(row, i) * column.size + np.searchsorted(column, j)
        return [row[:, None] * inner + terms, terms[:, None] * columns + column]

    # --- the smaller graph ---------------------------------------------------------------------------

    def add(self, op: OpDef, ins: tuple[Atom, ...], like: Aval, **attrs: Any) -> Value:
        avals = [atom.aval for atom in ins]
        aval = op.abstract(avals, attrs)
        assert isinstance(aval, Aval)
        out = Value(Aval(aval.shape, like.dtype, aval.weak))
        self.nodes.append(TraceNode(op, ins, (out,), tuple(attrs.items())))
        return out

    def read(self, atom: Atom, positions: Positions) -> Atom:
        """The elements at ``positions`` of ``atom`` in the new graph."""
        if isinstance(atom, Literal):
            return atom
        small, available = self.small[atom], self.wanted[atom]
        if positions is None or positions is available:
            return small
        if available is not None:
            if positions.shape == available.shape and np.array_equal(positions, available):
                return small
            positions = _places_in(available, positions, atom.aval.size)
        return self.add(PICK, (small,), atom.aval, positions=positions)

    def as_number(self, atom: Atom) -> Atom:
        return self.add(PICK, (atom,), atom.aval, positions=np.asarray(0))

    def rebuild(self, node: TraceNode) -> None:
        ins = tuple([self.read(a, p) for a, p in zip(node.ins, self.reads[node], strict=True)])
        if node in self.grids:
            result: Atom = self.add(node.op, ins, node.out.aval)
            if node in self.scales:
                result = self.add(MULTIPLY, (result, Literal(self.scales[node])), node.out.aval)
            self.small[node.out] = self.add(PICK, (result,), node.out.aval, positions=self.grids[node])
            return
        summed = node.op.contraction or node.op.kind is Kind.REDUCE
        if summed and self.reads[node][0] is not None:
            self.rebuild_reduction(node, ins)
        elif node.op.kind is Kind.ELEMENTWISE:
            if self.wanted[node.out] is not None:  # its elements are in one axis
                ins = tuple([self.as_number(a) if a.aval.size == 1 and a.aval.ndim else a for a in ins])
            self.small[node.out] = self.add(node.op, ins, node.out.aval, **dict(node.attrs))
        elif ins and isinstance(ins[0], Value) and self.reads[node][0] is not None:  # movement, or a copy
            self.small[node.out] = ins[0]
        elif all(self.wanted.get(out) is None for out in node.outs):
            self.nodes.append(TraceNode(node.op, ins, node.outs, node.attrs))
            self.small.update(zip(node.outs, node.outs, strict=True))
        else:
            whole = Value(node.out.aval)
            self.nodes.append(TraceNode(node.op, ins, (whole,), node.attrs))
            self.small[node.out] = self.add(PICK, (whole,), node.out.aval, positions=self.wanted[node.out])

    def rebuild_reduction(self, node: TraceNode, ins: tuple[Atom, ...]) -> None:
        op = node.op
        if op.contraction:
            op, ins = SUM, (self.add(MULTIPLY, ins, node.out.aval),)
        result = self.add(op, ins, node.out.aval, axis=(1,))
        if node in self.scales:
            result = self.add(MULTIPLY, (result, Literal(self.scales[node])), node.out.aval)
        if self.wanted[node.out] is None:
            result = self.add(PICK, (result,), node.out.aval, positions=np.arange(result.aval.size).reshape(node.out.aval.shape))
        self.small[node.out] = result


def _batch(index: Sequence[np.ndarray[Any, Any]], shape: Shape) -> list[np.ndarray[Any, Any]]:
    """The batch index of a factor with the batch axes ``shape``, which may be broadcast."""
    own = index[len(index) - len(shape) :]
    return [np.zeros_like(i) if n == 1 else i for i, n in zip(own, shape, strict=True)]


def _moved_positions(node: TraceNode, positions: np.ndarray[Any, Any]) -> Positions:
    """Where movement takes the elements at ``positions`` from; None: unknown."""
    op, x, out = node.op, node.ins[0].aval, node.out.aval
    if x.size == 1:
        return np.zeros_like(positions)
    if op.keeps_order:
        return positions
    if op.name == "broadcast_to":
        return _broadcast_positions(positions, out.shape, x.shape)
    if op.name == "permute_dims":
        index = np.unravel_index(positions, out.shape)
        axes = node.attr("axes")
        return _ravel([index[axes.index(k)] for k in range(x.ndim)], x.shape)
    if op.name == "slice":
        index = np.unravel_index(positions, out.shape)
        return _ravel([s + step * i for (s, step, _), i in zip(node.attr("index"), index, strict=True)], x.shape)
    return None
