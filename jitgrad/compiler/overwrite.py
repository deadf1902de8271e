"""Which results of a program are written over its inputs: new state over old, results over donated arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jitgrad.compiler.structure import Structures
from jitgrad.ir import Graph, TraceNode, Value
from jitgrad.op import Kind


def find_overwrites(
    graph: Graph, wanted: Mapping[int, Value], free: Sequence[Value], structures: Structures
) -> dict[int, Value]:
    """For outputs, by id: the input whose memory they take.

    ``wanted`` maps ids of outputs to the inputs they should lie in; an output that cannot have that one, or has none,
    takes another input that its kernel reads and that is in ``free``.
    """
    return _Search(graph, wanted, free, structures).run()


class _Search:
    def __init__(
        self, graph: Graph, wanted: Mapping[int, Value], free: Sequence[Value], structures: Structures
    ) -> None:
        self.graph = graph
        self.wanted = wanted
        self.free = {id(v): v for v in free}
        self.structures = structures
        self.made_by = {id(out): node for node in graph.nodes for out in node.outs}
        self.order = {id(node): k for k, node in enumerate(graph.nodes)}
        self.roots = _view_roots(graph)
        self.last_read: dict[int, int] = {}
        for k, node in enumerate(graph.nodes):
            self.last_read.update({id(self.roots[id(a)]): k for a in node.ins if id(a) in self.roots})
        self.kept = {id(self.roots[id(a)]) for a in graph.outputs if id(a) in self.roots}
        self.after_failure = 1 + max((k for k, n in enumerate(graph.nodes) if not _cannot_fail(n)), default=-1)

    def run(self) -> dict[int, Value]:
        found: dict[int, Value] = {}
        used: set[int] = set()
        times = Counter(map(id, self.graph.outputs))
        for atom in self.graph.outputs:
            if not isinstance(atom, Value) or times[id(atom)] > 1:
                continue
            maker = self.made_by.get(id(atom))
            if maker is None or maker.op.kind is not Kind.FUSED or self.order[id(maker)] < self.after_failure:
                continue
            for source in self._candidates(maker, atom):
                dies = id(source) not in used and self._dies_in(maker, source)
                if dies and self.structures.can_share(maker, source, atom):
                    found[id(atom)] = source
                    used.add(id(source))
                    break
        return found

    def _candidates(self, maker: TraceNode, out: Value) -> Iterator[Value]:
        if id(out) in self.wanted:
            yield self.wanted[id(out)]
        if self.free:
            yield from (self.free[id(a)] for a in maker.ins if id(a) in self.free)

    def _dies_in(self, maker: TraceNode, source: Value) -> bool:
        """Whether nobody reads ``source`` after ``maker``, which reads it as it lies."""
        direct = not any(self.roots.get(id(a)) is source and a is not source for a in maker.ins)
        return direct and id(source) not in self.kept and self.last_read.get(id(source), -1) <= self.order[id(maker)]


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
    return node.op.kind in (Kind.FUSED, Kind.MOVEMENT) or node.op.name == "matmul"
