"""Buffers of a program, strided windows into them, and what kernels depend on of these windows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from jitgrad.core.aval import Aval, Dtype, Shape
from jitgrad.core.axis_runs import AxisRuns, ends
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
MAX_INTERLEAVED = 8  # operands of one stride that kernels may read or write as one array, element by element
ArgSlot = int | BufferOffset  # one entry of a launch's argument table


class Location(NamedTuple):
    """A strided window into a buffer: ``offset`` in bytes, ``strides`` in elements, as many as the
    value has axes.

    ``runs`` are those of a value that kernels alone read, at other positions: for each axis the
    positions in memory, () for every one in order. Other values have none.
    """

    buffer: Buffer
    offset: int
    strides: tuple[int, ...]
    runs: tuple[AxisRuns, ...] = ()

    def is_contiguous(self, shape: Shape) -> bool:
        return self.strides == row_major(shape) and not self.runs

    def ends(self, shape: Shape, itemsize: int) -> tuple[int, int]:
        """The first and the last element of a value of ``shape``, in bytes from ``offset`` on."""
        low = high = 0
        for k, (n, step) in enumerate(zip(shape, self.strides, strict=True)):
            own = ends(self.runs[k]) if self.runs and self.runs[k] else (0, n - 1)
            low += min(p * step for p in own)
            high += max(p * step for p in own)
        return low * itemsize, high * itemsize


Located = tuple[Location, Dtype]


class OperandLayout(NamedTuple):
    """The part of an operand's location that a kernel depends on.

    Attributes:
        slot: the number of the first operand with the same address.
        strides: in elements.
        aligned: for a result: whether it starts at a cache line of memory that the program
            allocates.
        runs: of an operand that is read at other positions, as `Location` has them.
        neighbour: the slot of an operand of the same memory and strides, and how many elements behind
            it this one starts.
    """

    slot: int
    strides: tuple[int, ...]
    aligned: bool
    runs: tuple[AxisRuns, ...] = ()
    neighbour: tuple[int, int] | None = None


def operand_layouts(reads: Sequence[Located], writes: Sequence[Located]) -> tuple[OperandLayout, ...]:
    """The layouts of a kernel's operands, and of its results after them."""
    first: dict[BufferOffset, int] = {}
    layouts = []
    for k, ((buffer, offset, strides, runs), _) in enumerate((*reads, *writes)):
        own = k >= len(reads) and buffer.role is BufferRole.TEMPORARY and buffer.nbytes >= SMALL
        layouts.append(OperandLayout(first.setdefault((buffer, offset), k), strides, own and offset % ALIGNMENT == 0, runs))
    for k, (base, shift) in _neighbours(reads, writes).items():
        layouts[k] = layouts[k]._replace(neighbour=(layouts[base].slot, shift))
    return tuple(layouts)


def _neighbours(reads: Sequence[Located], writes: Sequence[Located]) -> dict[int, tuple[int, int]]:
    """The operands of which the elements may lie between those of another one, which starts first: the number of that
    one, and the distance in elements. The memory of these is only read or only written."""
    places, found = (*reads, *writes), dict[int, tuple[int, int]]()
    both = {place.buffer for place, _ in reads} & {place.buffer for place, _ in writes}
    groups: dict[Hashable, list[int]] = {}
    for k, ((buffer, offset, strides, runs), dtype) in enumerate(places):
        if buffer not in both and not runs and max(map(abs, strides), default=0) > 1:
            groups.setdefault((buffer, strides, dtype, offset % dtype.itemsize), []).append(k)
    for members in groups.values():
        base = min(members, key=lambda k: places[k][0].offset)
        for k in members:
            shift = (places[k][0].offset - places[base][0].offset) // places[k][1].itemsize
            if 0 < shift < MAX_INTERLEAVED:
                found[k] = base, shift
    return found


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
    if source.runs:
        return None
    if name == "offset_read":
        return _at_offsets(source, node.attr("axes"), itemsize)
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


def _at_offsets(source: Location, axes: Sequence[AxisRuns], itemsize: int) -> Location:
    """The location of what ``axes`` read of ``source``; a single run is a matter of offset and stride."""
    offset, strides, runs = source.offset, list(source.strides), list(axes)
    for k, own in enumerate(axes):
        if len(own) == 1 and not own[0].zeros:
            offset += own[0].start * strides[k] * itemsize
            strides[k] *= own[0].step
            runs[k] = ()
    return Location(source.buffer, offset, tuple(strides), tuple(runs) if any(runs) else ())
