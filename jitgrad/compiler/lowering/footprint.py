"""Where in memory each unit of a kernel's work reads and writes: what decides whether steps can go row by row together."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.lowering.loop_nest import LoopNest

BufferOffset = tuple[Buffer, int]


class Footprint(NamedTuple):
    """What unit ``u`` touches: ``extent`` bytes from ``place + low + u * step`` on; ``step`` 0 is the same for all."""

    place: BufferOffset
    low: int
    step: int
    extent: int
    written: bool

    def moved(self, where: Callable[[BufferOffset], BufferOffset]) -> Footprint:
        return Footprint(where(self.place), self.low, self.step, self.extent, self.written)

    def of_rows(self, units: int) -> Footprint:
        """The same for rows of ``units`` units each."""
        across = (units - 1) * self.step
        return self._replace(low=self.low + min(0, across), step=units * self.step, extent=self.extent + abs(across))


def footprints(frame: LoopNest) -> tuple[Footprint, ...] | None:
    """What the units of a kernel (rows, or elements of a flat loop) touch; None if they are no single axis.

    The caller knows whether they are independent: a kernel with an epilogue, or scratch memory for chunks, has units that
    are not.
    """
    if len(frame.outer_sizes) > 1 or len(frame.inner_sizes) > 1 and not frame.outer_sizes:
        return None
    units, inner = (frame.outer_axes, frame.inner_axes) if frame.outer_sizes else (frame.inner_axes, [])
    sizes = dict(zip(frame.inner_axes, frame.inner_sizes, strict=True))
    found: dict[Footprint, None] = {}
    for window in frame.windows.values():
        if window.location is None:
            continue
        item = window.value.aval.dtype.itemsize
        ends = [window.strides[axis] * (sizes[axis] - 1) * item for axis in inner]
        low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
        step = window.strides[units[0]] * item if units else 0
        place = (window.location.buffer, window.location.offset)
        found[Footprint(place, low, step, high - low + item, window.written)] = None
    return tuple(found)
