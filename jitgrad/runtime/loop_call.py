"""A loop in a program: the program of one turn, which the native loop runs again and again, or Python does."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from jitgrad.compiler.loops.loop_op import LoopBody
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer, BufferRole, row_major
from jitgrad.compiler.plan import OpStep, Place
from jitgrad.eager.buffer_pool import ALIGNMENT, address_of
from jitgrad.runtime.executor.instruction_loop import REGIONS, REPEAT, Instruction, loop
from jitgrad.runtime.library_call import LibraryCall, Memory

_OWN_WORDS = 3  # the first of the arguments that each frame fills in


@cache
def _memcpy() -> int:
    """The address of C's ``memcpy``; 0 where the process has no such name, as on Windows."""
    try:
        return ctypes.cast(ctypes.CDLL(None).memcpy, ctypes.c_void_p).value or 0
    except (TypeError, OSError, AttributeError):
        return 0


@dataclass(frozen=True, eq=False, slots=True)
class Repeated:
    """What a frame needs to run the turns of an instruction natively.

    Attributes:
        program: of one turn.
        scratch: words of the arguments that are addresses of memory of its own, and the bytes of each.
        keep: arrays that the arguments point to.
    """

    program: Any
    scratch: Mapping[int, int]
    keep: Sequence[Any]


class LoopCall(LibraryCall):
    """A step that runs ``program``, which computes new carries and the parts of results, for each turn."""

    def __init__(
        self, step: OpStep, slots: Mapping[Buffer, int], inputs: int, external: Sequence[Buffer], program: Any, *, native: bool
    ) -> None:
        super().__init__(step, slots, inputs, external, native=False)
        self.program = program
        self.body: LoopBody = step.attrs["body"]
        self.length: int = step.attrs["length"]
        self.reverse: bool = step.attrs["reverse"]
        if native:
            self.instruction = _Arguments(self).instruction()

    def run(self, memory: Memory, inputs: Sequence[Any], results: list[Any]) -> None:
        """Turn by turn from Python."""
        given = [np.asarray(self.operand(read, memory, inputs, results)) for read in self.reads]
        outs = [memory.view(place, inputs, results) for _, place in self.writes]
        count, stop = self.body.carries, self.body.carries + self.body.slices
        dtypes = [v.aval.dtype for v in self.program.plan.graph.inputs]
        carries = [np.array(x, dtype, order="C") for x, dtype in zip(given[:count], dtypes, strict=False)]
        constants = [np.ascontiguousarray(x, dtype) for x, dtype in zip(given[stop:], dtypes[stop:], strict=True)]
        for k in reversed(range(self.length)) if self.reverse else range(self.length):
            slices = [np.ascontiguousarray(x[k]) for x in given[count:stop]]
            new = self.program.run([*carries, *slices, *constants], interruptible=False)
            carries = [np.ascontiguousarray(x) for x in new[:count]]
            for out, part in zip(outs[count:], new[count:], strict=True):
                out[k] = part
        for out, carry in zip(outs, carries, strict=False):
            np.copyto(out, carry)


