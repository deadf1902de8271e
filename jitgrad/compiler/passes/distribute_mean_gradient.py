"""The gradient through a subtracted mean, without waiting for the last of what it sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, users
from jitgrad.core.op import REGISTRY, Kind

MAX_TERMS = 4  # each distinct one is another sum in an earlier sweep
SPLIT_STEPS = 16 * MAX_TERMS  # sums, negatives and scalings looked at for one sum


def distribute_mean_gradient(graph: Graph) -> Graph:
    """Where ``t - mean(t)`` is needed and ``t = a * s + b * u`` with one ``s`` and ``u`` a row, sum ``a`` and ``b``.

    So it is in the backward pass of every normalisation: ``s`` and ``u`` come from sums over the row themselves, and
    ``sum(t)`` would have to wait for them; ``sum(a) * s + sum(b) * u`` does not. The row is swept once less, or, where it
    lies across memory, read once less.

    The sum of the terms is off by roundings of ``a * s``, which is more than those of a sum of ``t`` if the terms cancel.
    Hence only where every use adds the mean to ``t`` again, which has these roundings in each of its elements.
    """
    if not any(node.op.name == "sum" for node in graph.nodes):
        return graph
    maker = _Maker(graph)
    for node in graph.nodes:
        terms = maker.terms_of(node)
        if terms:
            maker.spell(node, terms)
        else:
            maker.nodes.append(node)
    return replace(graph, nodes=tuple(maker.nodes)) if maker.changed else graph


@dataclass(frozen=True, slots=True)
class _Term:
    """``leaf``, then multiplied or divided by each of ``factors``, which are the same all along a row; or its negative."""

    leaf: Value
    factors: tuple[tuple[str, Atom], ...] = ()
    negative: bool = False

    def negated(self) -> _Term:
        return replace(self, negative=not self.negative)


class _Maker:
    def __init__(self, graph: Graph) -> None:
        self.nodes: list[TraceNode] = []
        self.changed = False
        self.made_by = {id(out): node for node in graph.nodes for out in node.outs}
        self.users = users(graph)
        self.results = {id(a) for a in graph.outputs}
        self.depth: dict[int, int] = {}  # how many reductions lie behind a value, one after the other
        for node in graph.nodes:
            behind = max((self.depth.get(id(a), 0) for a in node.ins), default=0)
            for out in node.outs:
                self.depth[id(out)] = behind + (node.op.kind is Kind.REDUCE)

    def terms_of(self, node: TraceNode) -> list[_Term]:
        """The terms to sum instead of what ``node`` sums; none if it stays."""
        if node.op.name != "sum":
            return []
        (x,), dtype = node.ins, node.out.aval.dtype
        if not isinstance(x, Value) or x.aval.dtype != dtype or dtype.kind != "f" or x.aval.size == 0:
            return []
        terms = self.split(x, node.attr("axis"))
        sooner = max(self.depth.get(id(t.leaf), 0) for t in terms) < self.depth.get(id(x), 0)
        few = len({id(t.leaf) for t in terms}) <= MAX_TERMS
        return terms if sooner and few and self.only_shifts(node) else []

    def split(self, x: Value, axes: tuple[int, ...]) -> list[_Term]:
        """The terms whose sum is ``x``; ``x`` alone if they are more than is worth looking at.

        A value that is added to itself again and again has exponentially many terms, so the search is bounded.
        """
        terms: list[_Term] = []
        waiting = [_Term(x)]
        for _ in range(SPLIT_STEPS):
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
        node = self.made_by.get(id(x))
        if node is None or node.op.kind is not Kind.ELEMENTWISE:
            return []
        like = [a for a in node.ins if isinstance(a, Value) and a.aval == x.aval]
        name = node.op.name
        if name in ("add", "subtract") and len(like) == 2:
            right = replace(term, leaf=like[1])
            return [replace(term, leaf=like[0]), right.negated() if name == "subtract" else right]
        if name == "negative":
            return [replace(term, leaf=like[0]).negated()]
        if name in ("multiply", "divide") and len(like) == 1:
            first = node.ins[0] is like[0]
            factor = node.ins[first]
            if (first or name == "multiply") and _constant(factor, x, axes):
                return [replace(term, leaf=like[0], factors=((name, factor), *term.factors))]
        return []

    def only_shifts(self, node: TraceNode) -> bool:
        """Whether all that becomes of a sum is a number, for each row, added to what was summed."""
        x = node.ins[0]
        while (maker := self.made_by.get(id(x))) is not None and maker.op.name == "negative":
            x = maker.ins[0]
        found = list(self.ends(node.out))
        return bool(found) and all(user is not None and self.adds_to(user, x) for user in found)

    def ends(self, value: Value) -> Iterator[TraceNode | None]:
        """The nodes that use ``value``, beyond those that only scale or move it; None for a result of the program."""
        if id(value) in self.results:
            yield None
        for user in self.users.get(id(value), ()):
            scales = user.op.name in ("multiply", "divide") and isinstance(user.ins[1], Literal)
            if scales or user.op.name == "negative" or user.op.kind is Kind.MOVEMENT:
                yield from self.ends(user.out)
            else:
                yield user

    def adds_to(self, user: TraceNode, x: Atom) -> bool:
        """Whether ``user`` adds to, or subtracts from, a sum with ``x`` among its terms."""
        if user.op.name not in ("add", "subtract"):
            return False
        reached, waiting = 0, [a for a in user.ins if a.aval == user.out.aval]
        while waiting and (reached := reached + 1) <= 2 * MAX_TERMS:
            atom = waiting.pop()
            if atom is x:
                return True
            maker = self.made_by.get(id(atom))
            if maker is not None and maker.op.name in ("add", "subtract", "negative"):
                waiting += [a for a in maker.ins if a.aval == atom.aval]
        return False

    def spell(self, node: TraceNode, terms: list[_Term]) -> None:
        """Write ``node`` as the sum of its ``terms``, scaled once they are summed."""
        self.changed = True
        axes = {"axis": node.attr("axis")}
        sums: dict[int, Value] = {}
        total: Value | None = None
        for term in terms:
            if id(term.leaf) not in sums:
                summed = self.emit(node, "sum", (term.leaf,), axes)
                sums[id(term.leaf)] = self.emit(node, "expand_dims", (summed,), axes)
            part = sums[id(term.leaf)]
            for name, factor in term.factors:
                part = self.emit(node, name, (part, factor))
            if total is None:
                total = self.emit(node, "negative", (part,)) if term.negative else part
            else:
                total = self.emit(node, "subtract" if term.negative else "add", (total, part))
        assert total is not None
        self.nodes.append(replace(node, op=REGISTRY["squeeze"], ins=(total,)))

    def emit(self, node: TraceNode, name: str, ins: tuple[Atom, ...], attrs: Mapping[str, Any] | None = None) -> Value:
        op = REGISTRY[name]
        aval = op.abstract([a.aval for a in ins], attrs or {})
        assert isinstance(aval, Aval)
        self.nodes.append(TraceNode(op, ins, (Value(aval),), tuple((attrs or {}).items()), node.origin))
        return self.nodes[-1].out


def _constant(factor: Atom, x: Value, axes: tuple[int, ...]) -> bool:
    """Whether ``factor``, broadcast to ``x``, is one number along ``axes``, and of the dtype of ``x``."""
    if isinstance(factor, Literal):
        return True
    shape = (1,) * (x.aval.ndim - factor.aval.ndim) + factor.aval.shape
    return factor.aval.dtype == x.aval.dtype and all(shape[k] == 1 for k in axes)
