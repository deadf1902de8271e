"""Runs a program whose kernels are machine code: its steps as tables of instructions, relocated at
each call."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.base import AddressSpace
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.core.aval import Dtype
from jitgrad.core.fork import cached_property
from jitgrad.eager.buffer_pool import ALIGNMENT, address_of
from jitgrad.runtime.executor import instruction_loop, thread_pool
from jitgrad.runtime.executor.gemm import Gemm
from jitgrad.runtime.executor.instructions import DECLINED, BlockTable, InstructionTable
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.frame import HostFrame
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.loop_call import Repeated
from jitgrad.runtime.program import Program


class NativeRunner:
    """Runs ``program`` by the instruction loop, but for library calls that need Python."""

    address_space: AddressSpace | None = AddressSpace.HOST
    launched = ""
    interruptible = True

    def __init__(self, program: Program) -> None:
        self.program = program

    def frame(self) -> NativeFrame:
        return NativeFrame(self)

    @cached_property
    def parts(self) -> list[InstructionTable | LibraryCall]:
        """Tables of the steps that run without Python, and the steps between them."""
        parts: list[InstructionTable | LibraryCall] = []
        table: InstructionTable | None = None
        runs = {run.first: run for run in self.program.plan.block_runs}
        steps = enumerate(self.program.steps)
        for k, step in steps:
            if isinstance(step, LibraryCall) and step.instruction is None and step.products is None:
                parts.append(step)
                table = None
                continue
            if table is None:
                parts.append(table := InstructionTable(self._base))
            if k in runs:
                others = [following for _, following in itertools.islice(steps, runs[k].stop - k - 1)]
                table.blocks(runs[k], [s for s in (step, *others) if isinstance(s, Launch)])
            elif isinstance(step, Launch):
                table.kernel(step)
            elif step.instruction is not None and step.instruction.declines:
                table.add_declining(step.instruction, k + 1)  # 0: none has
            elif step.instruction is not None:
                table.add(step.instruction)
            else:
                for gemm in step.products or ():
                    table.multiply(gemm)
        return parts

    @property
    def repeats(self) -> bool:
        """Whether the native loop can run the program again and again: without Python and memory of library calls."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return isinstance(only, InstructionTable) and not self.program.plan.external

    @property
    def declines(self) -> bool:
        """Whether a step may be left to NumPy."""
        return any(isinstance(part, InstructionTable) and part.declines for part in self.parts)

    @property
    def tiled_products(self) -> frozenset[Gemm]:
        return frozenset().union(*(part.tiled for part in self.parts if isinstance(part, InstructionTable)))

    def computed_by(self, call: LibraryCall) -> str:
        return call.computed_by(self.tiled_products)

    def _base(self, slot: tuple[Buffer, int]) -> tuple[int, int]:
        """(region, offset) of an argument: inputs and results are regions by their slots; then come the arena, and the
        word for a step that is left to NumPy."""
        buffer, offset = slot
        if buffer is DECLINED:
            return len(self.program.slots) + 1, offset
        region = self.program.slots.get(buffer)
        if region is not None:
            return region, offset
        return len(self.program.slots), self.program.plan.offsets[buffer] + offset


@dataclass(eq=False, slots=True)
class _Segment:
    """Consecutive ``instructions`` as the table of one frame, and the arrays that their relocation reads."""

    table: np.ndarray[Any, Any]
    count: int
    instructions: InstructionTable
    keep: list[Any] = field(default_factory=list)

    @property
    def address(self) -> int:
        return address_of(self.table)