class _Arguments:
    """The arguments of the instruction for a loop: see `jitgrad.runtime.executor.instruction_loop`."""

    def __init__(self, call: LoopCall) -> None:
        self.call = call
        self.reads: Sequence[Place] = call.step.reads
        self.writes: Sequence[Place] = call.step.writes
        self.plan = call.program.plan
        self.regions: list[ArgSlot] = [0] * len(call.program.slots)
        self.steps: list[int] = [0] * len(self.regions)
        self.first: list[tuple[int, int, int]] = []  # copies before the first turn
        self.copies: list[tuple[int, int, int]] = []
        self.more: list[ArgSlot] = []
        self.scratch: dict[int, int] = {}
        self.keep: list[Any] = []

    def instruction(self) -> Instruction | None:
        """None if a turn needs Python, or reads or writes arrays that do not lie in order."""
        runs = self.call.program.runner.repeats and _memcpy() != 0
        if not (runs and self._add_inputs() and self._add_results()):
            return None
        steps = np.array(self.steps or [0], np.int64)
        copies = np.array([*self.first, *self.copies] or [(0, 0, 0)], np.int64)
        head: list[ArgSlot] = [0] * _OWN_WORDS
        head += [address_of(steps), address_of(copies), len(self.first), len(self.copies), _memcpy(), 0]
        repeated = Repeated(self.call.program, self.scratch, [steps, copies, *self.keep])
        args = [*head, *self.regions, *self.more]
        count, declines = len(self.regions), self.call.program.runner.declines
        return Instruction(REPEAT, loop(), args, self.call.length, count, len(args), declines, repeated)

    def _word(self, slot: ArgSlot) -> int:
        """A word of further memory, as a copy names it."""
        self.more.append(slot)
        return -(REGIONS + len(self.regions) + len(self.more) - 1)

    def _of_number(self, place: Place) -> int:
        """The address of a number that is known beforehand, repeated over its shape."""
        array = np.full(place.aval.shape, place.number, place.aval.dtype)
        self.keep.append(array)
        return address_of(array)

    def _slot(self, place: Place) -> ArgSlot | None:
        at = place.location
        if at is None:
            return self._of_number(place)
        return (at.buffer, at.offset) if at.is_contiguous(place.aval.shape) else None

    def _add_inputs(self) -> bool:
        """Carries lie where their last values will, slices and constants where they are."""
        body = self.call.body
        for k, buffer in enumerate(self.plan.inputs):
            region = self.call.program.slots[buffer]
            place, step = self.reads[k], 0
            slot = self._slot(place)
            if slot is None:
                return False
            if k < body.carries:
                target = self._slot(self.writes[k])
                if target is None:
                    return False
                self.first.append((region, self._word(slot), place.aval.nbytes))
                slot = target
            elif k < body.carries + body.slices:
                slot, step = self._moving(slot, place)
            self.regions[region], self.steps[region] = slot, step
        return True

    def _is_aligned(self, slot: ArgSlot, nbytes: int) -> bool:
        """Whether every part at ``slot`` starts at a cache line, as stores past the caches suppose of large results."""
        large = nbytes >= self.call.program.target.tuning.min_nontemporal_result
        return not large or (not isinstance(slot, int) and slot[1] % ALIGNMENT == nbytes % ALIGNMENT == 0)

    def _moving(self, slot: ArgSlot, place: Place) -> tuple[ArgSlot, int]:
        """The slice of the first turn in an array at ``slot``, and the bytes to the next."""
        step = place.aval.nbytes // self.call.length
        if place.location is None:
            return slot, 0
        if not self.call.reverse:
            return slot, step
        assert not isinstance(slot, int)
        return (slot[0], slot[1] + (self.call.length - 1) * step), -step

    def _add_results(self) -> bool:
        """New carries go back to where a turn reads them; parts lie in a row."""
        carries = self.call.body.carries
        for k, place in enumerate(self.plan.outputs):
            nbytes, at = place.aval.nbytes, place.location
            own = self.call.program.slots[self.plan.inputs[k]] if k < carries else -1
            if at is None:
                source = self._word(self._of_number(place))
                if k >= carries:
                    return False
                self.copies.append((own, source, nbytes))
                continue
            region = self.call.program.slots[at.buffer]
            if at.strides != row_major(place.aval.shape) or at.offset or at.buffer.nbytes != nbytes:
                return False
            if k >= carries:
                if at.buffer.role is BufferRole.INPUT:
                    return False
                target = self._slot(self.writes[k])
                if target is None or not self._is_aligned(target, nbytes):
                    return False
                self.regions[region], self.steps[region] = self._moving(target, self.writes[k])
            elif region != own:
                if at.buffer.role is not BufferRole.INPUT:
                    self.scratch[REGIONS + region] = nbytes
                self.copies.append((own, region, nbytes))
        return True
