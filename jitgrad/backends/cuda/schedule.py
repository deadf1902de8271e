"""The schedules of kernels on a GPU: how blocks and threads share a loop nest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.lowering.kernel_ir import KernelForm, Schedule, Scope
from jitgrad.compiler.lowering.loop_nest import LoopNest, OperandAccess
from jitgrad.compiler.tuning import Tuning

WARP = 32
BLOCK_THREADS = 256
VECTOR_BYTES = 16  # the most that one instruction reads or writes
MAX_VECTOR = 8  # elements of cheap work: more take too many registers
MAX_COSTLY_VECTOR = 4
MAX_VECTOR_BYTES = 128  # of the vectors that a thread holds: a quarter of its registers
WARP_ROW = 1024  # elements of the longest row that one warp runs
TILE = 32  # rows and columns of a transposed tile
MAX_TILES = 8  # transposed operands whose tiles lie in shared memory
MAX_IDLE = 1.15  # threads launched per thread needed, where there is a choice


class GridForm(Enum):
    """How the threads of a grid share the rows and elements of a kernel."""

    FLAT = "flat"  # no rows: a thread takes a vector of elements
    GRID = "grid"  # rows and columns, nothing is reduced: a block takes a rectangle
    ROWS = "rows"  # a team of threads takes a row through all its sweeps
    COLUMNS = "columns"  # sums over rows: a thread owns columns
    TILED_TRANSPOSE = "tiled transpose"  # like GRID; tiles of transposed operands go through shared memory


@dataclass(frozen=True, slots=True)
class CudaSchedule(Schedule):
    """How a GPU runs one kernel.

    Attributes:
        iterations, block_size: as in `Schedule`. Kernels without partial results have a literal
            block size, which follows from the other attributes.
        grid_form: what the threads share.
        threads: of a block.
        team: threads that run one row together: a power of two up to a warp, or the whole block.
        vector: elements that a thread reads and writes in one access.
        columns: elements of a row.
        last_rows: rows along the last outer axis.
    """

    grid_form: GridForm = GridForm.FLAT
    threads: int = BLOCK_THREADS
    team: int = 1
    vector: int = 1
    columns: int = 1
    last_rows: int = 1

    @property
    def keeps_rows(self) -> bool:
        """Whether the rows of a block run one after the other, so that one row of scratch is enough."""
        return self.team == self.threads

    @property
    def teams(self) -> int:
        """Rows that a block runs at a time."""
        return self.threads // self.team


def cuda_tuning(capability: tuple[int, int]) -> Tuning:
    """The thresholds for GPUs of ``capability``."""
    least = 2 * 108 if capability < (9, 0) else 2 * 132  # two blocks for each processor of the largest GPU
    return replace(
        Tuning(),
        max_merged_blocks=4 * least,
        max_column_blocks=least,
        max_split_rows=least // 4,
        vector_bytes=VECTOR_BYTES,
        max_transposed_operands=MAX_TILES // 2,
        min_row_lanes=WARP,
        min_packed_rows=WARP,
        min_transposed_length=TILE // 2,
        block_bytes=0,
        row_bytes_per_function=0,
        max_kernel_operands=28,
        blocks_of_windows=False,
        library_reductions=False,
        integer_products=True,
        min_offset_row=1,
        edge_read_bytes=0,
        interleaved_pieces=0,
        min_table_reads=0,
    )


def schedule(nest: LoopNest, tuning: Tuning, capability: tuple[int, int]) -> CudaSchedule:
    """How a GPU of ``capability`` runs ``nest``, decided by sizes, strides and ops alone."""
    columns, rows = prod(nest.inner_sizes), prod(nest.outer_sizes)
    vector = _vector(nest)
    if not nest.outer_sizes:
        return _flat(nest, tuning, columns, vector)
    order = nest.group.schedule
    sums_columns = any(id(node) in order.merged and nest.has_columns(node) for node in nest.group.nodes)
    if order.rows or order.merged or _overwrites_rows(nest):
        if sums_columns and not order.rows and not _overwrites_rows(nest):
            return _columns(tuning, rows, columns, vector)
        return _rows(nest, tuning, rows, columns, vector, whole_block=sums_columns or _overwrites_rows(nest))
    if transposed := _operands_to_transpose(nest, tuning):
        names = tuple(a.name for a in transposed)
        last = nest.outer_sizes[-1]
        tiled = CudaSchedule(KernelForm.TILED_TRANSPOSE, rows, TILE, names, columns=columns, last_rows=last)
        return replace(tiled, grid_form=GridForm.TILED_TRANSPOSE, team=WARP)
    team = _team(columns, vector)
    grid = CudaSchedule(KernelForm.ROWS, rows, BLOCK_THREADS // team, columns=columns)
    return replace(grid, grid_form=GridForm.GRID, team=team, vector=vector)


def _flat(nest: LoopNest, tuning: Tuning, elements: int, vector: int) -> CudaSchedule:
    """One loop over elements: a block takes a vector for each thread, or many where it adds up."""
    block = BLOCK_THREADS * vector
    if nest.group.schedule.merged:
        block *= max(1, -(-elements // (tuning.max_merged_blocks * block)))
    if not nest.inner_sizes:
        return CudaSchedule(KernelForm.ROWS, elements, 1, threads=WARP)
    return CudaSchedule(KernelForm.ROWS, elements, block, vector=vector, columns=elements)


def _columns(tuning: Tuning, rows: int, columns: int, vector: int) -> CudaSchedule:
    team = min(BLOCK_THREADS, _power_of_two(-(-columns // vector)))
    teams = BLOCK_THREADS // team
    block = max(4 * teams, -(-rows // tuning.max_column_blocks))
    block = -(-block // teams) * teams
    found = CudaSchedule(KernelForm.ROWS, rows, block, columns=columns)
    return replace(found, grid_form=GridForm.COLUMNS, team=team, vector=vector)


def _rows(nest: LoopNest, tuning: Tuning, rows: int, columns: int, vector: int, *, whole_block: bool) -> CudaSchedule:
    """Rows that teams run through their sweeps. Threads of ``whole_block`` run one row at a time."""
    lanes = -(-columns // vector)
    form, threads = KernelForm.ROWS, BLOCK_THREADS
    if whole_block:
        team = threads = max(WARP, min(BLOCK_THREADS, _power_of_two(lanes)))
    elif _runs_across_memory(nest, tuning):
        form, team, vector = KernelForm.VECTORIZED_ROWS, 1, 1
    else:
        team = min(WARP, _power_of_two(lanes)) if columns <= WARP_ROW else BLOCK_THREADS
    teams = threads // team
    block = teams
    if merged := nest.group.schedule.merged:
        sums_columns = any(id(node) in merged and nest.has_columns(node) for node in nest.group.nodes)
        most = tuning.max_column_blocks if sums_columns else tuning.max_merged_blocks
        block = -(-max(teams, -(-rows // most)) // teams) * teams
    found = CudaSchedule(form, rows, block, columns=columns)
    return replace(found, grid_form=GridForm.ROWS, threads=threads, team=team, vector=vector)


def _power_of_two(number: int) -> int:
    """The least power of two that is not below ``number``."""
    return 1 << max(0, number - 1).bit_length()


def _team(columns: int, vector: int) -> int:
    """Threads of a block that lie along a row: many, unless too many of them would be idle."""
    lanes = -(-columns // vector)
    if lanes <= WARP:
        return _power_of_two(lanes)
    sizes = (BLOCK_THREADS, BLOCK_THREADS // 2, BLOCK_THREADS // 4, WARP)
    idle = {team: -(-lanes // team) * team / lanes for team in sizes}
    return next((team for team in sizes if idle[team] <= MAX_IDLE), min(sizes, key=lambda team: idle[team]))


def _vector(nest: LoopNest) -> int:
    """Elements that a thread takes in one access: more than one where all elements of a row are
    neighbours, and all rows start at multiples of it as far as strides say. Kernels check addresses
    themselves. Where an operand is read at other positions along a row, its vectors would start at any
    address, and neighbouring threads read neighbouring elements instead."""
    if len(nest.inner_sizes) != 1:
        return 1
    (axis,) = nest.inner_axes
    along = [a for a in nest.operands.values() if a.layout is not None and a.strides[axis]]
    if not along or any(a.strides[axis] != 1 or axis in a.runs for a in along):
        return 1
    size = max(a.value.aval.dtype.itemsize for a in along)
    costly = any(expensive(node.op) for node in nest.group.nodes)
    vector = min(MAX_COSTLY_VECTOR if costly else MAX_VECTOR, VECTOR_BYTES // size)
    while vector > 1 and vector * sum(a.value.aval.dtype.itemsize for a in along) > MAX_VECTOR_BYTES:
        vector //= 2
    steps = [a.strides[k] for a in along for k in nest.outer_axes]
    if nest.outer_sizes:
        steps += nest.inner_sizes
    return 1 if any(step % vector for step in steps) else vector


def _overwrites_rows(nest: LoopNest) -> bool:
    """Whether a number of a row is written over an operand, which all threads of the row read."""
    return any(nest.scope.get(out) is Scope.ROW for out in nest.in_place)


def _operands_to_transpose(nest: LoopNest, tuning: Tuning) -> list[OperandAccess]:
    """Operands whose rows run across memory, if tiles of them can be transposed."""
    if len(nest.inner_sizes) != 1 or min(nest.outer_sizes[-1], nest.inner_sizes[0]) < tuning.min_transposed_length:
        return []
    in_place = set(nest.in_place.values())
    read = [a for a in nest.operands.values() if a.layout is not None and not a.written and not a.runs]
    operands = [a for a in read if a.value not in in_place]
    across = [a for a in operands if nest.lies_across(a)]
    return across if len(across) <= tuning.max_transposed_operands else []


def _runs_across_memory(nest: LoopNest, tuning: Tuning) -> bool:
    """Whether rows run across memory in most operands: then neighbouring threads take
    neighbouring rows."""
    if len(nest.inner_sizes) != 1:
        return False
    (element,) = nest.inner_axes
    wide = [a for a in nest.operands.values() if a.layout is not None and a.strides[element]]
    wide = [a for a in wide if any(a.strides[k] for k in nest.outer_axes)]
    return nest.outer_sizes[-1] >= tuning.min_row_lanes and 2 * sum(map(nest.lies_across, wide)) > len(wide)
