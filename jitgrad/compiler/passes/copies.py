"""Make copies visible: where memory must be rearranged, an identity kernel says so and can join its producer."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.compiler.layout import Buffer, Location, row_major, view_location
from jitgrad.ir import Atom, Graph, TraceNode, Value
from jitgrad.op import Kind
from jitgrad.ops.identity import IDENTITY
from jitgrad.origin import Origin


def insert_copies(graph: Graph) -> Graph:
    """Put an identity op before every reshape that is no view, and behind views of inputs that are results.

    ``reshape(permute_dims(x))`` cannot be read in place: its elements have to be brought in order. The identity does
    that in the kernel that makes ``x``, or in one of its own; without it a library call would.
    """
    return _Copies(graph).run()


class _Copies:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.where: dict[int, Location] = {}
        self.inputs: set[Buffer] = set()
        self.nodes: list[TraceNode] = []

    def run(self) -> Graph:
        for value in self.graph.inputs:
            self.inputs.add(self.fresh(value).buffer)
        for node in self.graph.nodes:
            self.nodes.append(self.placed(node))
        outputs = tuple(self.owned(atom) for atom in self.graph.outputs)
        return replace(self.graph, nodes=tuple(self.nodes), outputs=outputs)

    def fresh(self, value: Value) -> Location:
        """``value`` in memory of its own, in order."""
        location = Location(Buffer("temporary", value.aval.nbytes), 0, row_major(value.aval.shape))
        self.where[id(value)] = location
        return location

    def placed(self, node: TraceNode) -> TraceNode:
        source = node.ins[0] if node.ins else None
        if node.op.kind is not Kind.MOVEMENT or not isinstance(source, Value):
            for out in node.outs:
                self.fresh(out)
            return node
        seen = view_location(node, self.where[id(source)], source.aval)
        if seen is None:
            source = self.copy(source, node)
            node = replace(node, ins=(source,))
            seen = view_location(node, self.where[id(source)], source.aval)
            assert seen is not None
        self.where[id(node.out)] = seen
        return node

    def copy(self, value: Value, at: TraceNode | None) -> Value:
        new = Value(value.aval)
        self.nodes.append(TraceNode(IDENTITY, (value,), (new,), (), at.origin if at is not None else Origin()))
        self.fresh(new)
        return new

    def owned(self, atom: Atom) -> Atom:
        """``atom`` as a result: not a window into an input, which the caller may change."""
        if not isinstance(atom, Value) or any(atom is v for v in self.graph.inputs):
            return atom
        location = self.where[id(atom)]
        return self.copy(atom, None) if location.buffer in self.inputs else atom
