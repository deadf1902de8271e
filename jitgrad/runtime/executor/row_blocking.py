"""Finds small products and kernels over the same rows, so that each thread takes some rows through all of them.

The steps of a recurrent network are products of a few rows and elementwise kernels between them. Shared among threads
one by one, each takes some microseconds, and the threads wait for each other after every one, hundreds of times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jitgrad.compiler.lowering.footprint import Footprint
from jitgrad.compiler.lowering.layout import Buffer, BufferOffset

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


class _Access(NamedTuple):
    """Row ``r`` touches ``extent`` bytes from ``start + r * step`` on."""

    start: int
    step: int
    extent: int
    written: bool


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
        self.accesses: list[_Access] = []
        self.unique: set[_Access] = set()
        self.starts, self.stops = np.empty(64, np.int64), np.empty(64, np.int64)

    def add(self, candidate: Candidate) -> bool:
        """Add ``candidate``, if then no row depends on the result of another."""
        if candidate.footprints is None:
            return False
        if not self.rows and not candidate.is_product:
            self.kernels_before.append(candidate)
            return True
        rows = self.rows or candidate.iterations
        if rows < MIN_BLOCK_ROWS:
            return False
        rows_before, self.rows = self.rows, rows
        pending, self.kernels_before = [*self.kernels_before, candidate], []
        fits = all(self._add(c) for c in pending)
        self.rows = rows if fits else rows_before
        return fits

    def _add(self, candidate: Candidate) -> bool:
        per_row, rest = divmod(candidate.iterations, self.rows)
        if rest or candidate.is_product and per_row != 1:
            return False
        new = []
        for footprint in candidate.footprints or ():
            by_row = footprint.of_rows(per_row)
            buffer, offset = footprint.base
            start = self.addresses[buffer] + offset + by_row.low
            access = _Access(start, by_row.step, by_row.extent, by_row.written)
            if by_row.written and by_row.extent > abs(by_row.step):
                return False
            if access not in self.unique:
                new.append(access)
        return all(self._fits(access) for access in new)

    def _fits(self, access: _Access) -> bool:
        """Add ``access``, if all earlier ones allow it."""
        across = (self.rows - 1) * access.step
        start, stop = access.start + min(0, across), access.start + max(0, across) + access.extent
        count = len(self.accesses)
        for k in np.flatnonzero((self.starts[:count] < stop) & (self.stops[:count] > start)):
            other = self.accesses[k]
            if (access.written or other.written) and _rows_meet(access, other, self.rows):
                return False
        if count == len(self.starts):
            self.starts, self.stops = np.resize(self.starts, 2 * count), np.resize(self.stops, 2 * count)
        self.starts[count], self.stops[count] = start, stop
        self.accesses.append(access)
        self.unique.add(access)
        return True


def _rows_meet(a: _Access, b: _Access, rows: int) -> bool:
    """Whether two different rows of ``a`` and ``b``, which overlap as a whole, may have memory in common."""
    if a.step != b.step or a.step <= 0:
        return True
    # row r of a and row r + k of b share bytes where  -(distance + b.extent) < k * step < a.extent - distance
    distance = b.start - a.start
    low = max(-(distance + b.extent) // a.step + 1, 1 - rows)
    high = min(-((distance - a.extent) // a.step) - 1, rows - 1)
    return low <= high and not low == high == 0
