"""Decides which results of a program overwrite its inputs: new state over old, results over donated
arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jitgrad.compiler.compiler_ops import INSERT_SLICES
from jitgrad.compiler.convolution_ops import CONVOLUTIONS
from jitgrad.compiler.lowering.kernel_reuse import GroupStructures
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.indexing import PUT_SLICE

_CANNOT_FAIL = CONVOLUTIONS | {PUT_SLICE}


def find_overwrites(
    graph: Graph, wanted: Mapping[Atom, Value], free: Sequence[Value], structures: GroupStructures, lifetimes: Lifetimes
) -> dict[Value, Value]:
    """For outputs: the input whose memory they take.

    ``wanted`` maps outputs to the inputs whose memory they should take; an output that cannot have
    that one, or has none, takes another input that its kernel reads and that is in ``free``.
    """
    return _Search(graph, wanted, free, structures, lifetimes).run()


class Lifetimes:
    """Until when the nodes of ``graph``, in their order, read each value, also through views of
    it."""

    def __init__(self, graph: Graph) -> None:
        self.order: dict[TraceNode, int] = {node: k for k, node in enumerate(graph.nodes)}
        self.roots: dict[Value, Value] = _view_roots(graph)
        self._last_read: dict[Value, int] = {}
        for k, node in enumerate(graph.nodes):
            self._last_read.update({self.roots[a]: k for a in node.ins if isinstance(a, Value)})
        self._results = {self.roots[a] for a in graph.outputs if isinstance(a, Value)}
        self._beside = _parts_and_wholes(graph, self.roots)

    def is_read(self, value: Value) -> bool:
        """Whether a node reads ``value``, also through a view."""
        return value in self._last_read

    def die_in(self, node: TraceNode, value: Value) -> bool:
        """Whether nothing reads ``value`` after ``node``, which reads it directly, if at all, and
        not through a view. Values that may lie in the same memory count too: the parts of a joined
        array, and the whole."""
        shared = self._sharing(value)
        otherwise = any(isinstance(a, Value) and a is not value and self.roots[a] in shared for a in node.ins)
        last_read = max(self._last_read.get(v, -1) for v in shared)
        return not otherwise and self._results.isdisjoint(shared) and last_read <= self.order[node]

    def _sharing(self, value: Value) -> set[Value]:
        """``value``, and the values whose memory may be part of its own, or the other way round."""
        shared, pending = {value}, [value]
        while pending:
            new = self._beside.get(pending.pop(), set()) - shared
            shared |= new
            pending += new
        return shared


class _Search:
    def __init__(
        self,
        graph: Graph,
        wanted: Mapping[Atom, Value],
        free: Sequence[Value],
        structures: GroupStructures,
        lifetimes: Lifetimes,
    ) -> None:
        self.graph = graph
        self.wanted = wanted
        self.free = frozenset(free)
        self.structures = structures
        self.lifetimes = lifetimes
        self.after_failure = 1 + max((k for k, n in enumerate(graph.nodes) if not _cannot_fail(n)), default=-1)

    def run(self) -> dict[Value, Value]:
        overwrites: dict[Value, Value] = {}
        used: set[Value] = set()
        times = Counter(atom for atom in self.graph.outputs if isinstance(atom, Value))
        for out in times:
            for source in self._candidates(out) if times[out] == 1 else ():
                if source not in used and (values := self._written_over(out, source)):
                    overwrites.update(dict.fromkeys(values, source))
                    used.add(source)
                    break
        return overwrites

    def _candidates(self, out: Value) -> Iterator[Value]:
        if out in self.wanted:
            yield self.wanted[out]
        producer = self.graph.producer(out)
        if self.free and producer is not None:
            yield from (a for a in producer.ins if isinstance(a, Value) and a in self.free)

    def _written_over(self, out: Value, source: Value) -> list[Value]:
        """The values that take the memory of ``source`` if ``out`` does; none if it cannot."""
        values, producer = [out], self.graph.producer(out)
        while producer is not None and producer.op is PUT_SLICE and producer.ins[0] is not source:
            base, update = producer.ins[0], producer
            if not isinstance(base, Value) or base in update.ins[1:] or not self.lifetimes.die_in(update, base):
                return []
            producer = self.graph.producer(base)
            values.append(base)
        if producer is None or not self.lifetimes.die_in(producer, source):
            return []
        updates = producer.op.updates_first_operand  # it checks all indices before it changes anything
        if self.lifetimes.order[producer] < self.after_failure - updates:
            return []
        if producer.op.kind is Kind.FUSED:
            return values if self.structures.can_alias(producer, source, values[-1]) else []
        first = producer.ins[0] is source and not any(a is source for a in producer.ins[1:])
        return values if first and (producer.op is PUT_SLICE or updates) else []


def _view_roots(graph: Graph) -> dict[Value, Value]:
    """For every value: the value of which it is a view, through any number of views, or itself."""
    roots = {v: v for v in graph.inputs}
    for node in graph.nodes:
        for out in node.outs:
            source = node.ins[0] if node.op.kind is Kind.MOVEMENT else None
            roots[out] = roots[source] if isinstance(source, Value) else out
    return roots


def _parts_and_wholes(graph: Graph, roots: Mapping[Value, Value]) -> dict[Value, set[Value]]:
    """For each ``insert_slices``, the values that may be written straight into it; for each of these, the whole."""
    beside: dict[Value, set[Value]] = {}
    for node in graph.nodes:
        if node.op is INSERT_SLICES:
            for part in {roots[a] for a in node.ins if isinstance(a, Value) and a not in graph.outputs}:
                beside.setdefault(part, set()).add(node.out)
                beside.setdefault(node.out, set()).add(part)
    return beside


def _cannot_fail(node: TraceNode) -> bool:
    """Whether ``node`` cannot raise, so that state overwritten before it is never left half new."""
    return node.op.kind in (Kind.FUSED, Kind.MOVEMENT) or node.op.contraction or node.op in _CANNOT_FAIL
