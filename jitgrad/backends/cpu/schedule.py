"""The CPU's schedules: the form of a kernel's loops, their blocks, and non-temporal stores."""

from __future__ import annotations

import os
from dataclasses import replace
from math import prod

from jitgrad.backends.cpu.row_vectors import row_vectors
from jitgrad.backends.llvm.tile_sizes import LANES, LEAST_BYTES, SHORT_ROW
from jitgrad.compiler.cost import expensive
from jitgrad.compiler.lowering.kernel_ir import KernelForm, Schedule
from jitgrad.compiler.lowering.loop_nest import LoopNest, OperandAccess
from jitgrad.compiler.tuning import Tuning
from jitgrad.eager.buffer_pool import ALIGNMENT

_ACROSS = (KernelForm.VECTORIZED_ROWS, KernelForm.PACKED_ROWS)  # the forms of rows that run across memory
_WHOLE_PIECE = 8  # elements of a row that are neighbours: half vectors of float32
_MAX_PACKED = 16  # operands: each has a tile on the stack
_MAX_KEPT_BYTES = 1 << 17  # of one value of the rows that are lanes: a part of the second-level cache


def cpu_tuning() -> Tuning:
    """The thresholds for this machine's CPUs."""
    default = Tuning()
    most = max(16, 8 * (os.cpu_count() or 1))
    return replace(default, max_column_blocks=min(default.max_merged_blocks, most))


def schedule(nest: LoopNest, tuning: Tuning) -> Schedule:
    """How the CPU runs ``nest``, decided by sizes, strides and ops alone."""
    transposed: tuple[str, ...] = ()
    if nest.reads_at_offsets():  # the other forms walk whole rows
        iterations, block_size = iterations_and_block(nest, KernelForm.ROWS, tuning)
        return Schedule(KernelForm.ROWS, iterations, block_size)
    if reduces_short_pieces(nest, tuning):
        form = KernelForm.PACKED_ROWS
    elif runs_across_memory(nest, tuning):
        form = KernelForm.PACKED_ROWS if packs_lanes(nest, tuning) else KernelForm.VECTORIZED_ROWS
    elif operands := operands_to_transpose(nest, tuning):
        form, transposed = KernelForm.TILED_TRANSPOSE, tuple(a.name for a in operands)
    else:
        form = KernelForm.SHORT_ROWS if has_short_rows(nest, tuning) else KernelForm.ROWS
    iterations, block_size = iterations_and_block(nest, form, tuning)
    nontemporal = nontemporal_results(nest, tuning) if form is KernelForm.ROWS else frozenset()
    vectors = _row_vectors(nest, tuning) if form is KernelForm.ROWS and not nontemporal else None
    interleaves = form is KernelForm.ROWS
    together = _rows_together(nest) if form in _ACROSS else 1
    return Schedule(form, iterations, block_size, transposed, nontemporal, vectors, interleaves, together)


def _rows_together(nest: LoopNest) -> int:
    """The rows that form the lanes of vectors, if they are short enough to keep values of all of their elements in cache."""
    widest = max(a.value.aval.dtype.itemsize for a in nest.operands.values())
    return LANES if LANES * prod(nest.inner_sizes) * widest <= _MAX_KEPT_BYTES else 1


def _row_vectors(nest: LoopNest, tuning: Tuning) -> int | None:
    """How many vectors at a time the loops over rows take, if there are rows of floats, and each is one axis."""
    if not nest.outer_sizes or len(nest.inner_sizes) != 1:
        return None
    (axis,), (n,) = nest.inner_axes, nest.inner_sizes
    along = [a.value.aval.dtype for a in nest.operands.values() if a.strides[axis]]
    if not along or any(dtype.kind != "f" for dtype in along):
        return None
    return row_vectors(n, max(dtype.itemsize for dtype in along), tuning.vector_bytes)


def has_short_rows(nest: LoopNest, tuning: Tuning) -> bool:
    """Whether the rows are short and many, and their work pays for transposing them into vector
    lanes."""
    if len(nest.outer_sizes) != 1 or len(nest.inner_sizes) != 1 or nest.outer_sizes[0] < LANES:
        return False
    (axis,), (n,), order = nest.inner_axes, nest.inner_sizes, nest.group.schedule
    sizes = [a.value.aval.dtype.itemsize for a in nest.operands.values() if a.strides[axis]]
    row_bytes = n * max(sizes, default=1)
    if n > SHORT_ROW or row_bytes > 2 * tuning.vector_bytes or len(nest.operands) > tuning.max_tiles:
        return False
    if any(expensive(node.op) for node in nest.group.nodes):  # the elements behind the last vector take as long as a vector
        return True
    if row_bytes >= tuning.vector_bytes:  # vectors along the row are at least half full: only much work pays
        return len(order.rows) > 1
    return bool(order.rows or order.merged)


def operands_to_transpose(nest: LoopNest, tuning: Tuning) -> list[OperandAccess]:
    """Operands whose rows run across memory, if tiles of them can be transposed."""
    order = nest.group.schedule
    if order.rows or order.merged or not nest.outer_sizes or len(nest.inner_sizes) != 1:
        return []
    if min(nest.outer_sizes[-1], nest.inner_sizes[0]) < tuning.min_transposed_length:
        return []
    in_place = set(nest.in_place.values())
    across = [
        a for a in nest.operands.values()
        if a.layout is not None and not a.written and a.value not in in_place
        and nest.lies_across(a) and a.value.aval.dtype.itemsize >= LEAST_BYTES
    ]  # fmt: skip
    return across if len(across) <= tuning.max_transposed_operands else []


