"""Small products and kernels of the same rows as one job: each thread takes some rows through all of them.

The steps of a recurrent network are products of a few rows and what happens to those rows in between. Shared one by
one among threads, each lasts some microseconds, and at its end the threads wait for each other, hundreds of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jitgrad.compiler.lowering.footprint import Footprint

LEAST_ROWS = 32  # products of fewer than 16 rows are slow
MOST_WORK = 1 << 21  # multiplications: a larger product shares its work better by itself
MOST_CHUNKS = 4  # and so does a kernel of more chunks
_BAND = 128  # rows that a thread takes at a time, where there are more than two such bands


@dataclass(frozen=True, slots=True)
class Native:
    """An instruction that may go by rows: ``units`` of work that touch only what ``spans`` says. None: it may not.

    ``product``: whether it is a matrix product, whose units are the rows of its result.
    """

    units: int
    spans: tuple[Footprint, ...] | None
    product: bool = False


def strips(instructions: Sequence[Native], bases: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """(first, last + 1, rows) of the runs of ``instructions`` that can go by rows together, two or more each.

    ``bases`` has, by the id of a buffer, an address that says where buffers lie relative to each other: those of one
    arena may share memory.
    """
    first, run = 0, _Run(bases)
    for k, instruction in enumerate(instructions):
        if not run.take(instruction):
            yield from run.found(first, k)
            first, run = k, _Run(bases)
            if not run.take(instruction):
                first, run = k + 1, _Run(bases)
    yield from run.found(first, len(instructions))


def rows_of_chunk(rows: int) -> int:
    """How many rows make a chunk of a strip: halves, or bands; by their number alone, so that bits do not depend on more."""
    return _BAND if rows > 2 * _BAND else -(-rows // 16) * 8


class _Run:
    """Instructions that can go by rows together, and the memory that a row of them touches."""

    def __init__(self, bases: Mapping[int, int]) -> None:
        self.bases = bases
        self.rows = 0  # unknown before the first product
        self.waiting: list[Native] = []  # kernels before it
        self.seen: set[tuple[int, int, int, bool]] = set()
        self.starts, self.stops = np.empty(64, np.int64), np.empty(64, np.int64)
        self.spans: list[tuple[int, int, int, bool]] = []  # (address, step, extent, written)

    def take(self, instruction: Native) -> bool:
        """Add ``instruction``, if no row then depends on what becomes of another."""
        if instruction.spans is None:
            return False
        if not self.rows and not instruction.product:
            self.waiting.append(instruction)
            return True
        rows = self.rows or instruction.units
        if rows < LEAST_ROWS:
            return False
        before, self.rows = self.rows, rows
        waiting, self.waiting = [*self.waiting, instruction], []
        fits = all(self._add(n) for n in waiting)
        self.rows = rows if fits else before
        return fits

    def _add(self, instruction: Native) -> bool:
        units, rest = divmod(instruction.units, self.rows)
        if rest or instruction.product and units != 1:
            return False
        assert instruction.spans is not None
        new = []
        for span in instruction.spans:
            by_row = span.of_rows(units)
            buffer, offset = span.place
            key = self.bases[id(buffer)] + offset + by_row.low, by_row.step, by_row.extent, by_row.written
            if by_row.written and by_row.extent > abs(by_row.step):
                return False
            if key not in self.seen:
                new.append(key)
        return all(self._fits(key) for key in new)

    def _fits(self, key: tuple[int, int, int, bool]) -> bool:
        """Note what a row touches, if all that was noted before allows it."""
        address, step, extent, written = key
        across = (self.rows - 1) * step
        start, stop = address + min(0, across), address + max(0, across) + extent
        count = len(self.spans)
        for k in np.flatnonzero((self.starts[:count] < stop) & (self.stops[:count] > start)):
            other = self.spans[k]
            if (written or other[3]) and _rows_meet(key, other, self.rows):
                return False
        if count == len(self.starts):
            self.starts, self.stops = np.resize(self.starts, 2 * count), np.resize(self.stops, 2 * count)
        self.starts[count], self.stops[count] = start, stop
        self.spans.append(key)
        self.seen.add(key)
        return True

    def found(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        if self.rows and last - first > 1:
            yield first, last, self.rows


def _rows_meet(a: tuple[int, int, int, bool], b: tuple[int, int, int, bool], rows: int) -> bool:
    """Whether two different rows of ``a`` and ``b``, which overlap as a whole, may have memory in common."""
    (start, step, extent, _), (other, other_step, other_extent, _) = a, b
    if step != other_step or step <= 0:
        return True
    # row r of a and row r + k of b share bytes where  -(distance + other_extent) < k * step < extent - distance
    distance = other - start
    low = max(-(distance + other_extent) // step + 1, 1 - rows)
    high = min(-((distance - extent) // step) - 1, rows - 1)
    return low <= high and not low == high == 0
