"""From the fused graph to the steps of a program: where every value lives, and in which order things run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jitgrad.compiler.compiler_ops import INSERT_SLICES, Index
from jitgrad.compiler.lowering.kernel_reuse import LoweringCache
from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, row_major, view_location
from jitgrad.compiler.lowering.lower import Lowered, Scheduler
from jitgrad.compiler.memory.arena import arena
from jitgrad.compiler.memory.donation import Lifetimes, find_overwrites
from jitgrad.compiler.passes.copy_kernels import copying, zeros_node
from jitgrad.compiler.passes.slices import uncovered
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.ops.indexing import PUT_SLICE


class Place(NamedTuple):
    """A value of known shape somewhere in memory, as a step reads or writes it; or a number."""

    aval: Aval
    location: Location | None
    number: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class KernelStep:
    """Launch a fused kernel: that of ``node``, for the node ``of`` of the plan's graph (the same, or it moves its data)."""

    node: TraceNode
    lowered: Lowered
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    of: TraceNode


@dataclass(frozen=True, eq=False, slots=True)
class OpStep:
    """Call the eager function of an op that is no kernel."""

    node: TraceNode
    op: OpDef
    attrs: Mapping[str, Any]
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


Step = KernelStep | OpStep


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """The steps of a program over its buffers.

    ``outputs`` says for every result where it lies; ``offsets`` places the temporaries in one arena. ``made`` are the
    buffers that library calls bring along: the arrays that they return.
    """

    graph: Graph
    inputs: tuple[Buffer, ...]
    outputs: tuple[Place, ...]
    results: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    offsets: Mapping[Buffer, int]
    arena_bytes: int
    made: tuple[Buffer, ...] = ()


def make_plan(
    graph: Graph, donated: Mapping[int, Value], scheduler: Scheduler, free: Sequence[Value] = ()
) -> Plan:
    """Plan ``graph``: locations for all values, then a kernel for every fused node, then one arena for temporaries.

    ``donated`` maps ids of outputs to the inputs whose memory they should take, where that is safe; an output that is
    not in it, or cannot have what it wants, may take one of the inputs ``free``.
    """
    return _Planner(graph, donated, scheduler, free).run()


class _Launch(NamedTuple):
    """A kernel step before its node is lowered."""

    node: TraceNode
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    of: TraceNode