def runs_across_memory(nest: LoopNest, tuning: Tuning) -> bool:
    """Whether rows are reduced, and run across memory in most operands."""
    if not nest.group.schedule.rows or not nest.outer_sizes:
        return False
    wide = [a for a in nest.operands.values() if a.layout is not None and any(a.strides[k] for k in nest.inner_axes)]
    wide = [a for a in wide if any(a.strides[k] for k in nest.outer_axes)]
    return nest.outer_sizes[-1] >= tuning.min_row_lanes and 2 * sum(map(nest.lies_across, wide)) > len(wide)


def reduces_short_pieces(nest: LoopNest, tuning: Tuning) -> bool:
    """Whether rows are reduced that are many short pieces of memory, and there are enough rows to fill vectors.

    Pieces of fewer than 8 elements fill no vector; of what is behind the last whole one, only costly functions matter.
    """
    if not nest.group.schedule.rows or len(nest.inner_sizes) < 2 or len(nest.outer_sizes) < 2:
        return False
    piece = nest.inner_sizes[-1]
    if piece >= tuning.min_lanes or piece % _WHOLE_PIECE == 0 or prod(nest.outer_sizes[-2:]) < tuning.min_lanes:
        return False
    return (piece < _WHOLE_PIECE or any(expensive(node.op) for node in nest.group.nodes)) and _has_room(nest)


def _has_room(nest: LoopNest) -> bool:
    return len(nest.operands) <= _MAX_PACKED and all(a.layout is not None for a in nest.operands.values())


def packs_lanes(nest: LoopNest, tuning: Tuning) -> bool:
    """Whether few rows are neighbours, so that several groups of them fill the lanes of vectors."""
    if len(nest.outer_sizes) < 2 or nest.outer_sizes[-1] >= tuning.min_lanes:
        return False
    return _has_room(nest)


def iterations_and_block(nest: LoopNest, form: KernelForm, tuning: Tuning) -> tuple[int, int]:
    """The number of rows (or elements, without rows), and how many make a block."""
    if not nest.outer_sizes:
        elements = nest.inner_sizes[0] if nest.inner_sizes else 1
        return elements, _block_elements(nest, elements, tuning)
    rows, row = prod(nest.outer_sizes), max(1, prod(nest.inner_sizes))
    block = max(1, _block_elements(nest, rows * row, tuning) // row)
    if form is KernelForm.SHORT_ROWS:
        block = -(-block // LANES) * LANES
    elif form is KernelForm.TILED_TRANSPOSE:
        block = max(block, tuning.min_transposed_rows)
    elif form in _ACROSS:
        block = max(block, LANES)
    if merged := nest.group.schedule.merged:
        columns = any(id(node) in merged and node.out.aval.size > 1 for node in nest.group.nodes)
        block = max(block, -(-rows // (tuning.max_column_blocks if columns else tuning.max_merged_blocks)))
    if form is KernelForm.PACKED_ROWS:
        block = -(-block // nest.outer_sizes[-1]) * nest.outer_sizes[-1]
    return rows, block


def _block_elements(nest: LoopNest, elements: int, tuning: Tuning) -> int:
    """A power of two: larger for cheap operations, and where there are blocks enough anyway."""
    costly = sum(expensive(node.op) for node in nest.group.nodes)
    operations = len(nest.group.nodes) + (tuning.costly_operations - 1) * costly
    wanted = max(tuning.block_operations // max(1, operations), elements // tuning.enough_blocks, tuning.min_block)
    return min(tuning.max_block, 1 << wanted.bit_length() - 1)


def nontemporal_results(nest: LoopNest, tuning: Tuning) -> frozenset[str]:
    """Names of the results that are stored past the caches: large ones that nothing reads again.

    An ordinary store into memory that is in no cache reads the line first. A non-temporal store
    does not (`jitgrad.backends.llvm.nontemporal`), so a kernel that reads three arrays and writes
    two moves five, not seven. The next kernel finds nothing of the result in a cache, though. Each
    cache line must be written as a whole, so rows start at lines, and their elements are
    neighbours.
    """
    if nest.bytes_moved() < tuning.min_nontemporal_bytes:
        return frozenset()
    names = set[str]()
    for a in nest.operands.values():
        if not a.written or a.value not in nest.unread or a.value in nest.in_place:
            continue
        assert a.layout is not None
        if not a.layout.aligned or a.value.aval.nbytes < tuning.min_nontemporal_result:
            continue
        item = a.value.aval.dtype.itemsize
        *outside, last = [a.strides[axis] * item for axis in (*nest.outer_axes, *nest.inner_axes)] or [0]
        short = not nest.outer_sizes or prod(nest.inner_sizes) * item <= tuning.max_nontemporal_row
        if short and last == item and not any(step == 0 or step % ALIGNMENT for step in outside):
            names.add(a.name)
    return frozenset(names)
