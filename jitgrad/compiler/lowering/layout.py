"""Buffers of a program, strided windows into them, and what kernels depend on of these windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from jitgrad.core.aval import Aval, Shape
from jitgrad.core.ir import TraceNode
from jitgrad.eager.buffer_pool import ALIGNMENT, SMALL


class BufferRole(Enum):
    """Who provides the memory of a buffer."""

    INPUT = "the caller"
    TEMPORARY = "the arena, or the caller if a result keeps it"
    EXTERNAL = "a library call, whose result it is"


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """Memory of ``nbytes`` bytes; it is its own identity."""

    role: BufferRole
    nbytes: int
    label: str = ""


BufferOffset = tuple[Buffer, int]  # an address: ``int`` bytes from the start of the buffer on
ArgSlot = int | BufferOffset  # one entry of a launch's argument table


class Location(NamedTuple):
    """A strided window into a buffer: ``offset`` in bytes, ``strides`` in elements, as many as the
    value has axes."""

    buffer: Buffer
    offset: int
    strides: tuple[int, ...]

    def is_contiguous(self, shape: Shape) -> bool:
        return self.strides == row_major(shape)


class OperandLayout(NamedTuple):
    """The part of an operand's location that a kernel depends on.

    Attributes:
        slot: the number of the first operand with the same address.
        strides: in elements.
        aligned: for a result: whether it starts at a cache line of memory that the program
            allocates.
    """

    slot: int
    strides: tuple[int, ...]
    aligned: bool


def operand_layouts(reads: Sequence[Location], writes: Sequence[Location]) -> tuple[OperandLayout, ...]:
    """The layouts of a kernel's operands, and of its results after them."""
    first: dict[BufferOffset, int] = {}
    layouts = []
    for k, (buffer, offset, strides) in enumerate((*reads, *writes)):
        own = k >= len(reads) and buffer.role is BufferRole.TEMPORARY and buffer.nbytes >= SMALL
        layouts.append(OperandLayout(first.setdefault((buffer, offset), k), strides, own and offset % ALIGNMENT == 0))
    return tuple(layouts)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a C-contiguous array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def view_location(node: TraceNode, source: Location, aval: Aval) -> Location | None:
    """The location of the result of a movement ``node`` in its operand's memory; None if it must be
    copied."""
    name, strides, itemsize = node.op.name, source.strides, aval.dtype.itemsize
    shape = node.out.aval.shape
    if name == "component":
        offset = source.offset + node.attr("index") * itemsize // 2
        return Location(source.buffer, offset, tuple(2 * s for s in strides))
    if name == "broadcast_to":
        shift = len(shape) - len(strides)
        moved = tuple(
            strides[k - shift] if k >= shift and aval.shape[k - shift] == n else 0 for k, n in enumerate(shape)
        )
        return Location(source.buffer, source.offset, moved)
    if name == "permute_dims":
        return Location(source.buffer, source.offset, tuple(strides[k] for k in node.attr("axes")))
    if name == "slice":
        index = node.attr("index")
        offset = sum(start * s for (start, _, n), s in zip(index, strides, strict=True) if n) * itemsize
        moved = tuple(step * s for (_, step, _), s in zip(index, strides, strict=True))
        return Location(source.buffer, source.offset + offset, moved)
    if name == "squeeze":
        dropped = set(node.attr("axis"))
        return Location(source.buffer, source.offset, tuple(s for k, s in enumerate(strides) if k not in dropped))
    if source.is_contiguous(aval.shape):
        return Location(source.buffer, source.offset, row_major(shape))
    if name == "expand_dims":
        added, kept = set(node.attr("axis")), iter(strides)
        return Location(source.buffer, source.offset, tuple(0 if k in added else next(kept) for k in range(len(shape))))
    return None
