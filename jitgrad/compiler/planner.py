"""From placed values and lowered groups to a plan, with one arena for all temporaries."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.compiler.block_runs import BlockRunFinder, FoundRun
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer, BufferOffset, BufferRole
from jitgrad.compiler.lowering.loop_nest import KernelArg, Slot
from jitgrad.compiler.lowering.lower import Lowered
from jitgrad.compiler.memory.arena import arena
from jitgrad.compiler.plan import BlockRun, KernelCall, KernelStep, OpStep, Placement, Plan, Step, buffers_of


def make_plan(placement: Placement, lowered: Sequence[Lowered], finder: BlockRunFinder | None = None) -> Plan:
    """Plan the memory of a program whose groups are ``lowered``, in the order of
    ``placement.groups``.

    ``finder`` says which kernels run block by block; without one, none do.
    """
    kernels = iter(lowered)
    calls = placement.steps
    steps: list[Step] = [_bind(s, next(kernels)) if isinstance(s, KernelCall) else s for s in calls]
    outputs = buffers_of(placement.outputs)
    results = tuple(dict.fromkeys(b for b in outputs if b.role is BufferRole.TEMPORARY))
    runs: tuple[BlockRun, ...] = ()
    if finder is not None:
        order, found = finder.find(steps, results)
        calls, steps = tuple([calls[k] for k in order]), [steps[k] for k in order]
        runs = _run_in_blocks(calls, steps, found, finder)
    touched = touched_by(steps, runs)
    temporaries = {b for buffers in touched for b in buffers if b.role is BufferRole.TEMPORARY}
    offsets, size = arena(touched, temporaries.difference(results))
    graph, inputs = placement.graph, placement.inputs
    return Plan(graph, inputs, placement.outputs, results, tuple(steps), offsets, size, placement.external, runs)


def _run_in_blocks(
    calls: Sequence[KernelCall | OpStep], steps: list[Step], runs: Sequence[FoundRun], finder: BlockRunFinder
) -> tuple[BlockRun, ...]:
    """Replace the ``steps`` of ``runs``, which come from ``calls``, by the same in the blocks of their run."""
    for run in runs:
        for k in range(run.first, run.stop):
            call, step = calls[k], steps[k]
            assert isinstance(call, KernelCall) and isinstance(step, KernelStep)
            lowered = finder.in_blocks(call.group, step, run)
            if lowered is not step.lowered:
                steps[k] = _bind(call, lowered)
    return tuple([run.laid_out(steps) for run in runs])


def touched_by(steps: Sequence[Step], runs: Sequence[BlockRun]) -> list[list[Buffer]]:
    """The buffers that every step, or a whole run, touches; those of one block are left out."""
    run_of = {k: run for run in runs for k in range(run.first, run.stop)}
    touched: dict[BlockRun | Step, list[Buffer]] = {}
    for k, step in enumerate(steps):
        run = run_of.get(k)
        local = run.local if run is not None else ()
        touched.setdefault(run or step, []).extend([b for b in step.buffers if b not in local])
    return list(touched.values())


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
