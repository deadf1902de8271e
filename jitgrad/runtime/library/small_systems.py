"""Inverses, systems of equations, determinants and Cholesky factors of small matrices as machine code: for them a call of
NumPy's function takes longer than the arithmetic."""

from __future__ import annotations

from functools import cache
from math import prod

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.effort import LOOPS, SMALL_LOOPS
from jitgrad.backends.llvm.library_names import LibraryNames, library_key
from jitgrad.compiler.lowering.layout import ArgSlot, row_major
from jitgrad.compiler.plan import OpStep, Place
from jitgrad.core.aval import dtype_name
from jitgrad.ops.decompositions import CHOLESKY
from jitgrad.ops.inverses import DETERMINANT, INVERSE, SLOGDET, SOLVE
from jitgrad.ops.triangular import TRIANGULAR_SOLVE
from jitgrad.runtime.executor.gemm import BatchAxis, batch_axes
from jitgrad.runtime.executor.instruction_loop import KERNEL, Instruction
from jitgrad.runtime.library.elimination import source
from jitgrad.runtime.library.system import Strides, System, fits_registers

# Measured on one thread against OpenBLAS without the call of NumPy's function, single matrices and batches: 4 x 4 takes a
# tenth to a fifth of its time, 16 x 16 a third to a half, 64 x 64 as long.
MOST_ROWS = 64
MOST_COLUMNS = 256  # of right sides; LAPACK computes more of them in blocks
_BLOCK_MULTIPLICATIONS = 1 << 14  # multiplications of a block of matrices, some 4 us

SYSTEMS = (SOLVE, TRIANGULAR_SOLVE, INVERSE, DETERMINANT, SLOGDET, CHOLESKY)


@cache
def _code(system: System) -> CodeObject:
    """Statements for registers need no unrolling, so they compile as small code; the loops of a Cholesky factor gain nothing.

    Interleaved, it takes as long to run for 5 to 64 rows, and for 17 rows of float32 it took 2.7 s to compile in place of 0.1.
    """
    text = source(system)
    effort = SMALL_LOOPS if fits_registers(system) or system.op == CHOLESKY.name else LOOPS
    return compile_entry(text, "factor", LibraryNames(), params=system.params, key=library_key(), effort=effort, wait=False)


def small_system(step: OpStep) -> Instruction | None:
    """The instruction for a step whose matrices are small; None for other steps.

    It may leave its step to NumPy.
    """
    if step.op not in SYSTEMS:
        return None
    places = [*step.reads, *step.writes]
    locations = [p.location for p in places if p.location is not None]
    dtype = dtype_name(step.writes[0].aval.dtype)
    if len(locations) < len(places) or any(dtype_name(p.aval.dtype) != dtype for p in places) or dtype not in ("f32", "f64"):
        return None
    n, columns = step.reads[0].aval.shape[-1], step.reads[-1].aval.shape[-1]
    contiguous = all(_is_contiguous(p) for p in step.writes)
    if not contiguous or not all(p.aval.size for p in places):
        return None
    axes = system_axes(step)
    strides = [Strides(*at.strides[-2:]) for at in locations[: len(step.reads)]]
    upper = bool(step.attrs.get("upper"))
    system = System(step.op.name, dtype, n, columns, strides[0], strides[-1], len(axes), upper)
    if not fits_registers(system) and (n > MOST_ROWS or columns > MOST_COLUMNS):
        return None
    args: list[ArgSlot] = [*((at.buffer, at.offset) for at in locations)]
    args += [word for length, steps in axes for word in (length, *steps[:-1])]
    matrices, work = prod(axis.length for axis in axes), n * n * (n + columns)
    return Instruction(KERNEL, _code(system), args, matrices, max(1, _BLOCK_MULTIPLICATIONS // work), declines=True)


def _is_contiguous(place: Place) -> bool:
    return place.location is not None and place.location.is_contiguous(place.aval.shape)


def system_axes(step: OpStep) -> list[BatchAxis]:
    """The axes of the batch, with the strides of the operands and of one number for each matrix in order."""
    shape = step.writes[0].aval.shape
    batch = shape if step.op in (DETERMINANT, SLOGDET) else shape[:-2]
    shapes = [p.aval.shape for p in step.reads]
    strides = [p.location.strides for p in step.reads if p.location is not None]
    return batch_axes([*shapes, (*batch, 1, 1)], [*strides, (*row_major(batch), 1, 1)])
