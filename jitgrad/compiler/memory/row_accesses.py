"""Whether steps may go row by row together: no row may depend on what another row writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from jitgrad.compiler.lowering.footprint import Footprint
from jitgrad.compiler.lowering.layout import BufferOffset


class _Access(NamedTuple):
    """Row ``r`` touches ``extent`` bytes from ``start + r * step`` on."""

    start: int
    step: int
    extent: int
    written: bool


class RowAccesses:
    """The memory that every one of ``rows`` rows touches in the steps added so far.

    ``address`` places what footprints start from, at least relative to what may share its memory.
    """

    def __init__(self, rows: int, address: Callable[[BufferOffset], int]) -> None:
        self.rows = rows
        self._address = address
        self._accesses: list[_Access] = []
        self._unique: set[_Access] = set()
        self._starts, self._stops = np.empty(64, np.int64), np.empty(64, np.int64)

    def add(self, footprints: Iterable[Footprint[BufferOffset]], per_row: int) -> bool:
        """Add a step of ``per_row`` iterations a row, if then no row depends on another."""
        new = []
        for footprint in footprints:
            by_row = footprint.of_rows(per_row)
            access = _Access(self._address(footprint.base) + by_row.low, by_row.step, by_row.extent, by_row.written)
            if by_row.written and by_row.extent > abs(by_row.step):
                return False
            if access not in self._unique:
                new.append(access)
        return all(self._fits(access) for access in new)

    def _fits(self, access: _Access) -> bool:
        """Add ``access``, if all earlier ones allow it."""
        across = (self.rows - 1) * access.step
        start, stop = access.start + min(0, across), access.start + max(0, across) + access.extent
        count = len(self._accesses)
        for k in np.flatnonzero((self._starts[:count] < stop) & (self._stops[:count] > start)):
            other = self._accesses[k]
            if (access.written or other.written) and _rows_meet(access, other, self.rows):
                return False
        if count == len(self._starts):
            self._starts, self._stops = np.resize(self._starts, 2 * count), np.resize(self._stops, 2 * count)
        self._starts[count], self._stops[count] = start, stop
        self._accesses.append(access)
        self._unique.add(access)
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
