"""A pool of device memory: blocks without references are used again, as in the pool for the host."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from threading import RLock
from typing import NamedTuple, Protocol
from weakref import WeakSet

from jitgrad.core.aval import Aval, Dtype, Shape
from jitgrad.core.errors import CudaError, OutOfMemoryError
from jitgrad.core.fork import fork_safe_lock
from jitgrad.core.references import counts_owners, has_owners, take_unowned
from jitgrad.device.driver import Driver
from jitgrad.eager.buffer_pool import size_class

_SMALLEST = 512  # bytes of a block; the driver's own granularity is 256
# Blocks that a search in vain may have looked at for each allocation that follows without one: it takes as long as one call of
# the driver. So a growing group costs twice its allocations at most, and holds 1/64 more than was live at once.
_SEARCHED_PER_ALLOCATION = 64
_LISTED = 5  # of the largest arrays that an error names


class MemoryStats(NamedTuple):
    """Counts since the start, and bytes now."""

    allocations: int
    reuses: int
    bytes_held: int
    bytes_in_use: int
    peak_bytes_held: int
    bytes_free_on_device: int
    bytes_on_device: int


class Holder(Protocol):
    """Keeps arrays of the pool that nobody uses at the moment."""

    def release(self) -> None:
        """Let go of them."""


@lru_cache(maxsize=4096)
def _block_size(shape: Shape, dtype: Dtype) -> int:
    return size_class(max(Aval(shape, dtype).nbytes, _SMALLEST))


class Block:
    """A piece of device memory. Arrays over it are its only owners, besides the pool."""

    __slots__ = ("address", "nbytes", "shape", "dtype")

    def __init__(self, address: int, nbytes: int) -> None:
        self.address: int = address
        self.nbytes: int = nbytes
        self.shape: Shape = ()
        self.dtype: Dtype


@dataclass(slots=True)
class _SizeClass:
    """All blocks of one size."""

    size: int
    blocks: deque[Block] = field(default_factory=deque)
    fresh: int = 0  # next allocations without a search


class DevicePool:
    """Blocks in size classes, eight to a doubling. All work on the device has one order, so a block is
    free at once when its last array is gone, even if the kernel that reads it has not run yet.

    Attributes:
        lock: held while blocks are looked at, which counts as one more owner of them.
    """

    def __init__(self, driver: Driver) -> None:
        if not counts_owners():
            raise CudaError("memory of a device is shared out by reference counts, which this Python does not have: use the CPU")
        self._driver = driver
        self._classes: dict[int, _SizeClass] = {}
        self.lock: RLock = fork_safe_lock()
        self._allocations = self._reuses = self._held = self._peak = 0
        self._holders: tuple[WeakSet[Holder], WeakSet[Holder]] = WeakSet(), WeakSet()

    def add_holder(self, holder: Holder, last: bool = False) -> None:
        """``holder`` keeps arrays to use them again; it lets go of them before memory runs out.

        ``last``: only if the memory that all others let go of does not suffice.
        """
        self._holders[last].add(holder)

    def take(self, shape: Shape, dtype: Dtype) -> Block:
        """A block for an array of ``shape`` and ``dtype``.

        Raises:
            OutOfMemoryError: if there is no memory though all idle blocks were given back; it names the largest live arrays.
        """
        size = _block_size(shape, dtype)
        with self.lock:
            group = self._classes.get(size)
            if group is None:
                group = self._classes[size] = _SizeClass(size)
            block = None
            if group.fresh:
                group.fresh -= 1
            elif (block := take_unowned(group.blocks)) is None:
                group.fresh = len(group.blocks) // _SEARCHED_PER_ALLOCATION
            else:
                self._reuses += 1
            block = block or self._new_block(group, Aval(shape, dtype))
            block.shape, block.dtype = shape, dtype
            group.blocks.append(block)
            return block

    def _new_block(self, group: _SizeClass, aval: Aval) -> Block:
        try:
            address = self._driver.allocate(group.size)
        except OutOfMemoryError:
            address = self._allocate_after_others(group, aval)
        self._allocations += 1
        self._held += group.size
        self._peak = max(self._peak, self._held)
        return Block(address, group.size)

    def _allocate_after_others(self, group: _SizeClass, aval: Aval) -> int:
        """The address of new memory, once idle memory has been given back."""
        for holders in self._holders:
            self._release(holders)
            try:
                return self._driver.allocate(group.size)
            except OutOfMemoryError as error:
                message = str(error)
        raise OutOfMemoryError(f"{message}\n{self._explain(aval)}")

    def _explain(self, aval: Aval) -> str:
        live = sorted(self._live(), key=lambda block: -block.nbytes)
        free, total = self._driver.memory_info()
        listed = ", ".join(str(Aval(block.shape, block.dtype)) for block in live[:_LISTED])
        return (
            f"Asked for {aval}, {aval.nbytes:,} bytes, on {self._driver.name}: {free:,} of {total:,} bytes are free, "
            f"jitgrad's arrays take {sum(block.nbytes for block in live):,}. The largest of {len(live)}: {listed or 'none'}. "
            "Free tensors that are no longer needed (del, or loss.item() for what you keep), or take smaller batches."
        )

    def _live(self) -> list[Block]:
        live = []
        for group in self._classes.values():
            for k in range(len(group.blocks)):
                if not has_owners([group.blocks[k]], 1):
                    live.append(group.blocks[k])
        return live

    def trim(self) -> int:
        """Give every block without references back to the driver; returns the number of bytes."""
        return sum(map(self._release, self._holders))

    def _release(self, holders: WeakSet[Holder]) -> int:
        released = 0
        for holder in list(holders):
            holder.release()
        with self.lock:
            for group in self._classes.values():
                while (block := take_unowned(group.blocks)) is not None:
                    self._driver.free(block.address)
                    released += block.nbytes
            self._held -= released
        return released

    def reset_peak(self) -> None:
        """Count the most bytes held from now on."""
        with self.lock:
            self._peak = self._held

    def stats(self) -> MemoryStats:
        """Counts and bytes of this pool, and of the device."""
        with self.lock:
            free, total = self._driver.memory_info()
            in_use = sum(block.nbytes for block in self._live())
            return MemoryStats(self._allocations, self._reuses, self._held, in_use, self._peak, free, total)
