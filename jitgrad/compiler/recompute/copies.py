"""Steps on other buffers: the same kernels and calls, whose operands lie elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from jitgrad.compiler.lowering.layout import ArgSlot, Buffer, BufferOffset, Location
from jitgrad.compiler.plan import BlockRun, KernelStep, Place, Step


def with_buffers(steps: Sequence[Step], buffers: Mapping[Buffer, Buffer]) -> tuple[Step, ...]:
    """``steps`` with other buffers in the places of those that ``buffers`` names."""
    return _Exchange(buffers).steps(steps) if buffers else tuple(steps)


def run_with_buffers(run: BlockRun, first: int, buffers: Mapping[Buffer, Buffer]) -> BlockRun:
    """``run`` for copies of its steps, the first of which has the number ``first``."""
    local = {buffers.get(b, b): memory for b, memory in run.local.items()}
    return replace(run, first=first, stop=first + run.stop - run.first, local=local)


class _Exchange:
    def __init__(self, buffers: Mapping[Buffer, Buffer]) -> None:
        self.buffers = buffers
        self._locations: dict[int, Location] = {}  # by the id of the old one: a step may tell that two are the same object

    def steps(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        return tuple([self._step(step) for step in steps])

    def _step(self, step: Step) -> Step:
        reads, writes = self._places(step.reads), self._places(step.writes)
        if not isinstance(step, KernelStep):
            return replace(step, reads=reads, writes=writes)
        footprints = step.footprints
        if footprints is not None:
            footprints = tuple([f.at(self._address(f.base)) for f in footprints])
        return replace(
            step,
            reads=reads,
            writes=writes,
            args=self._slots(step.args),
            epilogue_args=self._slots(step.epilogue_args),
            scratch=tuple([self.buffers.get(b, b) for b in step.scratch]),
            footprints=footprints,
        )

    def _places(self, places: Sequence[Place]) -> tuple[Place, ...]:
        return tuple([self._place(place) for place in places])

    def _place(self, place: Place) -> Place:
        location = place.location
        if location is None or location.buffer not in self.buffers:
            return place
        key = id(location)
        if key not in self._locations:
            self._locations[key] = location._replace(buffer=self.buffers[location.buffer])
        return place._replace(location=self._locations[key])

    def _slots(self, slots: Sequence[ArgSlot]) -> tuple[ArgSlot, ...]:
        return tuple([slot if isinstance(slot, int) else self._address(slot) for slot in slots])

    def _address(self, address: BufferOffset) -> BufferOffset:
        buffer, offset = address
        return self.buffers.get(buffer, buffer), offset
