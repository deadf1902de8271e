"""The memory that each iteration of a kernel reads and writes, from which row blocking follows."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from jitgrad.compiler.lowering.loop_nest import LoopNest, Slot

_Base = TypeVar("_Base")
_OtherBase = TypeVar("_OtherBase")


class Footprint(NamedTuple, Generic[_Base]):
    """The bytes that one operand makes a kernel touch.

    Iteration ``k`` touches ``extent`` bytes from ``base + low + k * step`` on. A ``step`` of 0
    means that all iterations touch the same bytes.
    """

    base: _Base
    low: int
    step: int
    extent: int
    written: bool

    def at(self, base: _OtherBase) -> Footprint[_OtherBase]:
        """The same bytes relative to another base."""
        return Footprint(base, self.low, self.step, self.extent, self.written)

    def of_rows(self, iterations: int) -> Footprint[_Base]:
        """The footprint of rows that are ``iterations`` iterations each."""
        across = (iterations - 1) * self.step
        low, extent = self.low + min(0, across), self.extent + abs(across)
        return Footprint(self.base, low, iterations * self.step, extent, self.written)


def footprints(nest: LoopNest) -> tuple[Footprint[Slot], ...] | None:
    """The footprints of a kernel's iterations (rows, or elements of a flat loop); None if they run
    along several axes.

    They say nothing about a kernel whose iterations depend on each other: one with an epilogue or
    scratch memory.
    """
    if len(nest.outer_sizes) > 1 or len(nest.inner_sizes) > 1 and not nest.outer_sizes:
        return None
    iterated, inner = (nest.outer_axes, nest.inner_axes) if nest.outer_sizes else (nest.inner_axes, [])
    sizes = dict(zip(nest.inner_axes, nest.inner_sizes, strict=True))
    footprints: dict[Footprint[Slot], None] = {}  # in order
    for operand in nest.operands.values():
        if operand.layout is None:
            continue
        item = operand.value.aval.dtype.itemsize
        ends = [operand.strides[axis] * (sizes[axis] - 1) * item for axis in inner]
        low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
        step = operand.strides[iterated[0]] * item if iterated else 0
        footprints[Footprint(Slot(operand.layout.slot), low, step, high - low + item, operand.written)] = None
    return tuple(footprints)
