"""Runs a program whose kernels are machine code: its steps as tables of instructions, relocated at
each call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitgrad.backends.base import AddressSpace
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.core.fork import cached_property
from jitgrad.eager.buffer_pool import ALIGNMENT, address_of
from jitgrad.runtime.executor import instruction_loop, thread_pool
from jitgrad.runtime.executor.gemm import Gemm
from jitgrad.runtime.executor.instructions import BlockTable, InstructionTable
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.frame import HostFrame
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Program


class NativeRunner:
    """Runs ``program`` by the instruction loop, but for library calls that need Python."""

    address_space: AddressSpace | None = AddressSpace.HOST
    launched = ""

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
            elif step.instruction is not None:
                table.add(step.instruction)
            else:
                for gemm in step.products or ():
                    table.multiply(gemm)
        return parts

    @property
    def tiled_products(self) -> frozenset[Gemm]:
        return frozenset().union(*(part.tiled for part in self.parts if isinstance(part, InstructionTable)))

    def computed_by(self, call: LibraryCall) -> str:
        return call.multiplied_by(self.tiled_products)

    def _base(self, slot: tuple[Buffer, int]) -> tuple[int, int]:
        """(region, offset) of an argument: inputs and results are regions by their slots, the arena
        is the last."""
        buffer, offset = slot
        region = self.program.slots.get(buffer)
        if region is not None:
            return region, offset
        return len(self.program.slots), self.program.plan.offsets[buffer] + offset


@dataclass(eq=False, slots=True)
class _Segment:
    """Consecutive instructions of one frame, and the arrays that their relocation reads."""

    table: np.ndarray[Any, Any]
    count: int
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
        self.nbytes = max(lines, default=0) * ALIGNMENT
        self.count = thread_pool.get_num_threads() if runs else 0
        self._memory = np.empty(self.count * self.nbytes + ALIGNMENT, np.uint8)
        start = -address_of(self._memory) % ALIGNMENT
        self.address = address_of(self._memory) + start
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
        self.bases = np.zeros(len(program.slots) + 1, np.int64)
        self.bases[-1] = address_of(self.arena) + self.shift
        self.floats = np.zeros(len(program.plan.inputs) + 1)  # for inputs that are floats, at their positions
        self.ints = self.floats.view(np.int64)
        self.numbers_at = address_of(self.floats)
        tables = [part for part in runner.parts if isinstance(part, InstructionTable)]
        self.workspaces = _Workspaces([run for table in tables for run in table.block_tables])
        self.parts = [self._segment(p) if isinstance(p, InstructionTable) else p for p in runner.parts]
        self.native = any(isinstance(p, _Segment) for p in self.parts)
        only = self.parts[0] if len(self.parts) == 1 else None
        # the table of a program without library calls, for callers that run it themselves
        self.address, self.count = (only.address, only.count) if isinstance(only, _Segment) else (0, 0)

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
        for blocks in table.block_tables:
            described = _block_words(blocks, args, self.workspaces)
            rows[1 + blocks.row, 2] = address_of(described[0])
            keep += described
        return _Segment(rows, len(rows), keep)

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
        run = thread_pool.run_interruptibly if interruptible else thread_pool.run
        if self.count:
            run(self.address, self.count)
            return
        with np.errstate(all="ignore"):
            for part in self.parts:
                if isinstance(part, _Segment):
                    run(part.address, part.count)
                else:
                    part.run(self, inputs, results)
