"""From placed values and lowered groups to the steps of a program, with one arena for all
temporaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jitgrad.compiler.lowering.footprint import Footprint
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer, BufferOffset, BufferRole, Location
from jitgrad.compiler.lowering.loop_nest import KernelArg, Slot
from jitgrad.compiler.lowering.lower import Lowered, PlacedGroup
from jitgrad.compiler.memory.arena import arena
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Graph, TraceNode
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin


class Place(NamedTuple):
    """A value of known shape in memory, as a step reads or writes it; or a number."""

    aval: Aval
    location: Location | None
    number: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class KernelCall:
    """A kernel step before its group is lowered. ``of`` is the node of the program's graph that it
    belongs to."""

    group: PlacedGroup
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    of: TraceNode


@dataclass(frozen=True, eq=False, slots=True)
class KernelStep:
    """Launch a fused kernel: that of ``node``, for the node ``of`` of the plan's graph (the same,
    or it moves its data).

    Attributes:
        args, epilogue_args: of the kernel's two functions.
        scratch: the memory that the kernel asked for.
        footprints: the memory that each iteration touches, where the iterations are independent;
            else None.
    """

    node: TraceNode
    lowered: Lowered
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    of: TraceNode
    args: tuple[ArgSlot, ...]
    epilogue_args: tuple[ArgSlot, ...]
    scratch: tuple[Buffer, ...]
    footprints: tuple[Footprint[BufferOffset], ...] | None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The lines that the kernel comes from. Steps that share a kernel have their own."""
        return tuple(dict.fromkeys([node.origin for node in self.node.attr("group").nodes]))

    @property
    def buffers(self) -> list[Buffer]:
        return [*_buffers(self.reads), *_buffers(self.writes), *self.scratch]


@dataclass(frozen=True, eq=False, slots=True)
class OpStep:
    """Call the eager function of an op that is no kernel."""

    node: TraceNode
    op: OpDef
    attrs: Mapping[str, Any]
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]

    @property
    def buffers(self) -> list[Buffer]:
        return [*_buffers(self.reads), *_buffers(self.writes)]


Step = KernelStep | OpStep


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """The places of all values of ``graph``, and the steps that compute them in order.

    Attributes:
        external: the buffers that library calls allocate: the arrays that they return.
    """

    graph: Graph
    inputs: tuple[Buffer, ...]
    outputs: tuple[Place, ...]
    external: tuple[Buffer, ...]
    steps: tuple[KernelCall | OpStep, ...]

    @property
    def groups(self) -> list[PlacedGroup]:
        """The groups to lower, in the order of their steps."""
        return [step.group for step in self.steps if isinstance(step, KernelCall)]


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """The steps of a program over its buffers.

    Attributes:
        results: the buffers that results occupy; callers may keep them.
        offsets: the place of each other temporary in one arena of ``arena_bytes``.
        external: the buffers that library calls allocate: the arrays that they return.
    """

    graph: Graph
    inputs: tuple[Buffer, ...]
    outputs: tuple[Place, ...]
    results: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    offsets: Mapping[Buffer, int]
    arena_bytes: int
    external: tuple[Buffer, ...] = ()


def make_plan(placement: Placement, lowered: Sequence[Lowered]) -> Plan:
    """Plan the memory of a program whose groups are ``lowered``, in the order of
    ``placement.groups``."""
    kernels = iter(lowered)
    steps = tuple([_bind(s, next(kernels)) if isinstance(s, KernelCall) else s for s in placement.steps])
    results = tuple(dict.fromkeys(b for b in _buffers(placement.outputs) if b.role is BufferRole.TEMPORARY))
    touched = [step.buffers for step in steps]
    temporaries = {b for buffers in touched for b in buffers if b.role is BufferRole.TEMPORARY}
    offsets, size = arena(touched, temporaries.difference(results))
    graph, inputs, outputs = placement.graph, placement.inputs, placement.outputs
    return Plan(graph, inputs, outputs, results, steps, offsets, size, placement.external)


def _bind(call: KernelCall, lowered: Lowered) -> KernelStep:
    """The step of ``call``: every slot of its kernel's arguments gets an address."""
    locations = [place.location for place in (*call.reads, *call.writes) if place.location is not None]
    scratch = tuple([Buffer(BufferRole.TEMPORARY, s.nbytes, s.label) for s in lowered.scratch])

    def address(slot: Slot) -> BufferOffset:
        if slot.scratch:
            return scratch[slot.number], 0
        return locations[slot.number].buffer, locations[slot.number].offset

    def bound(args: Sequence[KernelArg]) -> tuple[ArgSlot, ...]:
        return tuple([arg if isinstance(arg, int) else address(arg) for arg in args])

    footprints = None
    if lowered.footprints is not None:
        footprints = tuple([f.at(address(f.base)) for f in lowered.footprints])
    args, epilogue_args = bound(lowered.args), bound(lowered.epilogue_args)
    return KernelStep(
        call.group.node, lowered, call.reads, call.writes, call.of, args, epilogue_args, scratch, footprints
    )


def _buffers(places: Sequence[Place]) -> list[Buffer]:
    return [place.location.buffer for place in places if place.location is not None]
