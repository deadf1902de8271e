"""The instructions of consecutive native steps, in the form that the native loop reads.

A table is the same for all frames of a program and made once; a frame adds the addresses of its memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer, BufferRole
from jitgrad.compiler.plan import BlockRun
from jitgrad.core.fork import cached_property
from jitgrad.eager.blas import find_blas
from jitgrad.runtime.executor import instruction_loop
from jitgrad.runtime.executor.gemm import Gemm, blas_instruction
from jitgrad.runtime.executor.instruction_loop import Instruction
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.executor.row_blocking import MAX_BLOCKS, MAX_WORK, Candidate, Run, row_block_size, row_blocked_runs
from jitgrad.runtime.executor.tiled_products import tiled_instruction, tiles_pay

Base = Callable[[tuple[Buffer, int]], tuple[int, int]]
# The word of a frame in which a step that leaves its op to NumPy stores its number.
DECLINED = Buffer(BufferRole.TEMPORARY, 8, "declined")
_REGION = 1 << 48  # keeps apart what shares no memory: the arena, each result, each input


class BlockTable(NamedTuple):
    """A run of kernels that goes block by block.

    Attributes:
        row: its row in the table.
        first_arg, arg_count: the arguments of its kernels.
        moved: of the arguments that are addresses in the memory of a block: their numbers, offsets,
            and the bytes by which each block is further on in the whole buffer.
        local_bytes: the memory of a block.
    """

    row: int
    first_arg: int
    arg_count: int
    moved: tuple[np.ndarray[Any, Any], ...]
    local_bytes: int


class InstructionTable:
    """Instructions and the arguments of all of them, one after the other.

    ``base`` gives the region of memory of an argument, and the offset in it.
    """

    def __init__(self, base: Base) -> None:
        self._base = base
        self._entries: list[Instruction | Gemm] = []
        self._candidates: list[Candidate] = []
        self._block_runs: dict[int, BlockRun] = {}  # by the number of the first entry
        self._behind: dict[int, int] = {}  # by the number of a step that may decline: the entry that ends the run then

    def kernel(self, launch: Launch) -> None:
        """Launch a kernel, then its epilogue."""
        lowered, code = launch.step.lowered, launch.kernel.main_code
        iterations, block_size = lowered.schedule.iterations, lowered.schedule.block_size
        by_rows = iterations <= MAX_BLOCKS * block_size and lowered.is_independent
        candidate = Candidate(iterations, launch.step.footprints if by_rows else None)
        self._add(Instruction(instruction_loop.KERNEL, code, launch.args, iterations, block_size), candidate)
        self._epilogue(launch)

    def blocks(self, run: BlockRun, launches: Sequence[Launch]) -> None:
        """Launch the kernels of ``run`` block by block, then their epilogues."""
        self._block_runs[len(self._entries)] = run
        self.add(Instruction(instruction_loop.LOCAL_BLOCKS, len(launches), (), run.rows, run.block_rows))
        for launch in launches:
            per_row = launch.step.lowered.schedule.iterations // run.rows
            self.add(Instruction(instruction_loop.KERNEL, launch.kernel.main_code, launch.args, per_row=per_row))
        for launch in launches:
            self._epilogue(launch)

    def _epilogue(self, launch: Launch) -> None:
        if launch.kernel.epilogue is not None:
            self.add(Instruction(instruction_loop.CALL, launch.kernel.epilogue_code, launch.epilogue_args))

    def multiply(self, gemm: Gemm) -> None:
        """Multiply matrices: by tiles where that is faster than BLAS."""
        footprints = gemm.row_footprints if gemm.work <= MAX_WORK else None
        self._add(gemm, Candidate(gemm.sizes[0], footprints, is_product=True))

    def add(self, instruction: Instruction) -> None:
        """An instruction that goes by rows with no other."""
        self._add(instruction, Candidate(instruction.iterations, None))

    def add_declining(self, instruction: Instruction, number: int) -> None:
        """An instruction that may leave the step ``number`` to NumPy: the run ends behind it then."""
        where: ArgSlot = (DECLINED, 0)
        self.add(replace(instruction, args=(*instruction.args, where, number)))
        self._behind[number] = len(self._entries)
        self.add(Instruction(instruction_loop.STOP_IF, 0, (where,)))

    def row_behind(self, number: int) -> int:
        """The row at which to go on after the step ``number``, which may decline."""
        return self._row_numbers[self._behind[number]] + 1

    def _add(self, entry: Instruction | Gemm, candidate: Candidate) -> None:
        self._entries.append(entry)
        self._candidates.append(candidate)

    @cached_property
    def runs(self) -> list[Run]:
        """The instructions that go by rows together."""
        runs = row_blocked_runs(self._candidates, self._addresses())
        return [run for run in runs if _pays([e for e in self._entries[run.first : run.stop] if isinstance(e, Gemm)])]

    @cached_property
    def instructions(self) -> list[Instruction]:
        """All instructions, with the implementation of each product chosen."""
        rows = {k: row_block_size(run.rows) for run in self.runs for k in range(run.first, run.stop)}
        return [e if isinstance(e, Instruction) else _product(e, rows.get(k)) for k, e in enumerate(self._entries)]

    @cached_property
    def args(self) -> list[ArgSlot]:
        """The arguments of all instructions."""
        args = [arg for instruction in self.instructions for arg in instruction.args]
        return [arg.address if isinstance(arg, CodeObject) else arg for arg in args]

    @cached_property
    def loops(self) -> list[tuple[int, Any]]:
        """The numbers of the first arguments of loops, and what frames need to run their turns."""
        firsts = itertools.accumulate((len(i.args) for i in self.instructions), initial=0)
        return [(first, i.repeated) for first, i in zip(firsts, self.instructions, strict=False) if i.repeated is not None]

    @property
    def declines(self) -> bool:
        """Whether an instruction may leave its step to NumPy."""
        return bool(self._behind)

    @property
    def tiled(self) -> set[Gemm]:
        """The products that are computed by tiles, not by BLAS."""
        pairs = zip(self._entries, self.instructions, strict=True)
        return {e for e, i in pairs if isinstance(e, Gemm) and i.kind == instruction_loop.KERNEL}

    @cached_property
    def relocations(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Of the arguments that are addresses: their numbers, regions, and offsets in the region.

        Those of memory that exists for one block at a time are in `block_tables`.
        """
        local = {b for run in self._block_runs.values() for b in run.local}
        addresses = [(k, arg) for k, arg in enumerate(self.args) if not isinstance(arg, int) and arg[0] not in local]
        return _columns([(k, *self._base(arg)) for k, arg in addresses])

    @cached_property
    def block_tables(self) -> list[BlockTable]:
        """What the native loop needs to know of each run of kernels that goes block by block."""
        tables = []
        firsts = list(itertools.accumulate((len(i.args) for i in self.instructions), initial=0))
        for entry, run in self._block_runs.items():
            first, stop = firsts[entry], firsts[entry + 1 + run.stop - run.first]
            moved = []
            for k, arg in enumerate(self.args[first:stop]):
                if not isinstance(arg, int) and arg[0] in run.local:
                    offset, nbytes = run.local[arg[0]]
                    moved.append((k, offset + arg[1], nbytes))
            tables.append(BlockTable(self._row_numbers[entry], first, stop - first, _columns(moved), run.local_bytes))
        return tables

    @cached_property
    def _row_numbers(self) -> list[int]:
        """The row of each entry: a run of products has a row before its first."""
        before = {run.first for run in self.runs}
        return [k + sum(first <= k for first in before) for k in range(len(self._entries))]

    @cached_property
    def _rows(self) -> np.ndarray[Any, Any]:
        """The table, with the number of an instruction's first argument in place of its address.

        It reads the addresses of code, for which LLVM may have to finish first, so it is made last.
        """
        runs = {run.first: run for run in self.runs}
        rows: list[tuple[int, ...]] = []
        run = Run(0, 0, 1)
        first_arg = 0
        for k, i in enumerate(self.instructions):
            if k in runs:
                run = runs[k]
                rows.append((instruction_loop.ROW_BLOCKS, run.stop - k, 0, run.rows, row_block_size(run.rows), 0))
            per_row = i.iterations // run.rows if k < run.stop and i.kind == instruction_loop.KERNEL else i.per_row
            code = i.code if isinstance(i.code, int) else i.code.address
            rows.append((i.kind, code, first_arg, i.iterations, i.block_size, per_row))
            first_arg += len(i.args)
        table = np.zeros((len(rows), instruction_loop.INSTRUCTION_WORDS), np.int64)
        table[:, :6] = rows
        return table

    def rows(self, address: int) -> np.ndarray[Any, Any]:
        """The table for arguments at ``address``."""
        table = self._rows.copy()
        table[:, 2] = address + 8 * table[:, 2]  # that of row blocks is not read, and that of local blocks is replaced
        return table

    def _addresses(self) -> Mapping[Buffer, int]:
        """An address of each buffer that candidates touch, correct relative to the others."""
        addresses: dict[Buffer, int] = {}
        for candidate in self._candidates:
            for footprint in candidate.footprints or ():
                buffer = footprint.base[0]
                if buffer not in addresses:
                    region, offset = self._base((buffer, 0))
                    addresses[buffer] = region * _REGION + offset
        return addresses


def _columns(rows: Sequence[tuple[int, int, int]]) -> tuple[np.ndarray[Any, Any], ...]:
    return tuple(np.array([row[k] for row in rows], np.int64) for k in range(3))


def _pays(gemms: Sequence[Gemm]) -> bool:
    """Whether products are faster in one run by rows than each by itself.

    Every block of rows reads the whole right matrix of every product. That is cheap if products share it, as the steps
    of a recurrent network do. A deep MLP has one matrix per layer: tiles whose columns are shared among threads
    read each once and take 0.91 of the step's time (12 layers of 128, batch 64).
    """
    return len({gemm.operands[1] for gemm in gemms}) < len(gemms) or not any(map(tiles_pay, gemms))


def _product(gemm: Gemm, block_size: int | None) -> Instruction:
    """The instruction for ``gemm`` in a run with ``block_size`` rows a block, or by itself (None)."""
    if tiles_pay(gemm, block_size) or find_blas() is None:
        return tiled_instruction(gemm, by_rows=block_size is not None)
    return blas_instruction(gemm)
