"""Sums the terms of a gradient through a subtracted mean apart, so that the sum waits for no other sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind, OpDef
from jitgrad.ops.arithmetic import ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT
from jitgrad.ops.movement import EXPAND_DIMS, SQUEEZE, SUM


def distribute_mean_gradient(graph: Graph, tuning: Tuning) -> Graph:
    """Where ``t - mean(t)`` is needed and ``t = a * s + b * u`` with one ``s`` and ``u`` a row, sum ``a`` and ``b``.

    The backward pass of every normalisation has this form: ``s`` and ``u`` depend on sums over the row themselves, and
    ``sum(t)`` would have to wait for them; ``sum(a) * s + sum(b) * u`` does not. The kernel sweeps the row once less,
    or reads it once less if its elements are apart in memory.

    The sum of the terms is off by roundings of ``a * s``, which is more than those of a sum of ``t`` if the terms cancel.
    Hence only where every use adds the mean to ``t`` again, which has these roundings in each of its elements.
    """
    if not any(node.op is SUM for node in graph.nodes):
        return graph
    new = _MeanGradient(graph, tuning.max_gradient_terms)
    for node in new.visit():
        terms = new.terms_of(node) if node.op is SUM else []
        if terms:
            new.distribute(node, terms)
        else:
            new.keep(node)
    return new.graph()


@dataclass(frozen=True, slots=True)
class _Term:
    """``leaf``, then multiplied or divided by each of ``factors``, which are the same all along a row; or its negative."""

    leaf: Value
    factors: tuple[tuple[OpDef, Atom], ...] = ()
    negative: bool = False

    def negated(self) -> _Term:
        return replace(self, negative=not self.negative)


class _MeanGradient(Rewriter):
    def __init__(self, graph: Graph, max_terms: int) -> None:
        super().__init__(graph)
        self.max_terms = max_terms
        self.depth: dict[Atom, int] = {}  # the longest chain of reductions that a value depends on
        for node in graph.nodes:
            behind = max((self.depth.get(a, 0) for a in node.ins), default=0)
            for out in node.outs:
                self.depth[out] = behind + (node.op.kind is Kind.REDUCE)

    def terms_of(self, node: TraceNode) -> list[_Term]:
        """The terms to sum instead of what ``node`` sums; none if it stays."""
        (x,), dtype = node.ins, node.out.aval.dtype
        if not isinstance(x, Value) or x.aval.dtype != dtype or dtype.kind != "f" or x.aval.size == 0:
            return []
        terms = self.split(x, node.attr("axis"))
        sooner = max(self.depth.get(t.leaf, 0) for t in terms) < self.depth.get(x, 0)
        few = len({t.leaf for t in terms}) <= self.max_terms
        return terms if sooner and few and self.only_shifts(node) else []

    def split(self, x: Value, axes: tuple[int, ...]) -> list[_Term]:
        """The terms whose sum is ``x``; ``x`` alone if they are more than is worth looking at.

        A value that is added to itself again and again has exponentially many terms, so the search is bounded.
        """
        terms: list[_Term] = []
        waiting = [_Term(x)]
        for _ in range(16 * self.max_terms):  # sums, negatives and scalings
            parts = self.parts(term := waiting.pop(), axes)
            if parts:
                waiting += reversed(parts)
            else:
                terms.append(term)
            if not waiting:
                return terms
        return [_Term(x)]

    def parts(self, term: _Term, axes: tuple[int, ...]) -> list[_Term]:
        """``term`` taken apart by the op that computes its leaf; empty if that op does not sum or scale."""
        x = term.leaf
        node = self.source.producer(x)
        if node is None or node.op.kind is not Kind.ELEMENTWISE:
            return []
        like = [a for a in node.ins if isinstance(a, Value) and a.aval == x.aval]
        op = node.op
        if op in (ADD, SUBTRACT) and len(like) == 2:
            right = replace(term, leaf=like[1])
            return [replace(term, leaf=like[0]), right.negated() if op is SUBTRACT else right]
        if op is NEGATIVE:
            return [replace(term, leaf=like[0]).negated()]
        if op in (MULTIPLY, DIVIDE) and len(like) == 1:
            first = node.ins[0] is like[0]
            factor = node.ins[first]
            if (first or op is MULTIPLY) and _constant(factor, x, axes):
                return [replace(term, leaf=like[0], factors=((op, factor), *term.factors))]
        return []

    def only_shifts(self, node: TraceNode) -> bool:
        """Whether a sum is used only as a number, for each row, that is added to the summed value."""
        x = node.ins[0]
        while (producer := self.source.producer(x)) is not None and producer.op is NEGATIVE:
            x = producer.ins[0]
        uses = list(self.uses(node.out))
        return bool(uses) and all(user is not None and self.adds_to(user, x) for user in uses)

    def uses(self, value: Value) -> Iterator[TraceNode | None]:
        """The nodes that use ``value``, beyond those that only scale or move it; None for a result of the program."""
        if value in self.source.outputs:
            yield None
        for user in self.source.users(value):
            scales = user.op in (MULTIPLY, DIVIDE) and isinstance(user.ins[1], Literal)
            if scales or user.op is NEGATIVE or user.op.kind is Kind.MOVEMENT:
                yield from self.uses(user.out)
            else:
                yield user

    def adds_to(self, user: TraceNode, x: Atom) -> bool:
        """Whether ``user`` adds to, or subtracts from, a sum with ``x`` among its terms."""
        if user.op not in (ADD, SUBTRACT):
            return False
        reached, waiting = 0, [a for a in user.ins if a.aval == user.out.aval]
        while waiting and (reached := reached + 1) <= 2 * self.max_terms:
            atom = waiting.pop()
            if atom is x:
                return True
            producer = self.source.producer(atom)
            if producer is not None and producer.op in (ADD, SUBTRACT, NEGATIVE):
                waiting += [a for a in producer.ins if a.aval == atom.aval]
        return False

    def distribute(self, node: TraceNode, terms: list[_Term]) -> None:
        """Emit ``node`` as the sum of its ``terms``, each scaled after it is summed."""
        axis = node.attr("axis")
        sums: dict[Value, Value] = {}
        total: Value | None = None
        for term in terms:
            if term.leaf not in sums:
                sums[term.leaf] = self.emit(EXPAND_DIMS, self.emit(SUM, term.leaf, axis=axis), axis=axis)
            part = sums[term.leaf]
            for op, factor in term.factors:
                part = self.emit(op, part, factor)
            if total is None:
                total = self.emit(NEGATIVE, part) if term.negative else part
            else:
                total = self.emit(SUBTRACT if term.negative else ADD, total, part)
        assert total is not None
        self.define(node.out, SQUEEZE, total, axis=axis)


def _constant(factor: Atom, x: Value, axes: tuple[int, ...]) -> bool:
    """Whether ``factor``, broadcast to ``x``, is one number along ``axes``, and of the dtype of ``x``."""
    if isinstance(factor, Literal):
        return True
    shape = (1,) * (x.aval.ndim - factor.aval.ndim) + factor.aval.shape
    return factor.aval.dtype == x.aval.dtype and all(shape[k] == 1 for k in axes)
