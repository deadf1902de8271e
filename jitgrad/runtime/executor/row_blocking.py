"""Finds small products and kernels over the same rows, so that each thread takes some rows through all of them.

The steps of a recurrent network are products of a few rows and elementwise kernels between them. Shared among threads
one by one, each takes some microseconds, and the threads wait for each other after every one, hundreds of times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jitgrad.compiler.lowering.footprint import Footprint
from jitgrad.compiler.lowering.layout import Buffer, BufferOffset
from jitgrad.compiler.memory.row_accesses import RowAccesses

MIN_BLOCK_ROWS = 32  # products of fewer than 16 rows are slow
MAX_WORK = 1 << 21  # multiplications: a larger product shares its work better by itself
MAX_BLOCKS = 4  # and so does a kernel of more blocks
_MAX_BLOCK = 128  # rows of a block, where there are more than two such blocks


@dataclass(frozen=True, slots=True)
class Candidate:
    """An instruction whose ``iterations`` touch no memory but ``footprints``. None: it cannot go by rows.

    The iterations of a matrix product are the rows of its result.
    """

    iterations: int
    footprints: tuple[Footprint[BufferOffset], ...] | None
    is_product: bool = False


class Run(NamedTuple):
    """Instructions ``first`` to ``stop`` (exclusive), which can go by ``rows`` together."""

    first: int
    stop: int
    rows: int


def row_blocked_runs(candidates: Sequence[Candidate], addresses: Mapping[Buffer, int]) -> list[Run]:
    """The runs of two or more instructions that can go by rows together.

    ``addresses`` places the buffers relative to each other, since those of one arena may share memory.
    """
    runs: list[Run] = []
    first, growing = 0, _GrowingRun(addresses)
    for k, candidate in enumerate(candidates):
        if not growing.add(candidate):
            runs.append(Run(first, k, growing.rows))
            first, growing = k, _GrowingRun(addresses)
            if not growing.add(candidate):
                first, growing = k + 1, _GrowingRun(addresses)
    runs.append(Run(first, len(candidates), growing.rows))
    return [run for run in runs if run.rows and run.stop - run.first > 1]


def row_block_size(rows: int) -> int:
    """How many rows make a block: half of them at most. It depends on their number alone, so results do not vary."""
    return _MAX_BLOCK if rows > 2 * _MAX_BLOCK else -(-rows // 16) * 8


class _GrowingRun:
    """Instructions that can go by rows together, and the memory that a row of them touches."""

    def __init__(self, addresses: Mapping[Buffer, int]) -> None:
        self.addresses = addresses
        self.rows = 0  # unknown before the first product
        self.kernels_before: list[Candidate] = []  # before the first product
        self.accesses: RowAccesses | None = None

    def add(self, candidate: Candidate) -> bool:
        """Add ``candidate``, if then no row depends on the result of another."""
        if candidate.footprints is None:
            return False
        if self.accesses is None and not candidate.is_product:
            self.kernels_before.append(candidate)
            return True
        rows = self.rows or candidate.iterations
        if rows < MIN_BLOCK_ROWS:
            return False
        accesses = self.accesses or RowAccesses(rows, self._address)
        pending, self.kernels_before = [*self.kernels_before, candidate], []
        if not all(self._add(c, accesses) for c in pending):
            return False
        self.rows, self.accesses = rows, accesses
        return True

    def _add(self, candidate: Candidate, accesses: RowAccesses) -> bool:
        per_row, rest = divmod(candidate.iterations, accesses.rows)
        if rest or candidate.is_product and per_row != 1:
            return False
        return accesses.add(candidate.footprints or (), per_row)

    def _address(self, place: BufferOffset) -> int:
        buffer, offset = place
        return self.addresses[buffer] + offset
