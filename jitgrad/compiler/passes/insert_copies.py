"""Make copies visible: where memory must be rearranged, an identity kernel says so and can join its producer."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, row_major, view_location
from jitgrad.compiler.memory.donation import UPDATES
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind
from jitgrad.core.origin import Origin
from jitgrad.ops.identity import IDENTITY


def insert_copies(graph: Graph) -> Graph:
    """Put an identity op before every reshape that is no view, and where values must lie in memory of their own.

    That is behind results that show an input or repeat elements, and behind repeated numbers that library calls read.

    ``reshape(permute_dims(x))`` cannot be read in place: its elements have to be brought in order. The identity does
    that in the kernel that makes ``x``, or in one of its own; without it a library call would.
    """
    return _Copies(graph).run()


class _Copies:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.where: dict[int, Location] = {}
        self.inputs: set[Buffer] = set()
        self.numbers: set[int] = set()  # ids of numbers repeated along axes: nothing in memory yet
        self.spread: dict[int, Value] = {}  # copies of repeated numbers, by the id of what they copy
        self.nodes: list[TraceNode] = []

    def run(self) -> Graph:
        for value in self.graph.inputs:
            self.inputs.add(self.at(value).buffer)
        for node in self.graph.nodes:
            self.nodes.append(self.placed(node))
        outputs = tuple(self.owned(atom) for atom in self.graph.outputs)
        return replace(self.graph, nodes=tuple(self.nodes), outputs=outputs)

    def at(self, value: Value) -> Location:
        """Where ``value`` lies: what is no view has memory of its own, in order."""
        known = self.where.get(id(value))
        if known is None:
            known = Location(Buffer(BufferRole.TEMPORARY, value.aval.nbytes), 0, row_major(value.aval.shape))
            self.where[id(value)] = known
        return known

    def placed(self, node: TraceNode) -> TraceNode:
        source = node.ins[0] if node.ins else None
        if node.op.kind is Kind.OPAQUE:
            changed = node.ins[0] if node.op.name in UPDATES else None
            node = replace(node, ins=tuple([self.in_memory(a, own=a is changed) for a in node.ins]))
        if node.op.kind is not Kind.MOVEMENT or not isinstance(source, Value):
            if node.op.kind is Kind.MOVEMENT:
                self.numbers.add(id(node.out))
            return node
        seen = view_location(node, self.at(source), source.aval)
        if seen is None:
            source = self.copy(source, node)
            node = replace(node, ins=(source,))
            seen = view_location(node, self.at(source), source.aval)
            assert seen is not None
        self.where[id(node.out)] = seen
        return node

    def in_memory(self, atom: Atom, own: bool) -> Atom:
        """``atom`` as an operand of a library call: a repeated number is written out, once but for those who change it."""
        if not isinstance(atom, Value) or id(atom) not in self.numbers:
            return atom
        if own:
            return self.copy(atom, None)
        if id(atom) not in self.spread:
            self.spread[id(atom)] = self.copy(atom, None)
        return self.spread[id(atom)]

    def copy(self, value: Value, at: TraceNode | None) -> Value:
        new = Value(value.aval)
        self.nodes.append(TraceNode(IDENTITY, (value,), (new,), (), at.origin if at is not None else Origin()))
        return new

    def owned(self, atom: Atom) -> Atom:
        """``atom`` as a result: not a window into an input, which the caller may change, and every element its own."""
        if not isinstance(atom, Value):
            return atom
        location, shape = self.at(atom), atom.aval.shape
        repeats = any(step == 0 and n > 1 for step, n in zip(location.strides, shape, strict=True))
        if repeats or id(atom) in self.numbers:
            return self.copy(atom, None)
        return self.copy_in_order(atom, location) if location.buffer in self.inputs else atom

    def copy_in_order(self, value: Value, location: Location) -> Value:
        """A copy of ``value`` whose axes lie in the order of those of ``value``, as NumPy's copies do."""
        order = tuple(sorted(range(value.aval.ndim), key=lambda k: (-abs(location.strides[k]), k)))
        if order == tuple(range(value.aval.ndim)) or min(location.strides) <= 0:
            return self.copy(value, None)
        new = self.copy(self.permuted(value, order), None)
        return self.permuted(new, tuple(order.index(k) for k in range(len(order))))

    def permuted(self, value: Value, axes: tuple[int, ...]) -> Value:
        out = Value(Aval(tuple(value.aval.shape[k] for k in axes), value.aval.dtype))
        node = TraceNode(REGISTRY["permute_dims"], (value,), (out,), (("axes", axes),))
        self.nodes.append(self.placed(node))
        return node.out
