"""The memory that each iteration of a kernel reads and writes, from which row blocking follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from jitgrad.compiler.fusion.axis_maps import AxisMap
from jitgrad.compiler.lowering.kernel_ir import Scope
from jitgrad.compiler.lowering.loop_nest import LoopNest, OperandAccess, Slot
from jitgrad.core.axis_runs import ends
from jitgrad.core.ir import TraceNode, Value

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
    along several axes. What is read at other positions along the axis of the iterations counts as
    read by every iteration; at other positions in its row, it is a part of this row.

    They leave out scratch memory, and what the epilogue alone reads or writes.
    """
    if len(nest.outer_sizes) > 1 or len(nest.inner_sizes) > 1 and not nest.outer_sizes:
        return None
    iterated, inner = (nest.outer_axes, nest.inner_axes) if nest.outer_sizes else (nest.inner_axes, [])
    inner_sizes = dict(zip(nest.inner_axes, nest.inner_sizes, strict=True))
    sizes = {axis: inner_sizes[axis] for axis in inner}
    footprints: dict[Footprint[Slot], None] = {}  # in order
    epilogue = _only_in_epilogue(nest)
    for key, operand in nest.operands.items():
        if operand.layout is None or key in epilogue:
            continue
        if operand.runs.keys().isdisjoint(iterated):
            step = operand.strides[iterated[0]] * operand.value.aval.dtype.itemsize if iterated else 0
            footprints[_touched(operand, sizes, operand.layout.slot, step)] = None
        else:
            all_sizes = {**dict(zip(nest.outer_axes, nest.outer_sizes, strict=True)), **inner_sizes}
            footprints[_touched(operand, all_sizes, operand.layout.slot, 0)] = None
    return tuple(footprints)


def _touched(operand: OperandAccess, sizes: Mapping[int, int], slot: int, step: int) -> Footprint[Slot]:
    """What the loops over axes of ``sizes`` touch of ``operand``, for iterations ``step`` bytes apart."""
    item, low, high = operand.value.aval.dtype.itemsize, 0, 0
    if operand.is_table:
        return Footprint(Slot(slot), 0, 0, operand.value.aval.nbytes, operand.written)
    for axis, n in sizes.items():
        first, last = ends(operand.runs[axis]) if axis in operand.runs else (0, n - 1)
        stride = operand.strides[axis]
        low += stride * (first if stride > 0 else last)
        high += stride * (last if stride > 0 else first)
    return Footprint(Slot(slot), low * item, step, (high - low + 1) * item, operand.written)


def _only_in_epilogue(nest: LoopNest) -> set[tuple[Value | TraceNode, AxisMap]]:
    """The operands that only the epilogue reads or writes."""
    later = nest.group.schedule.epilogue
    if not later and not nest.group.schedule.merged:
        return set()
    reads = {True: set[tuple[Value | TraceNode, AxisMap]](), False: set[tuple[Value | TraceNode, AxisMap]]()}
    for node in nest.group.nodes:
        reads[id(node) in later] |= {(read.root, axes) for read, axes in nest.reads(node) if isinstance(read.root, Value)}
    written = {key for key, a in nest.operands.items() if a.written and nest.scope[a.value] is Scope.EPILOGUE}
    return written | (reads[True] - reads[False])
