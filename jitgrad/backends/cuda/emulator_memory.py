"""The memory of emulated kernels: what threads share is checked for bounds and races.

A race is an access to what another thread wrote, or a write to what another thread read, with no
barrier between the two; threads of different blocks have no barrier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.errors import BackendError

Lanes = np.ndarray[Any, Any]  # one number for each thread
MANY = -2


class KernelFault(BackendError):
    """What an emulated kernel did that a GPU forbids, or whose result a GPU leaves open."""


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads that run in step: those of some blocks.

    Attributes:
        block, number: the number of each thread's block, and of the thread in the whole grid.
        epochs: for each thread: the barriers that its block has passed.
    """

    block: Lanes
    number: Lanes
    epochs: Lanes

    def named(self, lane: int) -> str:
        return f"thread {int(self.number[lane] - self.number[0]) % self.per_block} of block {int(self.block[lane])}"

    @property
    def per_block(self) -> int:
        return int(np.count_nonzero(self.block == self.block[0]))


class SharedRegion:
    """Elements that several threads may access: of global memory, or of the blocks' shared memory.

    Args:
        elements: one axis of elements of one dtype.
        label: what messages call it.
        tracked: whether it is read and written, so that reads are recorded too.
        fresh: whether nothing has been written yet, so that reading it before is a fault.
        written: whether the kernel writes it at all; else there is nothing to check but bounds.
        contested: whether any thread may write it, and it does not matter which one is last.
    """

    def __init__(
        self, elements: Lanes, label: str, *, tracked: bool, fresh: bool, written: bool, contested: bool = False
    ) -> None:
        self.elements = elements
        self.label = label
        self.tracked = tracked
        self.fresh = fresh
        self.written = written
        self.contested = contested
        count = elements.size if written else 0
        self.writer: Lanes = np.zeros(count, np.int64)
        self.write_epoch: Lanes = np.zeros(count, np.int64)
        readers = elements.size if written and tracked else 0
        self.reader: Lanes = np.zeros(readers, np.int64)
        self.reader_block: Lanes = np.zeros(readers, np.int64)
        self.read_epoch: Lanes = np.zeros(readers, np.int64)

    def load(self, places: Lanes, active: Lanes | None, threads: Threads) -> Lanes:
        """The elements at ``places``, one for each thread; those of inactive threads are any."""
        if active is None:
            self.check_bounds(places, threads, None)
            if self.written:
                self.read(places, threads, None)
            return self.elements[places]
        lanes = np.nonzero(active)[0]
        found = np.zeros(places.shape, self.elements.dtype)
        inside = places[lanes]
        self.check_bounds(inside, threads, lanes)
        if self.written:
            self.read(inside, threads, lanes)
        found[lanes] = self.elements[inside]
        return found

    def store(self, places: Lanes, values: Lanes, active: Lanes | None, threads: Threads) -> None:
        """Write one element for each active thread."""
        if values.dtype != self.elements.dtype:
            raise KernelFault(f"{values.dtype} is stored in {self.label}, memory of {self.elements.dtype}")
        lanes = None if active is None else np.nonzero(active)[0]
        if lanes is not None:
            places, values = places[lanes], values[lanes]
        self.check_bounds(places, threads, lanes)
        self.write(places, threads, lanes)
        self.elements[places] = values

    def check_bounds(self, places: Lanes, threads: Threads, lanes: Lanes | None) -> None:
        if not places.size or (places.min() >= 0 and places.max() < self.elements.size):
            return
        (wrong, *_), size = np.nonzero((places < 0) | (places >= self.elements.size))[0], self.elements.size
        lane = int(wrong if lanes is None else lanes[wrong])
        raise KernelFault(f"{threads.named(lane)} accesses element {int(places[wrong])} of {self.label}, which has {size}")

    # --- races -----------------------------------------------------------------------------------------------------

    def read(self, places: Lanes, threads: Threads, lanes: Lanes | None) -> None:
        """Check a read against the writes of other threads, and record it."""
        number, block, epoch = of_lanes(threads, lanes)
        writer = self.writer[places]
        if self.fresh and (writer == 0).any():
            self.refuse("reads what nothing has written of", places, writer == 0, threads, lanes)
        self.refuse_clash("reads", writer, self.write_epoch[places], places, threads, lanes)
        if not self.tracked:
            return
        together = (self.read_epoch[places] == epoch) & (self.reader_block[places] == block + 1)
        others = together & (self.reader[places] != 0) & (self.reader[places] != number + 1)
        blocks = self.reader_block[places]
        self.reader[places] = np.where(others, MANY, number + 1)
        self.reader[places] = np.where(self.reader[places] == number + 1, number + 1, MANY)
        self.reader_block[places] = np.where((blocks == 0) | (blocks == block + 1), block + 1, MANY)
        self.read_epoch[places] = epoch

    def write(self, places: Lanes, threads: Threads, lanes: Lanes | None) -> None:
        """Check a write against the accesses of other threads, and record it."""
        if self.contested:
            return
        number, block, epoch = of_lanes(threads, lanes)
        self.refuse_clash("writes", self.writer[places], self.write_epoch[places], places, threads, lanes)
        if self.tracked:
            reader, blocks = self.reader[places], self.reader_block[places]
            apart = (blocks != block + 1) | (self.read_epoch[places] == epoch)
            clash = (reader != 0) & (reader != number + 1) & apart
            if clash.any():
                self.refuse("writes what another thread has just read of", places, clash, threads, lanes)
        self.writer[places] = number + 1
        self.write_epoch[places] = epoch
        if (self.writer[places] != number + 1).any():
            self.refuse("and another thread write one element of", places, self.writer[places] != number + 1, threads, lanes)

    def refuse_clash(
        self, what: str, writer: Lanes, epochs: Lanes, places: Lanes, threads: Threads, lanes: Lanes | None
    ) -> None:
        number, block, epoch = of_lanes(threads, lanes)
        others = (writer != 0) & (writer != number + 1)
        if not others.any():
            return
        per_block = threads.per_block
        clash = others & (((writer - 1) // per_block != block) | (epochs == epoch))
        if clash.any():
            self.refuse(f"{what} what another thread has just written of", places, clash, threads, lanes)

    def refuse(self, what: str, places: Lanes, wrong: Lanes, threads: Threads, lanes: Lanes | None) -> None:
        first = int(np.nonzero(wrong)[0][0])
        lane = first if lanes is None else int(lanes[first])
        raise KernelFault(f"{threads.named(lane)} {what} {self.label}, element {int(places[first])}, with no barrier between")


def of_lanes(threads: Threads, lanes: Lanes | None) -> tuple[Lanes, Lanes, Lanes]:
    """The number, block and epoch of the threads of some lanes."""
    if lanes is None:
        return threads.number, threads.block, threads.epochs
    return threads.number[lanes], threads.block[lanes], threads.epochs[lanes]


class PrivateRegion:
    """Elements that each thread has of its own: a row for each element, a column for each
    thread."""

    def __init__(self, count: int, dtype: Any, label: str) -> None:
        self.rows: list[Lanes | None] = [None] * count
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.label = label

    def load(self, place: int) -> Lanes:
        row = self.rows[self.checked(place)]
        if row is None:
            raise KernelFault(f"element {place} of {self.label} is read before it is written")
        return row

    def store(self, place: int, values: Lanes, active: Lanes | None) -> None:
        if values.dtype != self.dtype:
            raise KernelFault(f"{values.dtype} is stored in {self.label}, memory of {self.dtype}")
        old = self.rows[self.checked(place)]
        if active is not None:
            values = np.where(active, values, np.zeros((), self.dtype) if old is None else old)
        self.rows[place] = values

    def checked(self, place: int) -> int:
        if not 0 <= place < len(self.rows):
            raise KernelFault(f"a thread accesses element {place} of {self.label}, which has {len(self.rows)}")
        return place


@dataclass(frozen=True, slots=True)
class EmulatedPointer:
    """Element ``place`` of a region: a number, or one for each thread.

    Attributes:
        address: of element 0 of the region, in bytes.
    """

    region: SharedRegion | PrivateRegion
    place: Any
    address: int = 0