class _Planner:
    def __init__(
        self, graph: Graph, donated: Mapping[int, Value], scheduler: Scheduler, free: Sequence[Value]
    ) -> None:
        self.graph = graph
        self.where: dict[int, Location] = {}
        self.steps: list[_Launch | OpStep] = []
        self.structures = LoweringCache(scheduler)
        self.lifetimes = Lifetimes(graph)
        self.in_place = find_overwrites(graph, donated, free, self.structures, self.lifetimes)
        self.buffers: list[Buffer] = []
        self.made: list[Buffer] = []
        self.listed: set[int] = set()  # ids of values that are a result already

    def run(self) -> Plan:
        inputs = []
        for k, value in enumerate(self.graph.inputs):
            buffer = Buffer(BufferRole.INPUT, value.aval.nbytes, f"input {k}")
            inputs.append(buffer)
            self.where[id(value)] = Location(buffer, 0, row_major(value.aval.shape))
        self.slots = self._find_slots()
        for node in self.graph.nodes:
            self._place_node(node)
        outputs = tuple(self._output(atom) for atom in self.graph.outputs)
        results, outputs = self._promote(outputs)
        steps = tuple(self._lowered(step) if isinstance(step, _Launch) else step for step in self.steps)
        offsets, total = arena(list(map(_touched, steps)), set(self.buffers) - set(results))
        return Plan(self.graph, tuple(inputs), outputs, results, steps, offsets, total, tuple(self.made))

    def _lowered(self, launch: _Launch) -> KernelStep:
        """``launch`` with its kernel, for the places that its operands and results have by now."""
        node = launch.node
        in_place = {id(v): self.in_place[id(v)] for v in node.outs if id(v) in self.in_place}
        unread = {id(v) for v in node.outs if not self.lifetimes.is_read(v)}
        lowered = self.structures.lowered(node, lambda v: self.where[id(v)], in_place, unread)
        self.buffers += lowered.scratch
        return KernelStep(node, lowered, launch.reads, launch.writes, launch.of)

    # --- assembled values ----------------------------------------------------------------------------------------

    def _find_slots(self) -> dict[int, tuple[TraceNode, Index]]:
        """For values that are parts of an ``insert_slices``: their place in it. Kernels and products write them there."""
        slots: dict[int, tuple[TraceNode, Index]] = {}
        results = set(map(id, self.graph.outputs))
        for node in self.graph.nodes:
            if node.op is not INSERT_SLICES:
                continue
            for atom, index in zip(node.ins, node.attr("indices"), strict=True):
                maker = self.lifetimes.made_by.get(id(atom))
                placed = maker is not None and (maker.op.kind is Kind.FUSED or maker.op is INSERT_SLICES)
                direct = placed and id(atom) not in results
                if direct and id(atom) not in slots and id(atom) not in self.in_place:
                    slots[id(atom)] = node, index
        return slots

    def _assembled(self, node: TraceNode) -> Location:
        """Where the assembled value lies: a part of a larger one there, else one buffer; gaps between parts are zeros."""
        inner, waiting = node, list[TraceNode]()
        while id(node.out) not in self.where:
            waiting.append(node)
            if id(node.out) not in self.slots:
                break
            node = self.slots[id(node.out)][0]
        for outer in reversed(waiting):
            place = self.allocate(outer.out)
            for border in uncovered(outer.out.aval.shape, outer.attr("indices")):
                aval = Aval(tuple(n for _, _, n in border), outer.out.aval.dtype)
                assert place.location is not None
                self._clear(outer, Place(aval, _part(place.location, outer.out.aval, border, aval)))
        return self.where[id(inner.out)]

    def _window(self, node: TraceNode, index: Index, aval: Aval) -> Location:
        return _part(self._assembled(node), node.out.aval, index, aval)

    def _place_assembly(self, node: TraceNode) -> None:
        """Copy the parts that were not written in place already."""
        for atom, index in zip(node.ins, node.attr("indices"), strict=True):
            slot = self.slots.get(id(atom))
            if slot is None or slot[0] is not node or slot[1] is not index:
                self._copy(atom, Place(atom.aval, self._window(node, index, atom.aval)), node)

    # --- data that moves -----------------------------------------------------------------------------------------

    def _copy(self, atom: Atom, target: Place, node: TraceNode) -> None:
        """Write ``atom`` to ``target`` as well, for ``node``: by a kernel, or by NumPy for dtypes that kernels have not."""
        if not atom.aval.size:
            return
        made = copying(atom, node.origin)
        if made is None:
            self.steps.append(OpStep(node, COPY_INTO, {}, (self.place(atom),), (target,)))
        else:
            self._launch(made, target, node)

    def _clear(self, node: TraceNode, target: Place) -> None:
        made = zeros_node(target.aval, node.origin)
        if made is None:
            self.steps.append(OpStep(node, ZERO, {"like": target.aval}, (), (target,)))
        else:
            self._launch(made, target, node)

    def _launch(self, node: TraceNode, target: Place, of: TraceNode) -> None:
        assert target.location is not None
        self.where[id(node.out)] = target.location
        self._fused(node, (target,), of)

    def _fused(self, node: TraceNode, writes: tuple[Place, ...], of: TraceNode) -> None:
        self.steps.append(_Launch(node, tuple(map(self.place, node.ins)), writes, of))

    def _update(self, node: TraceNode) -> None:
        """``put_slice(x, v)``: over ``x``, if nobody sees that afterwards, else over a copy of it."""
        base, new = node.ins
        if isinstance(base, Value) and self._is_ours(base) and self.lifetimes.die_in(node, base):
            self.where[id(node.out)] = self.where[id(base)]
        else:
            target = self.allocate(node.out)
            if not (isinstance(base, Value) and self.where[id(base)] is target.location):
                self._copy(base, target, node)
        whole = self.where[id(node.out)]
        self._copy(new, Place(new.aval, _part(whole, node.out.aval, node.attr("index"), new.aval)), node)

    def _may_update(self, node: TraceNode) -> bool:
        """Whether ``node`` changes its first operand, which nobody else sees, and it reads that as no other operand."""
        if not node.op.updates_first_operand:
            return False
        base, *others = node.ins
        ours = isinstance(base, Value) and self._is_ours(base) and self.lifetimes.die_in(node, base)
        return ours and not any(x is base for x in others)

    def _is_ours(self, value: Value) -> bool:
        """Whether ``value`` has a buffer to itself that is no input."""
        location = self.where[id(value)]
        whole = location.is_contiguous(value.aval.shape) and location.buffer.nbytes == value.aval.nbytes
        return whole and location.buffer.role is BufferRole.TEMPORARY and self.lifetimes.roots[id(value)] is value

    # --- places --------------------------------------------------------------------------------------------------

    def place(self, atom: Atom) -> Place:
        if isinstance(atom, Literal):
            number = atom.value if atom.dtype is None else atom.dtype.type(atom.value)
            return Place(atom.aval, None, number)
        return Place(atom.aval, self.where[id(atom)])

    def allocate(self, value: Value) -> Place:
        source = self.in_place.get(id(value))
        slot = self.slots.get(id(value))
        if slot is not None:
            self.where[id(value)] = self._window(*slot, value.aval)
        elif source is not None:
            self.where[id(value)] = self.where[id(source)]
        else:
            buffer = Buffer(BufferRole.TEMPORARY, value.aval.nbytes, str(value.aval))
            self.buffers.append(buffer)
            self.where[id(value)] = Location(buffer, 0, row_major(value.aval.shape))
        return self.place(value)

    def _place_node(self, node: TraceNode) -> None:
        if node.op.kind is Kind.MOVEMENT and isinstance(node.ins[0], Value):
            source = node.ins[0]
            seen = view_location(node, self.where[id(source)], source.aval)
            if seen is not None:
                self.where[id(node.out)] = seen
                return
        if node.op is INSERT_SLICES:
            self._assembled(node)
            self._place_assembly(node)
        elif node.op is PUT_SLICE and node.ins[0].aval.dtype == node.ins[1].aval.dtype:
            self._update(node)
        elif node.op.kind is Kind.FUSED:
            self._fused(node, tuple(map(self.allocate, node.outs)), node)
        else:
            self._call(node)

    def _call(self, node: TraceNode) -> None:
        """A library call: its results stay the arrays that it returns, but for products and updates, written in place."""
        reads = tuple(map(self.place, node.ins))
        for value in node.outs:
            if self._may_update(node) and id(value) not in self.slots and id(value) not in self.in_place:
                self.where[id(value)] = self.where[id(node.ins[0])]
            elif node.op.contraction or id(value) in self.slots or id(value) in self.in_place:
                self.allocate(value)
            else:
                buffer = Buffer(BufferRole.EXTERNAL, value.aval.nbytes, str(value.aval))
                self.made.append(buffer)
                self.where[id(value)] = Location(buffer, 0, row_major(value.aval.shape))
        self.steps.append(OpStep(node, node.op, dict(node.attrs), reads, tuple(map(self.place, node.outs))))

    def _output(self, atom: Atom) -> Place:
        """Where a result lies; one that shows an input's memory, repeats elements or is listed twice gets its own."""
        place = self.place(atom)
        location = place.location
        overwrites = isinstance(atom, Value) and id(atom) in self.in_place
        again = id(atom) in self.listed
        self.listed.add(id(atom))
        if location is None or overwrites or location.buffer.role is not BufferRole.INPUT and _dense(place) and not again:
            return place
        copied = Value(place.aval)
        written = self.allocate(copied)
        self._copy(atom, written, TraceNode(COPY_INTO, (atom,), (copied,)))
        return written

    def _promote(self, outputs: tuple[Place, ...]) -> tuple[tuple[Buffer, ...], tuple[Place, ...]]:
        """The buffers that results lie in leave the arena: callers may keep them."""
        results = {p.location.buffer: None for p in outputs if p.location and p.location.buffer.role is BufferRole.TEMPORARY}
        return tuple(results), outputs


def _part(whole: Location, aval: Aval, index: Index, part: Aval) -> Location:
    """Where the part ``index`` of a value ``aval`` at ``whole`` lies."""
    view = TraceNode(REGISTRY["slice"], (Value(aval),), (Value(part),), (("index", index),))
    found = view_location(view, whole, aval)
    assert found is not None
    return found


def _dense(place: Place) -> bool:
    """Whether a value covers its buffer element by element, in some order."""
    location = place.location
    assert location is not None
    return location.offset == 0 and place.aval.nbytes == location.buffer.nbytes and 0 not in location.strides


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


def _touched(step: Step) -> list[Buffer]:
    found = [p.location.buffer for p in (*step.reads, *step.writes) if p.location is not None]
    return [*found, *step.lowered.scratch] if isinstance(step, KernelStep) else found
