"""Inserts a copy wherever memory must be rearranged; fusion can join the copy with the kernel of its operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitgrad.compiler.compiler_ops import IDENTITY
from jitgrad.compiler.convolution_ops import CONVOLUTIONS, WEIGHT_GRADIENT
from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, row_major, view_location
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.aval import Shape, broadcast_shapes
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.core.origin import Origin
from jitgrad.ops.indexing import GATHER, INDEX_ADD, INDEX_GET, INDEX_PUT, INDEX_PUT_ADD, SCATTER_ADD, TAKE
from jitgrad.ops.movement import BROADCAST_TO, PERMUTE_DIMS

_INDEXED = frozenset({TAKE, GATHER, INDEX_GET, INDEX_ADD, SCATTER_ADD, INDEX_PUT, INDEX_PUT_ADD})
_FIRST_INDEX = {INDEX_GET: 0, INDEX_PUT: 1, INDEX_PUT_ADD: 1}  # among the operands behind the first, of several indices


def insert_copies(graph: Graph) -> Graph:
    """Copy the operand of every reshape that is no view, and values that need memory of their own.

    These are results that are views of an input or repeat elements, repeated numbers that library calls read, and the
    indices and new values of reads and changes at indices, images of convolutions, and what loops read, whose machine code
    goes through them in order.

    ``reshape(permute_dims(x))`` is no view: its elements must be brought in order. The identity op does that in the
    kernel that computes ``x``, or in a kernel of its own; without it a library call would.
    """
    return _Copies(graph).run()


class _Copies(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.locations: dict[Value, Location] = {}
        self.inputs = {self.at(value).buffer for value in graph.inputs}
        self.numbers: set[Atom] = set()  # numbers repeated along axes, which are not in memory
        self.written_numbers: dict[Value, Value] = {}  # their copies in memory

    def run(self) -> Graph:
        for node in self.visit():
            self.place(node)
        outputs = self.apart([self.owned(atom) if isinstance(atom, Value) else atom for atom in self.source.outputs])
        return replace(self.source, nodes=tuple(self.nodes), outputs=outputs)

    def at(self, value: Value) -> Location:
        """The location of ``value``: a value that is no view has memory of its own, in order."""
        location = self.locations.get(value)
        if location is None:
            location = Location(Buffer(BufferRole.TEMPORARY, value.aval.nbytes), 0, row_major(value.aval.shape))
            self.locations[value] = location
        return location

    def place(self, node: TraceNode) -> None:
        source = node.ins[0] if node.ins else None
        if node.op.kind is Kind.OPAQUE and not self.numbers.isdisjoint(node.ins):
            changed = source if node.op.updates_first_operand else None
            node = replace(node, ins=tuple([self.in_memory(a, own=a is changed) for a in node.ins]))
        if node.op in _INDEXED:
            node = replace(node, ins=self.ordered(node))
        elif node.op.reads_in_order:
            node = replace(node, ins=tuple(map(self.in_order, node.ins)))
        elif node.op in CONVOLUTIONS:
            ordered = [a if a is source and node.op is not WEIGHT_GRADIENT else self.in_order(a) for a in node.ins]
            node = replace(node, ins=tuple(ordered))
        elif node.op.kind is Kind.MOVEMENT and not isinstance(source, Value):
            self.numbers.add(node.out)
        elif node.op.kind is Kind.MOVEMENT and isinstance(source, Value):
            location = view_location(node, self.at(source), source.aval)
            if location is None:
                source = self.emit(IDENTITY, source)
                node = replace(node, ins=(source,))
                location = view_location(node, self.at(source), source.aval)
                assert location is not None
            self.locations[node.out] = location
        self.keep(node)

    def in_memory(self, atom: Atom, own: bool) -> Atom:
        """``atom`` as an operand of a library call: a repeated number is copied, once except for calls that change it."""
        if not isinstance(atom, Value) or atom not in self.numbers:
            return atom
        if own:
            return self.copy(atom)
        if atom not in self.written_numbers:
            self.written_numbers[atom] = self.copy(atom)
        return self.written_numbers[atom]

    def ordered(self, node: TraceNode) -> tuple[Atom, ...]:
        """The operands of ``node``, with the indices broadcast to one shape, and but for the first in row-major order."""
        base, *others = node.ins
        first = _FIRST_INDEX.get(node.op, len(others))
        if len({atom.aval.shape for atom in others[first:]}) > 1:
            shape = broadcast_shapes("indexing", [atom.aval for atom in others[first:]])
            others[first:] = [self.broadcast(atom, shape) for atom in others[first:]]
        return (base, *[self.in_order(atom) for atom in others])

    def broadcast(self, atom: Atom, shape: Shape) -> Atom:
        if atom.aval.shape == shape:
            return atom
        return self.copy(self.emit(BROADCAST_TO, atom, shape=shape))

    def in_order(self, atom: Atom) -> Atom:
        if not isinstance(atom, Value) or self.at(atom).is_contiguous(atom.aval.shape):
            return atom
        return self.copy(atom)

    def copy(self, value: Value) -> Value:
        self.origin = Origin()
        return self.emit(IDENTITY, value)

    def owned(self, value: Value) -> Value:
        """``value`` as a result: no window into an input, which the caller may change, and no repeated elements."""
        location, shape = self.at(value), value.aval.shape
        repeats = any(step == 0 and n > 1 for step, n in zip(location.strides, shape, strict=True))
        if repeats or value in self.numbers:
            return self.copy(value)
        return self.copy_in_order(value, location) if location.buffer in self.inputs else value

    def apart(self, outputs: Sequence[Atom]) -> tuple[Atom, ...]:
        """``outputs`` with copies of those that are views of one value: the caller may change each of them.

        One value that is listed twice gets a place of its own for each later.
        """
        owners: dict[Buffer, Value] = {}
        for value in outputs:  # what has the memory in order stays
            if isinstance(value, Value) and self.is_whole(value):
                owners.setdefault(self.at(value).buffer, value)
        found = list[Atom]()
        for value in outputs:
            if isinstance(value, Value) and owners.setdefault(self.at(value).buffer, value) is not value:
                value = self.copy_in_order(value, self.at(value))
            found.append(value)
        return tuple(found)

    def is_whole(self, value: Value) -> bool:
        """Whether ``value`` is all of its memory, in order."""
        return self.at(value).is_contiguous(value.aval.shape) and self.at(value).buffer.nbytes == value.aval.nbytes

    def copy_in_order(self, value: Value, location: Location) -> Value:
        """A copy of ``value`` whose axes have the same order in memory, as NumPy's copies do."""
        order = tuple(sorted(range(value.aval.ndim), key=lambda k: (-abs(location.strides[k]), k)))
        if order == tuple(range(value.aval.ndim)) or min(location.strides) <= 0:
            return self.copy(value)
        new = self.copy(self.emit(PERMUTE_DIMS, value, axes=order))
        return self.emit(PERMUTE_DIMS, new, axes=tuple(order.index(k) for k in range(len(order))))
