"""Builds the program of a pass: nodes kept or emitted in order, and old values replaced by new ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin


class Rewriter:
    """The new program so far. `visit` walks the old one; each node of it is kept, or its result replaced."""

    def __init__(self, graph: Graph, origin: Origin | None = None) -> None:
        self.source = graph
        self.nodes: list[TraceNode] = []
        self.origin: Origin = origin or Origin()  # of the nodes that are emitted
        self._new: dict[Atom, Atom] = {}
        self._producers: dict[Atom, TraceNode] = {}

    def visit(self) -> Iterator[TraceNode]:
        """Every old node, with the new values among its operands; emitted nodes get its origin meanwhile."""
        new = self._new
        for node in self.source.nodes:
            self.origin = node.origin
            if not new.keys().isdisjoint(node.ins):
                node = replace(node, ins=tuple([new.get(atom, atom) for atom in node.ins]))
            yield node

    def keep(self, node: TraceNode) -> None:
        """Append ``node``."""
        self.nodes.append(node)
        for out in node.outs:
            self._producers[out] = node

    def emit(self, op: OpDef, /, *ins: Atom, **attrs: Any) -> Value:
        """Append a node; its result."""
        aval = op.abstract([atom.aval for atom in ins], attrs)
        assert isinstance(aval, Aval)
        out = Value(aval)
        self.keep(TraceNode(op, ins, (out,), tuple(sorted(attrs.items())), self.origin))
        return out

    def define(self, out: Value, op: OpDef, /, *ins: Atom, **attrs: Any) -> None:
        """Append a node that computes ``out``, a value of the old program."""
        self.keep(TraceNode(op, ins, (out,), tuple(sorted(attrs.items())), self.origin))

    def replace(self, old: Value, new: Atom) -> None:
        """Let all that reads ``old`` later on read ``new``."""
        self._new[old] = new

    def current(self, atom: Atom) -> Atom:
        """What ``atom`` of the old program is in the new one."""
        return self._new.get(atom, atom)

    def producer(self, atom: Atom) -> TraceNode | None:
        """The node of the new program that computes ``atom``."""
        return self._producers.get(atom)

    def graph(self) -> Graph:
        """The new program; the old one if they are equal."""
        nodes, outputs = tuple(self.nodes), tuple(map(self.current, self.source.outputs))
        if nodes == self.source.nodes and outputs == self.source.outputs:
            return self.source
        return replace(self.source, nodes=nodes, outputs=outputs)
