"""The CPU's text of a kernel: the function of its schedule's form, and that of its epilogue."""

from __future__ import annotations

from collections.abc import Mapping

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.block_writer import BlockWriter
from jitgrad.backends.cpu.epilogue import emit_epilogue
from jitgrad.backends.cpu.packed_rows import PackedRows
from jitgrad.backends.cpu.row_loops import RowLoops
from jitgrad.backends.cpu.short_rows import ShortRows
from jitgrad.backends.cpu.tiled_transpose import TiledTranspose
from jitgrad.backends.cpu.vectorized_rows import VectorizedRows
from jitgrad.compiler.lowering.kernel_ir import Kernel, KernelForm, Schedule

_FORMS: Mapping[KernelForm, type[BlockWriter]] = {
    KernelForm.ROWS: RowLoops,
    KernelForm.SHORT_ROWS: ShortRows,
    KernelForm.VECTORIZED_ROWS: VectorizedRows,
    KernelForm.PACKED_ROWS: PackedRows,
    KernelForm.TILED_TRANSPOSE: TiledTranspose,
}


def emit_kernel(kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
    """The source of ``kernel`` and of its epilogue."""
    main = _FORMS[schedule.form](kernel, schedule).emit().with_row_vectors(schedule.row_vectors)
    return main, emit_epilogue(kernel) if kernel.epilogue is not None else None
