"""Computes the gradient of a stencil where it is summed, from the few values that its terms are made of.

A window of 5 by 5 elements gives a gradient of 25 terms, each an array put into zeros at a place of its own. Written to
memory they are most of what the program moves. All are elementwise functions of a few arrays: with these among zeros, one
kernel reads them at 25 offsets, computes the terms and adds them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

from jitgrad.compiler.compiler_ops import IDENTITY, Index
from jitgrad.compiler.cost import expensive
from jitgrad.compiler.fusion.cheapest_cut import cheapest_cut
from jitgrad.compiler.passes.border_values import zero_at_border
from jitgrad.compiler.passes.merge_pads import common_pad, places_side_by_side
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Shape
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.comparison import WHERE
from jitgrad.ops.movement import BROADCAST_TO, PLACE, SLICE

# Passes over an array, of its size: a result that a kernel would not have to write is written and read, another array is
# copied and the copy read, and what is put into zeros anyway is read at some more places.
_WRITTEN, _COPIED, _PLACED = 2, 3, 1
_FOLLOWING = 4  # times as many nodes after the bases as before the terms are looked at
_NEAR = 24  # values for each term, among which those that it is computed of are looked for
_PARTS = 5040  # of a byte, so that shares of it are whole numbers


def gather_places(graph: Graph, tuning: Tuning) -> Graph:
    """``place(f(a, b), i) + place(g(a, b), j)`` become ``f(place(a, i), place(b, i)) + g(place(a, j), place(b, j))``.

    Where ``f`` of zeros is not certainly 0, it is ``where(inside, f(...), 0)`` with an array that says what is inside, so
    that the border may be anything, NaN too. `merge_pads` makes one array of all places of ``a``.
    """
    plans: dict[TraceNode, _Gathered] = {}
    sums = list(_sums(graph))
    position = {node: k for k, node in enumerate(graph.nodes)} if sums else {}
    for places in sums:
        plan = _Cone(graph, places, position, tuning).plan()
        if plan is not None:
            plans.update(dict.fromkeys(places, plan))
    if not plans:
        return graph
    new = _Gatherer(graph, plans)
    for node in new.visit():
        new.place(node)
    return new.graph()


def _sums(graph: Graph) -> Iterator[list[TraceNode]]:
    """The places of arrays of one shape whose results meet in one sum."""
    parent: dict[TraceNode, TraceNode] = {}
    terms: dict[Atom, TraceNode] = {}  # a place among those in a sum

    def root(node: TraceNode) -> TraceNode:
        while (above := parent[node]) is not node:
            parent[node] = node = parent[above]
        return node

    apart = places_side_by_side(graph)
    for node in graph.nodes:
        if node.op is PLACE and node not in apart and _is_plain(node):
            parent[node] = terms[node.out] = node
        elif node.op is ADD:
            roots = [root(terms[atom]) for atom in node.ins if atom in terms]
            if roots:
                parent[roots[-1]] = roots[0]
                terms[node.out] = roots[0]
    groups: dict[Any, list[TraceNode]] = {}
    for node in parent:
        groups.setdefault((root(node), node.ins[0].aval.shape, node.out.aval), []).append(node)
    yield from (places for places in groups.values() if len({p.ins[0] for p in places}) > 1)


def _is_plain(node: TraceNode) -> bool:
    entries = zip(node.attr("index"), node.out.aval.shape, strict=True)
    whole = all(step == 1 and length > 0 for (_, step, length), _ in entries)
    return whole and isinstance(node.ins[0], Value) and node.out.aval.dtype.kind == "f"


@dataclass(frozen=True, eq=False, slots=True)
class _Gathered:
    """How the terms of a sum are computed.

    Attributes:
        nodes: that are computed again at each place, in program order.
        bases: values that are put into zeros.
        masked: terms that are not certainly 0 where the bases are.
        late: nodes that are computed of bases that are computed, for which ``early`` values, which are not, are
            computed again: no kernel has room for all that lies between.
    """

    nodes: dict[Atom, TraceNode]
    bases: frozenset[Atom]
    masked: frozenset[Atom]
    early: frozenset[Atom]
    late: frozenset[TraceNode]


class _Cone:
    """What the terms of one sum are made of, by elementwise ops over their elements."""

    def __init__(
        self, graph: Graph, places: Sequence[TraceNode], position: Mapping[TraceNode, int], tuning: Tuning
    ) -> None:
        self.graph, self.places, self.position, self.tuning = graph, places, position, tuning
        self.shape: Shape = places[0].ins[0].aval.shape
        self.terms: dict[Index, list[Value]] = {}  # by place
        for place in places:
            self.terms.setdefault(place.attr("index"), []).extend(a for a in place.ins if isinstance(a, Value))
        self.operands: dict[Value, tuple[Value, ...]] = {}

    def plan(self) -> _Gathered | None:
        """How to gather the sum; None if that does not pay."""
        pad = common_pad(self.places)
        if prod(pad.shape) > (1 + self.tuning.max_pad_growth) * self.places[0].out.aval.size:
            return None
        self._explore()
        if any(value.aval.weak for value in self.operands):
            return None  # a place is no Python number
        bases = self._bases(self._bases(frozenset()))
        reached = self._reached(bases)
        all_terms = {value for values in reached.values() for value in values}
        bases &= all_terms
        nodes = {node.out: node for node in self._in_order(value for value in all_terms - bases if self.operands[value])}
        terms = {term for own in self.terms.values() for term in own}
        masked = terms - bases - zero_at_border(nodes.values(), [b for b in bases if isinstance(b, Value)])
        saved = sum(_WRITTEN * term.aval.dtype.itemsize for term in terms) - sum(map(self._cost, bases))
        saved -= _WRITTEN if masked else 0
        operations = sum(map(self._operations, (nodes[v] for values in reached.values() for v in values if v in nodes)))
        if len(bases) >= len(terms) or saved <= 0 or operations > saved * self.tuning.gathered_operations:
            return None
        early, late = self._around(nodes, bases)
        return _Gathered({k: n for k, n in nodes.items()}, frozenset[Atom](bases), frozenset[Atom](masked), early, late)

    def _around(
        self, nodes: Mapping[Value, TraceNode], bases: frozenset[Value]
    ) -> tuple[frozenset[Atom], frozenset[TraceNode]]:
        """The `early` values and `late` nodes of `_Gathered`: none if one kernel may hold all of them."""
        if len(self.operands) <= self.tuning.max_kernel_nodes:
            return frozenset(), frozenset()
        following = self._after(base for base in bases if self.operands[base])
        early = frozenset(nodes.keys() - {out for node in following for out in node.outs})
        return early, frozenset(node for node in following if not early.isdisjoint(node.ins))

    def _after(self, bases: Iterable[Value]) -> set[TraceNode]:
        """The elementwise nodes that read the bases, or each other, up to a number of them."""
        followed: dict[TraceNode, None] = {}
        waiting = list(bases)
        for value in waiting:
            for node in self.graph.users(value):
                like = node.op.kind is Kind.ELEMENTWISE and node.outs[0].aval.shape == self.shape
                if like and node not in followed and len(followed) < _FOLLOWING * self.tuning.max_gathered_nodes:
                    followed[node] = None
                    waiting += node.outs
        return set(followed)

    def _in_order(self, values: Iterable[Value]) -> list[TraceNode]:
        """The nodes that compute ``values``, in program order."""
        nodes = [node for value in values if (node := self.graph.producer(value)) is not None]
        return sorted(nodes, key=self.position.__getitem__)

    def _explore(self) -> None:
        """Find the operands of the terms, theirs, and so on, up to a number of values."""
        waiting = list(dict.fromkeys(term for terms in self.terms.values() for term in terms))
        most = min(self.tuning.max_gathered_nodes, _NEAR * len(waiting))
        for value in waiting:
            if value not in self.operands:
                room = len(self.operands) < most
                self.operands[value] = own = self._arrays(value) if room else ()
                waiting += own

    def _arrays(self, value: Value) -> tuple[Value, ...]:
        """The arrays that ``value`` is computed of, element by element; none if it has to be in memory."""
        node = self.graph.producer(value)
        if node is None or node.op.kind is not Kind.ELEMENTWISE or node.op.function is not None or len(node.outs) > 1:
            return ()
        arrays = [a for a in node.ins if not isinstance(a, Literal) and a.aval.shape]
        same = node.op.scalar is not None and all(a.aval.shape == self.shape for a in arrays)
        return tuple(dict.fromkeys(arrays)) if same else ()

    def _bases(self, before: frozenset[Value]) -> frozenset[Value]:
        """The cheapest values for the terms at each place, all together.

        What several places need is shared among them. ``before`` is an earlier answer: what it is made of is not needed.
        """
        needed = Counter(value for values in self._reached(before).values() for value in values)
        everywhere = Counter(value for values in self._reached(frozenset()).values() for value in values)

        def share(value: Value) -> int:
            return self._cost(value) * _PARTS // (needed.get(value) or everywhere[value])

        cut: set[Value] = set()
        for index, terms in self.terms.items():
            cut.update(cheapest_cut(terms, partial(self._read_at, index), share))
        return frozenset(cut)

    def _read_at(self, index: Index, value: Value) -> list[Value]:
        """The operands of ``value`` that the place ``index`` does not have without a copy."""
        return [x for x in self.operands[value] if not reads_in_place(self.graph, x, self.places[0].out.aval.shape, index)]

    def _reached(self, bases: frozenset[Value]) -> dict[Index, set[Value]]:
        """For each place, the values that it needs if it has ``bases``, with these."""
        reached: dict[Index, set[Value]] = {}
        for index, terms in self.terms.items():
            values = set(terms)
            waiting = list(values)
            while waiting:
                value = waiting.pop()
                new = [] if value in bases else [x for x in self._read_at(index, value) if x not in values]
                values.update(new)
                waiting += new
            reached[index] = values
        return reached

    def _cost(self, value: Value) -> int:
        """The bytes per element that it takes to put ``value`` into zeros."""
        passes = _WRITTEN if self.operands[value] else _PLACED if self.tuning.reads_at_offsets else _COPIED
        if any(user.op is PLACE and user not in self.places for user in self.graph.users(value)):
            passes = _PLACED
        return passes * value.aval.dtype.itemsize

    def _operations(self, node: TraceNode) -> int:
        return self.tuning.costly_operations if expensive(node.op) else 1


def reads_in_place(graph: Graph, value: Atom, shape: Shape, index: Index) -> bool:
    """Whether ``value`` is the slice ``index`` of an array of ``shape``: put back there, it is that array."""
    node = graph.producer(value)
    return node is not None and node.op is SLICE and node.attr("index") == index and node.ins[0].aval.shape == shape


class _Gatherer(Rewriter):
    def __init__(self, graph: Graph, plans: dict[TraceNode, _Gathered]) -> None:
        super().__init__(graph)
        self.plans = plans
        self.late = {node for plan in plans.values() for node in plan.late}
        self.early = {value: plan.nodes[value] for plan in plans.values() for value in plan.early}
        self.at: dict[tuple[Atom | Shape, Index, Shape], Value] = {}  # values, and what is inside, at their places

    def again(self, value: Atom, now: Atom) -> Atom:
        """An `early` value, computed once more; others as they are ``now``."""
        node = self.early.get(value)
        if node is None:
            return now
        if (value, (), ()) not in self.at:
            for inner in self._in_order(value, lambda a: a in self.early and (a, (), ()) not in self.at):
                made = self.early[inner]
                ins = [self.at.get((a, (), ()), self.current(a)) for a in made.ins]
                self.at[inner, (), ()] = self.emit(made.op, *ins, **dict(made.attrs))
        return self.at[value, (), ()]

    def place(self, node: TraceNode) -> None:
        old = self.source.producer(node.outs[0])
        if old in self.late:
            node = replace(node, ins=tuple([self.again(a, now) for a, now in zip(old.ins, node.ins, strict=True)]))
        plan = self.plans.get(old) if old is not None else None
        if old is None or plan is None or old.ins[0] in plan.bases:
            self.keep(node)
            return
        term = self.moved(old.ins[0], plan, old)
        if old.ins[0] in plan.masked:
            zero = Literal(old.out.aval.dtype.type(0).item(), old.out.aval.dtype)
            term = self.emit(WHERE, self.inside(old), term, zero)
        self.replace(old.out, term)

    def moved(self, value: Atom, plan: _Gathered, place: TraceNode) -> Atom:
        """``value`` where ``place`` puts it, computed there."""
        if isinstance(value, Literal) or not value.aval.shape:
            return self.current(value)
        key = value, place.attr("index"), place.out.aval.shape
        if value not in plan.bases and reads_in_place(self.source, value, key[2], key[1]):
            slicing = self.source.producer(value)
            assert slicing is not None
            return self.current(slicing.ins[0])
        if key not in self.at:
            if value in plan.bases:
                self.at[key] = self.emit(PLACE, self.current(value), index=key[1], shape=key[2])
            else:
                self._compute(value, plan, place)
        return self.at[key]

    def _compute(self, value: Value, plan: _Gathered, place: TraceNode) -> None:
        """Compute ``value``, after what it is computed of that is not there yet."""
        index, shape = place.attr("index"), place.out.aval.shape
        for inner in self._in_order(value, lambda a: a in plan.nodes and (a, index, shape) not in self.at):
            node = plan.nodes[inner]
            ins = [self.moved(atom, plan, place) for atom in node.ins]
            self.at[inner, index, shape] = self.emit(node.op, *ins, **dict(node.attrs))

    def _in_order(self, value: Atom, is_missing: Callable[[Atom], bool]) -> list[Atom]:
        """What is missing of ``value`` and of what it is computed of, each after its operands."""
        order: dict[Atom, None] = {}
        waiting = [(value, False)]
        while waiting:
            atom, ready = waiting.pop()
            if ready:
                order[atom] = None
            elif atom not in order and is_missing(atom):
                node = self.source.producer(atom)
                waiting += [(atom, True), *((a, False) for a in (node.ins if node is not None else ()))]
        return list(order)

    def inside(self, place: TraceNode) -> Value:
        """Which elements ``place`` puts its operand at."""
        own, index, shape = place.ins[0].aval.shape, place.attr("index"), place.out.aval.shape
        if (own, index, shape) not in self.at:
            if (own, (), own) not in self.at:  # one number in memory, which kernels read at any place
                number = self.emit(IDENTITY, self.emit(BROADCAST_TO, Literal(True), shape=(1,) * len(own)))
                self.at[own, (), own] = self.emit(BROADCAST_TO, number, shape=own)
            self.at[own, index, shape] = self.emit(PLACE, self.at[own, (), own], index=index, shape=shape)
        return self.at[own, index, shape]
