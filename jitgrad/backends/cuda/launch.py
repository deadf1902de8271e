"""The grids of a kernel and its epilogue, and the number of iterations that each is given."""

from __future__ import annotations

from typing import NamedTuple

from jitgrad.backends.cuda.epilogue import MERGED_COLUMNS, runs_in_one_block
from jitgrad.backends.cuda.schedule import BLOCK_THREADS, TILE, CudaSchedule, GridForm
from jitgrad.compiler.lowering.kernel_ir import AccumulatorScope, Kernel


class LaunchShape(NamedTuple):
    """A launch of one function of a kernel.

    Attributes:
        blocks: of the grid, along its first axis.
        threads: of a block.
        iterations: the last word of the arguments, after those of the source's parameters.
    """

    blocks: int
    threads: int
    iterations: int


def kernel_launch(kernel: Kernel, schedule: CudaSchedule) -> LaunchShape:
    """How ``kernel`` is launched."""
    if not kernel.sweeps:
        return LaunchShape(1, schedule.threads, schedule.iterations)
    if schedule.grid_form is GridForm.GRID:
        tiles = max(1, -(-schedule.columns // (schedule.team * schedule.vector)))
        return LaunchShape(tiles * schedule.blocks, schedule.threads, schedule.iterations)
    if schedule.grid_form is GridForm.TILED_TRANSPOSE:
        return LaunchShape(_squares(schedule), schedule.threads, schedule.last_rows)
    return LaunchShape(schedule.blocks, schedule.threads, schedule.iterations)


def epilogue_launch(kernel: Kernel, schedule: CudaSchedule) -> LaunchShape:
    """How the epilogue of ``kernel`` is launched, after it."""
    assert kernel.epilogue is not None
    merged = any(s.where is AccumulatorScope.COLUMN for s in kernel.epilogue.merges)
    columns = MERGED_COLUMNS if merged else BLOCK_THREADS  # of a block
    blocks = 1 if runs_in_one_block(kernel.epilogue) else max(1, -(-schedule.columns // columns))
    return LaunchShape(blocks, BLOCK_THREADS, schedule.columns)


def _squares(schedule: CudaSchedule) -> int:
    """Squares of all rows and columns; rows that lie in one square differ in the last outer axis
    alone."""
    across, down = -(-schedule.columns // TILE), -(-schedule.last_rows // TILE)
    return max(1, across * down * (schedule.iterations // max(1, schedule.last_rows)))
