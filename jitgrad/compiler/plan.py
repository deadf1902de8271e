"""The steps of a program, the places of its values, and the memory of its temporaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jitgrad.compiler.lowering.footprint import Footprint
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer, BufferOffset, Location
from jitgrad.compiler.lowering.lower import Lowered, PlacedGroup
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
        footprints: the memory that each iteration touches, as `Lowered` has it.
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
        return [*buffers_of(self.reads), *buffers_of(self.writes), *self.scratch]


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
        return [*buffers_of(self.reads), *buffers_of(self.writes)]


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


class BlockMemory(NamedTuple):
    """Where a block of a buffer lies in the memory of a thread, and how many bytes it has."""

    offset: int
    nbytes: int


@dataclass(frozen=True, eq=False, slots=True)
class BlockRun:
    """Kernel steps ``first`` to ``stop`` (exclusive), which run block by block.

    All of them run for the first ``block_rows`` of ``rows`` rows, then all for the next rows, and so
    on; their epilogues run after the last block.

    Attributes:
        local: the buffers of which only one block exists at a time, in ``local_bytes`` bytes of the
            thread that runs the block.
    """

    first: int
    stop: int
    rows: int
    block_rows: int
    local: Mapping[Buffer, BlockMemory]
    local_bytes: int


@dataclass(frozen=True, slots=True)
class Limited:
    """How a program keeps to a memory budget.

    Attributes:
        budget: the bytes that its temporaries may take.
        before: the bytes that they would take without a budget.
        again: the numbers of the steps that run again what an earlier step computed.
        spare_memory: of the `Tuning` of its passes.
    """

    budget: int
    before: int
    again: tuple[int, ...] = ()
    spare_memory: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """The steps of a program over its buffers.

    Attributes:
        results: the buffers that results occupy; callers may keep them.
        offsets: the place of each other temporary in one arena of ``arena_bytes``.
        external: the buffers that library calls allocate: the arrays that they return.
        block_runs: the steps that run block by block, in order.
        limited: of a program with a memory budget: what that allows, and what it costs.
    """

    graph: Graph
    inputs: tuple[Buffer, ...]
    outputs: tuple[Place, ...]
    results: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    offsets: Mapping[Buffer, int]
    arena_bytes: int
    external: tuple[Buffer, ...] = ()
    block_runs: tuple[BlockRun, ...] = ()
    limited: Limited | None = None

    @property
    def external_bytes(self) -> int:
        """The arrays that library calls return, which live until the call ends; not those that are results."""
        kept = set(buffers_of(self.outputs))
        return sum(b.nbytes for b in self.external if b not in kept)

    @property
    def temporary_bytes(self) -> int:
        """The memory of all temporaries of a call: what a memory budget limits."""
        return self.arena_bytes + self.external_bytes


def buffers_of(places: Sequence[Place]) -> list[Buffer]:
    return [place.location.buffer for place in places if place.location is not None]
