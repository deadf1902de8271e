"""One block of memory for all temporaries of a program: who lies where, by the steps between which
each is needed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import numpy as np

from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.eager.buffer_pool import ALIGNMENT


def arena(touched: Sequence[Collection[Buffer]], placed: Collection[Buffer]) -> tuple[dict[Buffer, int], int]:
    """First-fit offsets for the buffers ``placed``, given what every step touches; (offsets,
    bytes)."""
    last: dict[Buffer, int] = {}
    for k, buffers in enumerate(touched):
        last.update(dict.fromkeys(buffers, k))
    memory = _FreeList()
    offsets: dict[Buffer, int] = {}
    for k, buffers in enumerate(touched):
        own = [b for b in dict.fromkeys(buffers) if b in placed]
        for buffer in own:
            if buffer not in offsets:
                offsets[buffer] = memory.take(aligned_size(buffer))
        for buffer in own:
            if last[buffer] == k:
                memory.give(offsets[buffer], aligned_size(buffer))
    return offsets, memory.end


def packed(touched: Sequence[Collection[Buffer]], placed: Collection[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Offsets as `arena` gives them, found the largest first: it takes longer, and often leaves smaller gaps.

    Each buffer gets the lowest place that is free while it is needed (Y. Pisarchyk and J. Lee, "Efficient memory
    management for deep neural net inference", 2020, "greedy by size").
    """
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for k, buffers in enumerate(touched):
        for buffer in buffers:
            first.setdefault(buffer, k)
            last[buffer] = k
    order = sorted((b for b in first if b in placed), key=lambda b: (-aligned_size(b), first[b]))
    rows = np.array([(first[b], last[b], aligned_size(b)) for b in order], np.int64).reshape(-1, 3)
    starts = np.zeros(len(order), np.int64)
    for k, (begin, end, size) in enumerate(rows):
        beside = np.flatnonzero((rows[:k, 0] <= end) & (rows[:k, 1] >= begin))
        lows = np.sort(starts[beside])
        highs = np.maximum.accumulate((starts[beside] + rows[beside, 2])[np.argsort(starts[beside], kind="stable")])
        below = np.concatenate([[0], highs])  # where a gap may begin; it ends at the next start
        fits = np.flatnonzero(np.append(lows, below[-1] + size) - below >= size)
        starts[k] = below[fits[0]]
    offsets = dict(zip(order, starts.tolist(), strict=True))
    return offsets, int(max(starts + rows[:, 2], default=0))


def aligned_size(buffer: Buffer) -> int:
    """The bytes that ``buffer`` takes in an arena: each starts at a cache line."""
    return -(-max(1, buffer.nbytes) // ALIGNMENT) * ALIGNMENT


class _FreeList:
    """Free ranges below ``end``, by offset; neighbours are joined."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []  # (offset, size)
        self.end = 0

    def take(self, size: int) -> int:
        for k, (offset, free) in enumerate(self.ranges):
            if free >= size:
                self.ranges[k : k + 1] = [(offset + size, free - size)] if free > size else []
                return offset
        if self.ranges and sum(self.ranges[-1]) == self.end:  # grow the last free range
            offset, _ = self.ranges.pop()
        else:
            offset = self.end
        self.end = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        k = bisect_left(self.ranges, (offset, 0))
        if k < len(self.ranges) and self.ranges[k][0] == offset + size:
            size += self.ranges.pop(k)[1]
        if k and sum(self.ranges[k - 1]) == offset:
            offset, before = self.ranges[k - 1]
            self.ranges[k - 1] = (offset, before + size)
        else:
            self.ranges.insert(k, (offset, size))
