"""A pool of reference-counted buffers, which reuses memory instead of freeing it.

The page faults of a fresh large buffer cost more than the arithmetic that fills it. In a training
loop the second step therefore writes into the memory of the first. Every array of the pool is a
view of a block. NumPy makes any view of a view refer to the block itself, so a block without
further references is free. This needs no destructor, no weak reference, and no cooperation from the
owner of the array.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from sys import getrefcount
from threading import RLock
from typing import Any

import numpy as np

ALIGNMENT = 64  # a cache line, and a full AVX-512 vector
SMALL = 4096  # below this many bytes np.empty is as fast as a search for a free block
_SLACK = 64 << 20  # free bytes that the pool always keeps
DATA_FIELD = 16  # PyArrayObject: reference count, type, data (the NumPy C ABI)

_REMEMBERED_SHAPES = 4096

# a block; address and offset of its first aligned byte
_Entry = tuple[np.ndarray[Any, Any], int, int]


def _idle_references() -> int:
    """The result of getrefcount for a free block, to which its entry and a local name refer.

    Measured, because whether the argument counts depends on the interpreter (since 3.14 it does
    not).
    """
    entry = (np.empty(1, np.uint8), 0, 0)
    block = entry[0]
    return getrefcount(block)


_IDLE_REFERENCES = _idle_references()
_pointer_at = ctypes.c_void_p.from_address
_ndarray = np.ndarray


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Counts since the start (of arrays of 4 kB and more) and bytes now.

    ``reuses`` may miss a few when several threads allocate at once.
    """

    allocations: int
    reuses: int
    bytes_held: int
    bytes_in_use: int
    peak_bytes_held: int


@dataclass(slots=True)
class _SizeClass:
    """Blocks of one size, least recently used first; ``fresh``: next allocations without a
    search."""

    size: int
    blocks: deque[_Entry] = field(default_factory=deque)
    reuses: int = 0
    fresh: int = 0
    used_at: int = 0


_UNSEEN = _SizeClass(0)


