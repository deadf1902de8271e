"""Finds runs of kernels over the same elements or rows, which then run block by block.

A formula of a thousand operations takes many kernels. One after the other, each writes whole arrays
to memory that the next ones read. Block by block, the values between them stay in cache: a thread
takes some thousand elements through all kernels, and what only these kernels read needs memory for
one block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd

from jitgrad.compiler.lowering.kernel_ir import AccumulatorScope, KernelForm, Schedule
from jitgrad.compiler.lowering.layout import Buffer, BufferOffset, BufferRole
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.compiler.lowering.lower import Lowered, PlacedGroup, Scheduler, lower
from jitgrad.compiler.memory.arena import arena
from jitgrad.compiler.memory.row_accesses import RowAccesses
from jitgrad.compiler.plan import BlockMemory, BlockRun, KernelStep, OpStep, Step, buffers_of
from jitgrad.compiler.tuning import Tuning

_REGION = 1 << 48  # bytes between the addresses that buffers are given for comparison: more than any has
_ROWS_OF_OTHER_FORMS = 32  # forms other than `ROWS` take so many rows together
_MORE = 2  # times the memory of a block, if it would otherwise have too few elements
_MAX_OTHERS = 64  # steps that a run may overtake
_WHOLE_VECTORS = 16  # rows that fill vectors of every dtype
_MERGED_PART = 8  # times fewer bytes, read by one thread alone, that do not matter
_SAMPLE_ROWS = 4096  # rows for which the memory of a block is estimated


@dataclass(frozen=True, eq=False, slots=True)
class FoundRun:
    """Steps ``first`` to ``stop`` (exclusive), of which only one block of ``local`` needs to exist at a time."""

    first: int
    stop: int
    rows: int
    block_rows: int
    local: frozenset[Buffer]

    def laid_out(self, steps: Sequence[Step]) -> BlockRun:
        """This run with memory for one block of everything that is local, rows that kernels keep for
        their own sweeps included."""
        kernels = _kernel_steps(steps[self.first : self.stop])
        sizes = {b: b.nbytes // self.rows * self.block_rows for b in self.local}
        for step in kernels:
            sizes.update({b: b.nbytes // step.lowered.schedule.blocks for b in _spills(step)})
        offsets, size = _packed(kernels, sizes)
        local = {b: BlockMemory(offsets[b], nbytes) for b, nbytes in sizes.items()}
        return BlockRun(self.first, self.stop, self.rows, self.block_rows, local, size)


class BlockRunFinder:
    """Decides which steps of a program run block by block on a target with ``scheduler`` and ``tuning``."""

    def __init__(self, scheduler: Scheduler, tuning: Tuning) -> None:
        self.scheduler = scheduler
        self.tuning = tuning
        self._lowered: dict[tuple[Lowered, int], Lowered] = {}

    def find(self, steps: Sequence[Step], results: Collection[Buffer]) -> tuple[list[int], list[FoundRun]]:
        """The numbers of ``steps`` in the order in which to run them, and the runs in that order.

        Library calls stay where they are, but for checks, which wait until a run is over.
        """
        order: list[int] = []
        runs: list[FoundRun] = []
        users = _users(steps)
        for may_run, part in groupby(range(len(steps)), lambda k: isinstance(steps[k], KernelStep) or _checks(steps[k])):
            waiting = list(part)
            if not may_run or not self._may_gain([steps[k] for k in waiting]):
                order += waiting
                continue
            while waiting:
                growing = _GrowingRun(self.tuning).grown(steps, waiting)
                run = self._closed(growing, len(order), users, results)
                done = growing.members if run is not None else growing.before_others
                runs += [run] if run is not None else []
                order += done
                taken = set(done)
                waiting = [k for k in waiting if k not in taken]
        return order, runs

    def _may_gain(self, steps: Sequence[Step]) -> bool:
        """Whether there is enough memory to save, a quick test for most programs."""
        return self.tuning.block_bytes > 0 and _touched_again(steps) >= self.tuning.min_local_bytes

    def in_blocks(self, group: PlacedGroup, step: KernelStep, run: FoundRun) -> Lowered:
        """The kernel of ``step`` with the blocks of ``run``: it matters to what it keeps per block."""
        lowered = step.lowered
        if lowered.is_independent:
            return lowered
        size = lowered.schedule.iterations // run.rows * run.block_rows
        if (lowered, size) not in self._lowered:

            def scheduler(nest: LoopNest) -> Schedule:
                return replace(self.scheduler(nest), block_size=size)

            self._lowered[lowered, size] = lower(group, scheduler)
        return self._lowered[lowered, size]

    def _closed(
        self, run: _GrowingRun, first: int, users: Mapping[Buffer, set[int]], results: Collection[Buffer]
    ) -> FoundRun | None:
        """``run``, if it gains from going block by block; its steps get the numbers from ``first`` on."""
        inside = set(run.members)
        local = frozenset(b for b in run.written - set(results) if users[b] <= inside and run.in_rows(b))
        saved = _touched_again(run.steps, run.in_rows)
        if len(run.steps) < 2 or saved < self.tuning.min_local_bytes:
            return None
        _, sampled = _packed(run.steps, {b: b.nbytes // run.rows * _SAMPLE_ROWS for b in local})
        row_bytes = sampled // _SAMPLE_ROWS + run.bytes_outside(local)
        for block_bytes in (self.tuning.block_bytes, _MORE * self.tuning.block_bytes):
            wanted = min(block_bytes // max(1, row_bytes), run.rows // self.tuning.enough_blocks)
            for_columns = self._rows_for_columns(run, block_bytes // max(1, row_bytes))
            block_rows = max(1 << max(0, wanted.bit_length() - 1), for_columns)
            suits = all(_suits(step, run.rows, block_rows) for step in run.steps)
            suits = suits and self._merges_little(run, block_rows, saved)
            if wanted and suits and run.elements * block_rows // run.rows >= self.tuning.min_block_elements:
                return FoundRun(first, first + len(run.steps), run.rows, block_rows, local)
        return None

    def _rows_for_columns(self, run: _GrowingRun, most: int) -> int:
        """The rows of as many blocks as sums over rows have anyway, if those are at most ``most``; else 1."""
        least = -(-run.rows // self.tuning.max_column_blocks)
        least = -(-least // _WHOLE_VECTORS) * _WHOLE_VECTORS
        return least if least <= most and any(map(_column_bytes, run.steps)) else 1

    def _merges_little(self, run: _GrowingRun, block_rows: int, saved: int) -> bool:
        """Whether one thread, which adds up a row of partial sums for each block, reads far less than the ``saved`` bytes."""
        blocks = -(-run.rows // block_rows)
        return blocks <= self.tuning.max_column_blocks or _MERGED_PART * blocks * sum(map(_column_bytes, run.steps)) <= saved


class _GrowingRun:
    """Kernels over the same rows, and the memory that they touch."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.members: list[int] = []
        self.before_others: list[int] = []  # the numbers of the first step, and of members up to the first other
        self.steps: list[KernelStep] = []
        self.rows = 0
        self.written = set[Buffer]()  # temporaries
        self._numbers: dict[Buffer, int] = {}
        self._accesses = RowAccesses(0, self._address)
        self._late = set[Buffer]()  # what an epilogue touches, which runs after the last block
        self._late_writes = set[Buffer]()

    def grown(self, steps: Sequence[Step], numbers: Sequence[int]) -> _GrowingRun:
        """Add those of ``numbers`` that can run before all others among them, up to too many others."""
        others = _Others()
        for k in numbers:
            step = steps[k]
            if isinstance(step, KernelStep) and not others.meet(step) and self.add(step):
                self.members.append(k)
            elif not self.members or others.count == _MAX_OTHERS:
                break
            else:
                others.add(step)
            if not others.count:
                self.before_others.append(k)
        self.before_others = self.before_others or [numbers[0]]
        return self

    def add(self, step: KernelStep) -> bool:
        """Add ``step``, if its rows depend on no other rows of the steps before."""
        iterations = step.lowered.schedule.iterations
        rows = gcd(self.rows, iterations)
        if step.footprints is None or rows < self.tuning.enough_blocks or self._waits_for_epilogue(step):
            return False
        if rows != self.rows:
            accesses = RowAccesses(rows, self._address)
            if not all(_add(accesses, earlier) for earlier in self.steps):
                return False
            self.rows, self._accesses = rows, accesses
        if not _add(self._accesses, step):
            return False
        self.steps.append(step)
        self.written |= {f.base[0] for f in step.footprints if f.written and f.base[0].role is BufferRole.TEMPORARY}
        late = _epilogue_buffers(step)
        self._late |= late
        self._late_writes |= late.intersection(buffers_of(step.writes))
        return True

    def in_rows(self, buffer: Buffer) -> bool:
        """Whether every row of ``buffer`` belongs to one row of all steps that touch it, and no epilogue does."""
        if buffer in self._late or buffer.nbytes % self.rows:
            return False
        nbytes = buffer.nbytes // self.rows
        for step in self.steps:
            for f in step.footprints or ():
                if f.base[0] is buffer:
                    by_row = f.of_rows(step.lowered.schedule.iterations // self.rows)
                    first = f.base[1] + by_row.low
                    if by_row.step != nbytes or first < 0 or first + by_row.extent > nbytes:
                        return False
        return True

    @property
    def elements(self) -> int:
        """The elements of the largest operand or result of a kernel, on average over all elements."""
        sizes = [max(p.aval.size for p in (*step.reads, *step.writes)) for step in self.steps]
        return sum(n * n for n in sizes) // max(1, sum(sizes))

    def bytes_outside(self, local: Collection[Buffer]) -> int:
        """The bytes of a row in all buffers but ``local``."""
        touched: dict[BufferOffset, int] = {}
        for step in self.steps:
            for f in step.footprints or ():
                if f.base[0] not in local:
                    touched[f.base] = abs(f.step) * (step.lowered.schedule.iterations // self.rows)
        return sum(touched.values())

    def _waits_for_epilogue(self, step: KernelStep) -> bool:
        """Whether ``step`` reads what an earlier epilogue writes, or changes what one reads."""
        footprints = step.footprints or ()
        touched = {f.base[0] for f in footprints} | _epilogue_buffers(step)
        return not touched.isdisjoint(self._late_writes) or any(f.written and f.base[0] in self._late for f in footprints)

    def _address(self, place: BufferOffset) -> int:
        buffer, offset = place
        return self._numbers.setdefault(buffer, len(self._numbers)) * _REGION + offset


class _Others:
    """Steps that wait until a run is over, and the memory that they touch."""

    def __init__(self) -> None:
        self.count = 0
        self._touched = set[Buffer]()
        self._written = set[Buffer]()
        self._check = False

    def add(self, step: Step) -> None:
        self.count += 1
        self._check |= _checks(step)
        self._touched.update(step.buffers)
        self._written.update(buffers_of(step.writes))

    def meet(self, step: Step) -> bool:
        """Whether ``step`` may not run before them: a failed check leaves inputs as they were."""
        if self._check and any(b.role is BufferRole.INPUT for b in buffers_of(step.writes)):
            return True
        return not (self._written.isdisjoint(step.buffers) and self._touched.isdisjoint(buffers_of(step.writes)))


def _checks(step: Step) -> bool:
    """Whether ``step`` only raises where an operand is wrong."""
    return isinstance(step, OpStep) and step.op.checks


def _add(accesses: RowAccesses, step: KernelStep) -> bool:
    return accesses.add(step.footprints or (), step.lowered.schedule.iterations // accesses.rows)


def _suits(step: KernelStep, rows: int, block_rows: int) -> bool:
    """Whether the kernel of ``step`` is as fast on blocks of ``block_rows`` rows as on its own."""
    schedule = step.lowered.schedule
    return schedule.form is KernelForm.ROWS or schedule.iterations // rows * block_rows >= _ROWS_OF_OTHER_FORMS


def _column_bytes(step: KernelStep) -> int:
    """The bytes of partial sums that the kernel of ``step`` keeps for each block, if it sums columns."""
    epilogue = step.lowered.kernel.epilogue
    if epilogue is None or all(m.where is not AccumulatorScope.COLUMN for m in epilogue.merges):
        return 0
    partial = _partial_sums(step)
    return sum(b.nbytes for b in step.scratch if b in partial) // step.lowered.schedule.blocks


def _epilogue_buffers(step: KernelStep) -> set[Buffer]:
    """The buffers that the epilogue of ``step`` touches, but for scratch memory."""
    return {arg[0] for arg in step.epilogue_args if not isinstance(arg, int)}.difference(step.scratch)


def _spills(step: KernelStep) -> list[Buffer]:
    """The scratch memory that one block alone uses."""
    partial = _partial_sums(step)
    return [b for b in step.scratch if b not in partial]


def _partial_sums(step: KernelStep) -> set[Buffer]:
    """The scratch memory that the epilogue reads, among other memory."""
    return {arg[0] for arg in step.epilogue_args if not isinstance(arg, int)}


def _touched_again(steps: Sequence[Step], counts: Callable[[Buffer], bool] = lambda _: True) -> int:
    """The bytes of memory that ``steps`` touch after an earlier one did, of the buffers that ``counts`` names."""
    touched = Counter(b for step in steps for b in {*buffers_of(step.writes), *step.buffers})
    return sum((times - 1) * b.nbytes for b, times in touched.items() if times > 1 and counts(b))


def _users(steps: Sequence[Step]) -> dict[Buffer, set[int]]:
    """The numbers of the steps that touch each buffer."""
    users: dict[Buffer, set[int]] = {}
    for k, step in enumerate(steps):
        for buffer in step.buffers:
            users.setdefault(buffer, set()).add(k)
    return users


def _packed(steps: Sequence[KernelStep], sizes: Mapping[Buffer, int]) -> tuple[dict[Buffer, int], int]:
    """Offsets of buffers of ``sizes`` bytes, and the bytes of all, by the steps that need them."""
    blocks = {b: Buffer(BufferRole.TEMPORARY, nbytes, b.label) for b, nbytes in sizes.items()}
    touched = [[blocks[b] for b in step.buffers if b in blocks] for step in steps]
    offsets, size = arena(touched, blocks.values())
    return {b: offsets[block] for b, block in blocks.items()}, size


def _kernel_steps(steps: Sequence[Step]) -> list[KernelStep]:
    return [step for step in steps if isinstance(step, KernelStep)]
