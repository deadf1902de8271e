"""Decides where the values of a fused graph are stored: which share memory, and their offsets and
strides in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitgrad.compiler.compiler_ops import COMPONENT, IDENTITY, INSERT_SLICES, INTERLEAVE, Index
from jitgrad.compiler.lowering.kernel_reuse import GroupStructures, position
from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, operand_layouts, row_major, view_location
from jitgrad.compiler.lowering.lower import PlacedGroup
from jitgrad.compiler.memory.donation import Lifetimes, find_overwrites
from jitgrad.compiler.passes.copy_kernels import copying, zeros_node
from jitgrad.compiler.passes.slices import uncovered
from jitgrad.compiler.plan import KernelCall, OpStep, Place, Placement
from jitgrad.core.aval import Aval, Shape, real_dtype_of
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind, OpDef
from jitgrad.ops.indexing import PUT_SLICE
from jitgrad.ops.movement import EXPAND_DIMS, SLICE, SQUEEZE


def place_values(
    graph: Graph,
    donated: Mapping[Atom, Value],
    free: Sequence[Value],
    structures: GroupStructures,
    strides: Sequence[Shape | None] | None = None,
) -> Placement:
    """Give every value of ``graph`` a place.

    ``strides`` are those of the inputs in elements, None for inputs in row-major order.

    ``donated`` maps outputs to the inputs whose memory they should take, where that is safe; an
    output that is not in it, or cannot have what it wants, may take one of the inputs ``free``.
    """
    return _Placer(graph, donated, free, structures).run(strides or [None] * len(graph.inputs))


class _Placer:
    def __init__(
        self, graph: Graph, donated: Mapping[Atom, Value], free: Sequence[Value], structures: GroupStructures
    ) -> None:
        self.graph = graph
        self.locations: dict[Value, Location] = {}
        self.steps: list[KernelCall | OpStep] = []
        self.lifetimes = Lifetimes(graph)
        self.in_place = find_overwrites(graph, donated, free, structures, self.lifetimes)
        self.external: list[Buffer] = []
        self.listed: set[Atom] = set()  # outputs that were listed before
        self.parts = self._find_parts()

    def run(self, strides: Sequence[Shape | None]) -> Placement:
        inputs = [Buffer(BufferRole.INPUT, v.aval.nbytes, f"input {k}") for k, v in enumerate(self.graph.inputs)]
        for value, buffer, given in zip(self.graph.inputs, inputs, strides, strict=True):
            self.locations[value] = Location(buffer, 0, row_major(value.aval.shape) if given is None else given)
        for node in self.graph.nodes:
            self._place_node(node)
        outputs = tuple([self._output(atom) for atom in self.graph.outputs])
        return Placement(self.graph, tuple(inputs), outputs, tuple(self.external), tuple(self.steps))

    # --- inserted slices -------------------------------------------------------------------------------------------

    def _find_parts(self) -> dict[Value, tuple[TraceNode, Index | int]]:
        """The ``insert_slices`` or ``interleave`` and the index in it of values that kernels and products
        write there directly, as those of which a part is a view with other axes of length 1."""
        parts: dict[Value, tuple[TraceNode, Index | int]] = {}
        outputs = {self.lifetimes.roots[a] for a in self.graph.outputs if isinstance(a, Value)}
        for node in self.graph.nodes:
            for atom, index in zip(node.ins, _indices(node), strict=True) if node.op in _JOINS else ():
                written = self._written_for(atom)
                producer = self.graph.producer(written) if written is not None else None
                if producer is None or not (producer.op.kind is Kind.FUSED or producer.op in _JOINS):
                    continue
                assert written is not None
                if written not in outputs and written not in parts and written not in self.in_place:
                    parts[written] = node, index
        return parts

    def _written_for(self, atom: Atom) -> Value | None:
        """The value that is written if ``atom`` is written to its place: ``atom``, or that of which it is a row."""
        producer = self.graph.producer(atom)
        if producer is not None and producer.op in (EXPAND_DIMS, SQUEEZE):
            return self._written_for(producer.ins[0])
        return atom if isinstance(atom, Value) else None

    def _whole(self, node: TraceNode) -> Location:
        """The location of a join: a part of a larger one, else a buffer; gaps between parts are zeros."""
        value, pending = node.out, list[TraceNode]()
        while node.out not in self.locations:
            pending.append(node)
            if node.out not in self.parts:
                break
            node, _ = self.parts[node.out]
        for outer in reversed(pending):
            place = self.allocate(outer.out)
            for border in uncovered(outer.out.aval.shape, outer.attr("indices")) if outer.op is INSERT_SLICES else ():
                aval = Aval(tuple(n for _, _, n in border), outer.out.aval.dtype)
                assert place.location is not None
                self._clear(outer, Place(aval, _part(place.location, outer.out.aval, border, aval)))
        return self.locations[value]

    def _part_of(self, node: TraceNode, index: Index | int, aval: Aval) -> Location:
        """The location of a part, for a value of another shape but for axes of length 1."""
        shape = node.out.aval.shape if isinstance(index, int) else tuple([n for _, _, n in index])
        location = _part(self._whole(node), node.out.aval, index, Aval(shape, aval.dtype))
        return location if shape == aval.shape else _with_axes(location, shape, aval.shape)

    def _join(self, node: TraceNode) -> None:
        """Copy the parts that are not written in place."""
        for atom, index in zip(node.ins, _indices(node), strict=True):
            written = self._written_for(atom)
            whole, at = self.parts.get(written, (None, None)) if written is not None else (None, None)
            if whole is not node or at is not index:
                self._copy(atom, Place(atom.aval, self._part_of(node, index, atom.aval)), node)

    # --- copies ------------------------------------------------------------------------------------------------------

    def _copy(self, atom: Atom, target: Place, node: TraceNode) -> None:
        """Write ``atom`` to ``target`` as well, for ``node``: by a kernel, or by NumPy for dtypes
        that kernels lack."""
        if not atom.aval.size:
            return
        if atom.aval.dtype.kind == "c" and isinstance(atom, Value):
            self._copy_parts(atom, target, node)
            return
        kernel = copying(atom, node.origin)
        if kernel is None:
            self.steps.append(OpStep(node, COPY_INTO, {}, (self.place(atom),), (target,)))
        else:
            self._launch(kernel, (target,), node)

    def _copy_parts(self, value: Value, target: Place, node: TraceNode) -> None:
        """Copy complex numbers by a kernel for each part: kernels know real ones only."""
        for source, part in zip(_parts_of(self.place(value)), _parts_of(target), strict=True):
            assert source.location is not None
            self.locations[component := Value(source.aval)] = source.location
            self._copy(component, part, node)

    def _clear(self, node: TraceNode, target: Place) -> None:
        for part in _parts_of(target) if target.aval.dtype.kind == "c" else (target,):
            kernel = zeros_node(part.aval, node.origin)
            if kernel is None:
                self.steps.append(OpStep(node, ZERO, {"like": part.aval}, (), (part,)))
            else:
                self._launch(kernel, (part,), node)

    def _launch(self, node: TraceNode, writes: tuple[Place, ...], of: TraceNode) -> None:
        """Append the kernel of the fused ``node``."""
        reads = tuple([self.place(atom) for atom in node.ins])
        placed = [[(p.location, p.aval.dtype) for p in places if p.location] for places in (reads, writes)]
        layouts = operand_layouts(*placed)
        numbered = list(enumerate(node.outs))
        in_place = tuple([(k, position(node.ins, self.in_place[v])) for k, v in numbered if v in self.in_place])
        unread = tuple([k for k, v in numbered if not self.lifetimes.is_read(v)])
        self.steps.append(KernelCall(PlacedGroup(node, layouts, in_place, unread), reads, writes, of))

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _place_node(self, node: TraceNode) -> None:
        if node.op.kind is Kind.MOVEMENT and isinstance(node.ins[0], Value):
            source = node.ins[0]
            view = view_location(node, self.locations[source], source.aval)
            if view is not None:
                self.locations[node.out] = view
                return
        if node.op in _JOINS:
            self._join(node)
        elif node.op is PUT_SLICE and node.ins[0].aval.dtype == node.ins[1].aval.dtype:
            self._put_slice(node)
        elif node.op.kind is Kind.FUSED:
            self._launch(node, tuple([self.allocate(value) for value in node.outs]), node)
        elif node.op is IDENTITY and node.out.aval.dtype.kind == "c":
            self._copy(node.ins[0], self.allocate(node.out), node)
        else:
            self._call(node)

    def _put_slice(self, node: TraceNode) -> None:
        """Write the slice into the array itself if nothing reads the old one afterwards, else into
        a copy of it."""
        base, new = node.ins
        if isinstance(base, Value) and self._is_free_after(base, node) and not self._share_buffer(base, new):
            self.locations[node.out] = self.locations[base]
        else:
            target = self.allocate(node.out)
            if not (isinstance(base, Value) and self.locations[base] is target.location):
                self._copy(base, target, node)
        whole = self.locations[node.out]
        self._copy(new, Place(new.aval, _part(whole, node.out.aval, node.attr("index"), new.aval)), node)

    def _share_buffer(self, base: Value, new: Atom) -> bool:
        """Whether ``new`` is a view of ``base``, of which a write to ``base`` would change elements not yet read."""
        return isinstance(new, Value) and self.locations[new].buffer is self.locations[base].buffer

    def _call(self, node: TraceNode) -> None:
        """A library call: its results stay the arrays that it returns, but for ops that fill memory of the program.

        An update changes its first operand, or a copy of it."""
        reads = tuple([self.place(atom) for atom in node.ins])
        for value in node.outs:
            placed = value in self.parts or value in self.in_place
            if not placed and self._may_update(node):
                base = node.ins[0]
                assert isinstance(base, Value)
                self.locations[value] = self.locations[base]
            elif node.op.updates_first_operand and not placed:
                self._copy(node.ins[0], self.allocate(value), node)
                reads = (self.place(value), *reads[1:])
            elif placed or node.op.contraction or node.op.fills:
                self.allocate(value)
            else:
                buffer = Buffer(BufferRole.EXTERNAL, value.aval.nbytes, str(value.aval))
                self.external.append(buffer)
                self.locations[value] = Location(buffer, 0, row_major(value.aval.shape))
        writes = tuple([self.place(value) for value in node.outs])
        self.steps.append(OpStep(node, node.op, dict(node.attrs), reads, writes))

    def _may_update(self, node: TraceNode) -> bool:
        """Whether ``node`` can change its first operand, which nothing else reads and which is no
        other operand."""
        if not node.op.updates_first_operand:
            return False
        base, *others = node.ins
        return isinstance(base, Value) and self._is_free_after(base, node) and not any(x is base for x in others)

    def _is_free_after(self, value: Value, node: TraceNode) -> bool:
        """Whether ``value`` has a buffer to itself that is no input, and nothing reads it after
        ``node``."""
        location = self.locations[value]
        whole = location.is_contiguous(value.aval.shape) and location.buffer.nbytes == value.aval.nbytes
        own = whole and location.buffer.role is BufferRole.TEMPORARY and self.lifetimes.roots[value] is value
        return own and self.lifetimes.die_in(node, value)

    # --- places ------------------------------------------------------------------------------------------------------

    def place(self, atom: Atom) -> Place:
        if isinstance(atom, Literal):
            number = atom.operand
            return Place(atom.aval, None, number)
        return Place(atom.aval, self.locations[atom])

    def allocate(self, value: Value) -> Place:
        if value in self.parts:
            self.locations[value] = self._part_of(*self.parts[value], value.aval)
        elif value in self.in_place:
            self.locations[value] = self.locations[self.in_place[value]]
        else:
            buffer = Buffer(BufferRole.TEMPORARY, value.aval.nbytes, str(value.aval))
            self.locations[value] = Location(buffer, 0, row_major(value.aval.shape))
        return self.place(value)

    def _output(self, atom: Atom) -> Place:
        """The place of a result. Views of inputs, repeated elements and values listed twice are
        copied."""
        place = self.place(atom)
        location, listed = place.location, atom in self.listed
        self.listed.add(atom)
        if location is None or atom in self.in_place:
            return place
        if location.buffer.role is not BufferRole.INPUT and _is_dense(place.aval, location) and not listed:
            return place
        copy = Value(place.aval)
        target = self.allocate(copy)
        self._copy(atom, target, TraceNode(COPY_INTO, (atom,), (copy,)))
        return target


_JOINS = (INSERT_SLICES, INTERLEAVE)  # values that others are written into


def _indices(node: TraceNode) -> Sequence[Index | int]:
    """Which part of a join each operand is: a slice, or a component of complex numbers."""
    indices: Sequence[Index | int] = node.attr("indices") if node.op is INSERT_SLICES else range(2)
    return indices


def _part(whole: Location, aval: Aval, index: Index | int, part: Aval) -> Location:
    """The location of the part ``index`` of a value ``aval`` at ``whole``."""
    op = COMPONENT if isinstance(index, int) else SLICE
    view = TraceNode(op, (Value(aval),), (Value(part),), (("index", index),))
    location = view_location(view, whole, aval)
    assert location is not None
    return location


def _parts_of(place: Place) -> tuple[Place, ...]:
    """The places of the real and the imaginary parts of complex numbers at ``place``."""
    assert place.location is not None
    aval = Aval(place.aval.shape, real_dtype_of(place.aval.dtype))
    return tuple([Place(aval, _part(place.location, place.aval, index, aval)) for index in range(2)])


def _with_axes(location: Location, shape: Shape, wanted: Shape) -> Location:
    """``location`` of a value of ``shape`` for the shape ``wanted``, which has other axes of length 1."""
    steps = iter([step for step, n in zip(location.strides, shape, strict=True) if n != 1])
    strides = [next(steps) if n != 1 else 0 for n in wanted]
    for k in reversed(range(len(wanted))):  # axes of length 1 step as in an array in order
        if wanted[k] == 1:
            strides[k] = strides[k + 1] * wanted[k + 1] if k + 1 < len(wanted) else 1
    return Location(location.buffer, location.offset, tuple(strides))


def _is_dense(aval: Aval, location: Location) -> bool:
    """Whether a value covers its buffer element by element, in some order."""
    return location.offset == 0 and aval.nbytes == location.buffer.nbytes and 0 not in location.strides


def _copy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x


ZERO = OpDef(
    "zero",
    Kind.OPAQUE,
    (),
    attrs=("like",),
    eager=lambda *, like: np.zeros(like.shape, like.dtype),
    abstract=lambda avals, attrs: attrs["like"],
)
COPY_INTO = OpDef("copy", Kind.OPAQUE, ("x",), eager=_copy, abstract=lambda avals, attrs: replace(avals[0], weak=False))
