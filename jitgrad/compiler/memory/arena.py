"""One block of memory for all temporaries of a program: who lies where, by the steps between which
each is needed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

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
                offsets[buffer] = memory.take(_padded(buffer))
        for buffer in own:
            if last[buffer] == k:
                memory.give(offsets[buffer], _padded(buffer))
    return offsets, memory.end


def _padded(buffer: Buffer) -> int:
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