def size_class(size: int) -> int:
    """``size`` rounded up to one of eight steps per doubling: at most 1/8 of a block is wasted."""
    step = max(1 << max((size - 1).bit_length() - 4, 0), ALIGNMENT)
    return -(-size // step) * step


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of the first element: eight times faster than ``array.ctypes.data``."""
    return _pointer_at(id(array) + DATA_FIELD).value or 0


class Pool:
    """A reference-counted pool of blocks. All methods may be called from any thread.

    A search takes blocks out of their deque, which is atomic, so reuse needs no lock. Without ``reuse`` each array has
    memory of its own.
    """

    def __init__(self, reuse: bool = True) -> None:
        self._smallest = SMALL if reuse else math.inf
        self._classes: dict[int, _SizeClass] = {}
        self._group_of: dict[tuple[tuple[int, ...], np.dtype[Any]], _SizeClass | None] = {}
        self._lock = RLock()
        self._block_ids: set[int] = set()
        self._allocations = 0
        self._held = 0
        self._peak = 0
        self._next_review = 2 * _SLACK

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """An uninitialised C-contiguous array; 64-byte aligned from 4 kB on.

        Raises:
            MemoryError: if the system has no memory left even after `trim`.
        """
        return self.take(shape, dtype)[0]

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], int]:
        """An array as from `empty`, and the address of its data."""
        group = self._group_of.get((shape, dtype), _UNSEEN)
        if group is _UNSEEN:
            group = self._find_group(shape, dtype)
        if group is None:
            array = np.empty(shape, dtype)
            return array, _pointer_at(id(array) + DATA_FIELD).value or 0
        # the first block is nearly always free, so it is tried here, without a call
        blocks = group.blocks
        try:
            entry = blocks.popleft()
        except IndexError:
            entry = self._search(group)
        else:
            block, address, offset = entry
            if getrefcount(block) == _IDLE_REFERENCES:
                group.reuses += 1
                group.used_at = self._allocations
                array = _ndarray(shape, dtype, block, offset)
                blocks.append(entry)
                return array, address
            blocks.append(entry)
            del block
            entry = self._search(group)
        array = _ndarray(shape, dtype, entry[0], entry[2])
        blocks.append(entry)
        return array, entry[1]

    def _find_group(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _SizeClass | None:
        """The size class of an array; None for one too small to be pooled."""
        size = math.prod(shape) * dtype.itemsize
        group = None
        if size >= self._smallest:
            rounded = size_class(size)
            group = self._classes.setdefault(rounded, _SizeClass(rounded))
        if len(self._group_of) >= _REMEMBERED_SHAPES:
            self._group_of.clear()
        self._group_of[shape, dtype] = group
        return group

    def _search(self, group: _SizeClass) -> _Entry:
        return self._free_block(group) or self._new_block(group)

    def _free_block(self, group: _SizeClass) -> _Entry | None:
        """A block without other references, taken out of its group."""
        if group.fresh > 0:
            group.fresh -= 1
            return None
        blocks = group.blocks
        for _ in range(len(blocks)):
            try:
                entry = blocks.popleft()
            except IndexError:  # other threads hold the rest
                break
            block = entry[0]
            if getrefcount(block) == _IDLE_REFERENCES:
                group.reuses += 1
                group.used_at = self._allocations
                return entry
            del block
            blocks.append(entry)
        # all are in use: growing by a quarter before searching again keeps a growing group linear
        group.fresh = len(blocks) // 4
        return None

    def _new_block(self, group: _SizeClass) -> _Entry:
        with self._lock:
            if self._held + group.size > self._next_review:
                self._review()
            try:
                block = np.empty(group.size + ALIGNMENT, np.uint8)
            except MemoryError:
                self.trim()
                block = np.empty(group.size + ALIGNMENT, np.uint8)
            self._block_ids.add(id(block))
            self._allocations += 1
            self._held += group.size
            self._peak = max(self._peak, self._held)
            group.used_at = self._allocations
            offset = -address_of(block) % ALIGNMENT
            return block, address_of(block) + offset, offset

    def _review(self) -> None:
        """Free blocks, longest unused sizes first, until a third of the memory is unused."""
        in_use = self._in_use()
        allowed = max(_SLACK, in_use // 2)
        for group in sorted(self._classes.values(), key=lambda group: group.used_at):
            if self._held - in_use <= allowed:
                break
            self._release(group)
        self._next_review = max(2 * _SLACK, self._held + self._held // 4)

    def _release(self, group: _SizeClass) -> int:
        """Free the idle blocks of ``group``; returns the number of bytes."""
        released = 0
        for _ in range(len(group.blocks)):
            try:
                entry = group.blocks.popleft()
            except IndexError:
                break
            block = entry[0]
            if getrefcount(block) == _IDLE_REFERENCES:
                released += group.size
                self._block_ids.discard(id(block))
            else:
                group.blocks.append(entry)
            del block, entry
        self._held -= released
        return released

    def _busy(self, group: _SizeClass) -> Iterator[int]:
        for entry in tuple(group.blocks):
            block = entry[0]
            # the tuple made here shares the entry itself, so the count of an idle block is
            # unchanged
            if getrefcount(block) != _IDLE_REFERENCES:
                yield group.size

    def _in_use(self) -> int:
        return sum(size for group in tuple(self._classes.values()) for size in self._busy(group))

    def holds(self, base: np.ndarray[Any, Any]) -> bool:
        """Whether ``base`` is a block of this pool."""
        return id(base) in self._block_ids

    def is_alone(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether ``array`` lies in a block of this pool, which nothing else uses."""
        block = array.base
        return id(block) in self._block_ids and getrefcount(block) == _IDLE_REFERENCES + 1

    def trim(self) -> int:
        """Free every block without references; returns the number of bytes."""
        with self._lock:
            return sum(self._release(group) for group in tuple(self._classes.values()))

    def stats(self) -> PoolStats:
        """Allocations, reuses and bytes of this pool."""
        with self._lock:
            reuses = sum(group.reuses for group in tuple(self._classes.values()))
            return PoolStats(self._allocations, reuses, self._held, self._in_use(), self._peak)


def counts_tell_use() -> bool:
    """Whether a pool sees which of its blocks are in use: tried on one of its own, by the code that relies on it."""
    pool, dtype = Pool(), np.dtype(np.uint8)
    held = [pool.empty((SMALL,), dtype) for _ in range(3)]
    pool.empty((SMALL,), dtype)
    held.append(pool.empty((SMALL,), dtype)[1:])  # in use by a view alone
    if len({id(x.base) for x in held}) != len(held) or pool.trim():
        return False
    held.clear()
    allocated = pool.stats().allocations
    pool.empty((SMALL,), dtype)
    return pool.stats().allocations == allocated and pool.trim() > 0


POOL = Pool(counts_tell_use())
if hasattr(os, "register_at_fork"):  # a child must not inherit a lock of another thread
    os.register_at_fork(
        before=POOL._lock.acquire, after_in_parent=POOL._lock.release, after_in_child=POOL._lock.release
    )
empty_buffer: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]] = POOL.empty
take_buffer: Callable[[tuple[int, ...], np.dtype[Any]], tuple[np.ndarray[Any, Any], int]] = POOL.take
is_alone_in_block: Callable[[np.ndarray[Any, Any]], bool] = POOL.is_alone
trim: Callable[[], int] = POOL.trim
stats: Callable[[], PoolStats] = POOL.stats
