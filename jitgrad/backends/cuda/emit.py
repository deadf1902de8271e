"""The CUDA text of a kernel: the function of its schedule's form, and that of its epilogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.columns import ColumnSums
from jitgrad.backends.cuda.epilogue import EpilogueWriter
from jitgrad.backends.cuda.flat import Flat
from jitgrad.backends.cuda.grid_writer import GridWriter
from jitgrad.backends.cuda.held_rows import row_writer
from jitgrad.backends.cuda.rectangles import Rectangles, TiledTranspose
from jitgrad.backends.cuda.schedule import CudaSchedule, GridForm
from jitgrad.compiler.lowering.kernel_ir import Kernel, Schedule

_FORMS: Mapping[GridForm, Callable[[Kernel, CudaSchedule], GridWriter]] = {
    GridForm.FLAT: Flat,
    GridForm.GRID: Rectangles,
    GridForm.ROWS: row_writer,
    GridForm.COLUMNS: ColumnSums,
    GridForm.TILED_TRANSPOSE: TiledTranspose,
}


def emit_kernel(kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
    """The source of ``kernel`` and of its epilogue, which is launched after it, in the same stream."""
    assert isinstance(schedule, CudaSchedule)
    main = _FORMS[schedule.grid_form](kernel, schedule).emit()
    return main, EpilogueWriter(kernel).emit() if kernel.epilogue is not None else None
