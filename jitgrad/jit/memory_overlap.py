"""Whether the memory that a call writes is visible through another input."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from jitgrad.core.device_array import DeviceArray


def overlapping(arrays: Sequence[Any], written: Sequence[int]) -> bool:
    """Whether an array at one of the positions ``written`` overlaps any other array."""
    others = (k for k in range(len(arrays)) if k not in written)
    bounds = [_bounds(arrays[k]) for k in (*written, *others)]
    starts, sizes, count = [first for first, _ in bounds], [end - first for first, end in bounds], len(written)
    return WrittenRanges(sizes[:count], sizes[count:]).overlap(starts[:count], starts[count:])


def _bounds(array: Any) -> tuple[int, int]:
    return array.bounds() if isinstance(array, DeviceArray) else byte_bounds(array)


def share_element(one: Any, other: Any) -> bool:
    """Whether two arrays share an element; on a device, whether they may."""
    if isinstance(one, DeviceArray) or isinstance(other, DeviceArray):
        return type(one) is type(other) and bool(one.may_share_memory(other))
    return np.may_share_memory(one, other) and np.shares_memory(one, other)


def overlaps_itself(array: Any) -> bool:
    """Whether two elements of an array share memory, as in one of as_strided."""
    if isinstance(array, DeviceArray) or array.flags.forc or array.size < 2:
        return False
    axes = sorted((abs(stride), length) for stride, length in zip(array.strides, array.shape, strict=True) if length > 1)
    extent = array.itemsize
    for stride, length in axes:
        if stride < extent:
            break
        extent += stride * (length - 1)
    else:
        return False
    starts = np.zeros(1, dtype=np.int64)
    for stride, length in axes:
        starts = np.add.outer(starts, stride * np.arange(length)).ravel()
    return bool(np.diff(np.sort(starts)).min() < array.itemsize)


class WrittenRanges:
    """Ranges of fixed sizes that calls write and read, mostly at the addresses of the last call."""

    def __init__(self, written: Sequence[int], read: Sequence[int]) -> None:
        self.written = written
        self.read = read
        # addresses, sorted addresses, and their ends; replaced as one, because threads may share it
        self._sorted: tuple[list[int], list[int], list[int]] = ([], [], [])

    def overlap(self, written: list[int], read: Sequence[int]) -> bool:
        """Whether one of the ranges at the addresses ``written`` overlaps any other range."""
        before, starts, ends = self._sorted
        if written != before:
            ranges = sorted(zip(written, self.written, strict=True))
            starts, ends = [first for first, _ in ranges], [first + size for first, size in ranges]
            if any(end > first for end, first in zip(ends, starts[1:], strict=False)):
                return True
            self._sorted = written, starts, ends
        for first, size in zip(read, self.read, strict=True):
            k = bisect_left(starts, first + size)
            if k and ends[k - 1] > first:
                return True
        return False