class _Workspaces:
    """Memory for one block of kernels that run block by block, for each thread.

    A workspace is a line that says whether it is in use, a copy of the arguments, and the memory of a block. The runs of
    a program come one after the other, so that the largest decides.
    """

    def __init__(self, runs: Sequence[BlockTable]) -> None:
        lines = [-(-8 * run.arg_count // ALIGNMENT) + -(-run.local_bytes // ALIGNMENT) + 1 for run in runs]
        self.nbytes: int = max(lines, default=0) * ALIGNMENT
        self.count: int = thread_pool.get_num_threads() if runs else 0
        self._memory = np.empty(self.count * self.nbytes + ALIGNMENT, np.uint8)
        start = -address_of(self._memory) % ALIGNMENT
        self.address: int = address_of(self._memory) + start
        spaces = self._memory[start : start + self.count * self.nbytes].reshape(self.count, self.nbytes)
        spaces[:, :ALIGNMENT] = 0  # not in use


def _block_words(blocks: BlockTable, args: np.ndarray[Any, Any], spaces: _Workspaces) -> list[np.ndarray[Any, Any]]:
    """The table of a LOCAL_BLOCKS instruction whose kernels have their arguments in ``args``, and what it points to."""
    where, offset, step = blocks.moved
    words = [address_of(args) + 8 * blocks.first_arg, blocks.arg_count, *map(address_of, blocks.moved), len(where)]
    words += [spaces.address, spaces.nbytes, spaces.count]
    return [np.array(words, np.int64), where, offset, step]


class NativeFrame(HostFrame):
    """Instruction tables of one call at a time, which writes its buffers' addresses into them."""

    def __init__(self, runner: NativeRunner) -> None:
        super().__init__(runner.program)
        program = runner.program
        self.declined: ctypes.Array[ctypes.c_int64] = (ctypes.c_int64 * 1)()  # the number of a step that is left to NumPy
        self.bases: np.ndarray[Any, np.dtype[np.int64]] = np.zeros(len(program.slots) + 2, np.int64)
        self.bases[-2:] = address_of(self.arena) + self.shift, ctypes.addressof(self.declined)
        # for inputs that are floats, at their positions
        self.floats: np.ndarray[Any, np.dtype[np.float64]] = np.zeros(len(program.plan.inputs) + 1)
        self.ints: np.ndarray[Any, np.dtype[np.int64]] = self.floats.view(np.int64)
        self.numbers_at: int = address_of(self.floats)
        tables = [part for part in runner.parts if isinstance(part, InstructionTable)]
        self.workspaces: _Workspaces = _Workspaces([run for table in tables for run in table.block_tables])
        self.parts: list[_Segment | LibraryCall] = [
            self._segment(p) if isinstance(p, InstructionTable) else p for p in runner.parts
        ]
        self.native: bool = any(isinstance(p, _Segment) for p in self.parts)
        only = self.parts[0] if len(self.parts) == 1 else None
        # the table of a program without library calls, for callers that run it themselves
        self.address: int = only.address if isinstance(only, _Segment) else 0
        self.count: int = only.count if isinstance(only, _Segment) else 0

    def _segment(self, table: InstructionTable) -> _Segment:
        """A relocation, then the instructions of ``table``."""
        args = np.array([w if isinstance(w, int) else 0 for w in table.args] or [0], np.int64)
        where, buffer, offset = table.relocations
        arrays = (args, self.bases, where, buffer, offset)
        relocation = np.array([address_of(a) for a in arrays], np.int64)
        first = np.zeros((1, instruction_loop.INSTRUCTION_WORDS), np.int64)
        first[0, :4] = instruction_loop.RELOCATE, 0, address_of(relocation), len(where)
        rows = np.concatenate([first, table.rows(address_of(args))])
        keep: list[Any] = [*arrays, relocation]
        for number, repeated in table.loops:
            keep += self._turns(args, number, repeated)
        for blocks in table.block_tables:
            described = _block_words(blocks, args, self.workspaces)
            rows[1 + blocks.row, 2] = address_of(described[0])
            keep += described
        return _Segment(rows, len(rows), table, keep)

    def _turns(self, args: np.ndarray[Any, Any], number: int, repeated: Repeated) -> list[Any]:
        """Fill the words of a loop, whose arguments start at ``number``, that are this frame's own; what these point to."""
        frame: NativeFrame = repeated.program.runner.frame()
        args[number : number + 3] = frame.address, frame.count, address_of(frame.bases)
        args[number + instruction_loop.REGIONS - 1] = ctypes.addressof(frame.declined)
        memory = [np.empty(nbytes + ALIGNMENT, np.uint8) for nbytes in repeated.scratch.values()]
        for word, array in zip(repeated.scratch, memory, strict=True):
            args[number + word] = address_of(array) + -address_of(array) % ALIGNMENT
        return [frame, *memory]

    def keep(self, slot: int, array: np.ndarray[Any, Any], inputs: Sequence[Any], results: list[Any]) -> None:
        results[slot - len(inputs)] = array
        if self.native:
            self.bases[slot] = address_of(array)  # the table after this call is relocated by it

    def run(self, inputs: Sequence[Any], results: list[Any], interruptible: bool = False) -> None:
        if self.native:
            bases = self.bases
            k = 0
            for array in inputs:
                bases[k] = address_of(array)
                k += 1
            for array in results[: len(self.program.result_specs)]:
                bases[k] = address_of(array)
                k += 1
        run = thread_pool.run_interruptibly if interruptible else thread_pool.run_to_the_end
        if self.count:
            run(self.address, self.count)
            if self.declined[0]:
                self._go_on(self.parts[0], inputs, results, run)
            return
        with np.errstate(all="ignore"):
            for part in self.parts:
                if isinstance(part, _Segment):
                    run(part.address, part.count)
                    if self.declined[0]:
                        self._go_on(part, inputs, results, run)
                else:
                    part.run(self, inputs, results)

    # --- steps that are left to NumPy -------------------------------------------------------------

    @property
    def declines(self) -> bool:
        """Whether a step may be left to NumPy."""
        return any(isinstance(part, _Segment) and part.instructions.declines for part in self.parts)

    def finish(self) -> None:
        """The step of the only table that was left to NumPy, and those behind it. Raises what NumPy does."""
        plan, specs = self.program.plan, self.program.result_specs
        avals = [(v.aval.shape, v.aval.dtype) for v in plan.graph.inputs] + list(specs)
        arrays = [_at_address(int(address), *spec) for address, spec in zip(self.bases, avals, strict=False)]
        self._go_on(self.parts[0], arrays[: len(plan.inputs)], arrays[len(plan.inputs) :], thread_pool.run)

    def _go_on(self, part: Any, inputs: Sequence[Any], results: list[Any], run: Callable[[int, int], None]) -> None:
        """The step of ``part`` that was left to NumPy, and those behind it."""
        while number := self.declined[0]:
            self.declined[0] = 0
            step = self.program.steps[number - 1]
            assert isinstance(step, LibraryCall)
            with np.errstate(all="ignore"):
                step.run(self, inputs, results)
            row = 1 + part.instructions.row_behind(number)  # behind the relocation
            run(part.address + 8 * instruction_loop.INSTRUCTION_WORDS * row, part.count - row)


def _at_address(address: int, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray[Any, Any]:
    """The array in memory that its owner keeps alive."""
    memory: Any = (ctypes.c_uint8 * (prod(shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memory)
