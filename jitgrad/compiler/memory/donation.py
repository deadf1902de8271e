"""Which results of a program are written over its inputs: new state over old, results over donated arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jitgrad.compiler.lowering.kernel_reuse import LoweringCache
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.indexing import PUT_SLICE


def find_overwrites(
    graph: Graph, wanted: Mapping[int, Value], free: Sequence[Value], structures: LoweringCache, lifetimes: Lifetimes
) -> dict[int, Value]:
    """For outputs, by id: the input whose memory they take.

    ``wanted`` maps ids of outputs to the inputs they should lie in; an output that cannot have that one, or has none,
    takes another input that its kernel reads and that is in ``free``.
    """
    return _Search(graph, wanted, free, structures, lifetimes).run()


class Lifetimes:
    """Until when the nodes of ``graph``, in their order, read each value, also through views of it."""

    def __init__(self, graph: Graph) -> None:
        self.made_by = {id(out): node for node in graph.nodes for out in node.outs}
        self.order = {id(node): k for k, node in enumerate(graph.nodes)}
        self.roots = _view_roots(graph)
        self._last_read: dict[int, int] = {}
        for k, node in enumerate(graph.nodes):
            self._last_read.update({id(self.roots[id(a)]): k for a in node.ins if id(a) in self.roots})
        self._results = {id(self.roots[id(a)]) for a in graph.outputs if id(a) in self.roots}

    def is_read(self, value: Value) -> bool:
        """Whether a node reads ``value``, also through a view."""
        return id(value) in self._last_read

    def die_in(self, node: TraceNode, value: Value) -> bool:
        """Whether nobody sees ``value`` after ``node``, which reads it as it lies, if at all, and not through a view."""
        direct = not any(self.roots.get(id(a)) is value and a is not value for a in node.ins)
        return direct and id(value) not in self._results and self._last_read.get(id(value), -1) <= self.order[id(node)]


class _Search:
    def __init__(
        self,
        graph: Graph,
        wanted: Mapping[int, Value],
        free: Sequence[Value],
        structures: LoweringCache,
        lifetimes: Lifetimes,
    ) -> None:
        self.graph = graph
        self.wanted = wanted
        self.free = {id(v): v for v in free}
        self.structures = structures
        self.lifetimes = lifetimes
        self.after_failure = 1 + max((k for k, n in enumerate(graph.nodes) if not _cannot_fail(n)), default=-1)

    def run(self) -> dict[int, Value]:
        found: dict[int, Value] = {}
        used: set[int] = set()
        times = Counter(map(id, self.graph.outputs))
        for atom in self.graph.outputs:
            if not isinstance(atom, Value) or times[id(atom)] > 1:
                continue
            for source in self._candidates(atom):
                if id(source) not in used and (shown := self._written_over(atom, source)):
                    found.update(dict.fromkeys(shown, source))
                    used.add(id(source))
                    break
        return found

    def _candidates(self, out: Value) -> Iterator[Value]:
        if id(out) in self.wanted:
            yield self.wanted[id(out)]
        maker = self.lifetimes.made_by.get(id(out))
        if self.free and maker is not None:
            yield from (self.free[id(a)] for a in maker.ins if id(a) in self.free)

    def _written_over(self, out: Value, source: Value) -> list[int]:
        """Ids of the values that lie in ``source``'s memory if ``out`` does; none if it cannot."""
        shown, maker = [id(out)], self.lifetimes.made_by.get(id(out))
        while maker is not None and maker.op is PUT_SLICE and maker.ins[0] is not source:
            (base, _), made = maker.ins, maker
            maker = self.lifetimes.made_by.get(id(base))
            if not isinstance(base, Value) or not self.lifetimes.die_in(made, base):
                return []
            shown.append(id(base))
        if maker is None or not self.lifetimes.die_in(maker, source):
            return []
        updates = maker.op.updates_first_operand  # and may fail, but before it has changed anything
        if self.lifetimes.order[id(maker)] < self.after_failure - updates:
            return []
        if maker.op.kind is Kind.FUSED:
            last = next(v for v in maker.outs if id(v) == shown[-1])
            return shown if self.structures.can_alias(maker, source, last) else []
        first = maker.ins[0] is source and not any(a is source for a in maker.ins[1:])
        return shown if maker.op is PUT_SLICE or (updates and first) else []


def _view_roots(graph: Graph) -> dict[int, Value]:
    """For every value: the value whose memory it shows, through views."""
    roots: dict[int, Value] = {id(v): v for v in graph.inputs}
    for node in graph.nodes:
        for out in node.outs:
            source = node.ins[0] if node.op.kind is Kind.MOVEMENT else None
            roots[id(out)] = roots[id(source)] if isinstance(source, Value) else out
    return roots


def _cannot_fail(node: TraceNode) -> bool:
    """Whether ``node`` cannot raise: then state that was overwritten before it is never left half new."""
    return node.op.kind in (Kind.FUSED, Kind.MOVEMENT) or node.op.contraction or node.op is PUT_SLICE
