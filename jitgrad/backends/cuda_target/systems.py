"""Systems of equations, inverses, determinants and Cholesky factors of matrices of up to 64 rows.

A thread holds a matrix of up to 4 rows in registers, by the text that the host's machine code has. For larger ones a block
has the matrix and some right sides in shared memory (`jitgrad.backends.cuda_target.shared_elimination`); more right sides
have blocks of their own, each of which eliminates again. Operands are read where they are. Every pivot but zero is used, as
LAPACK does it; a matrix with a pivot of zero is a fault, but for determinants. Larger matrices and complex ones are left to
the host.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda_target.device_call import CallWriter, DeviceCall
from jitgrad.backends.cuda_target.shared_elimination import SharedLayout, eliminated, loaded, shared_layout
from jitgrad.compiler.plan import OpStep
from jitgrad.core.aval import dtype_name
from jitgrad.device.faults import NOT_POSITIVE, SINGULAR, Fault
from jitgrad.ops.decompositions import CHOLESKY
from jitgrad.ops.inverses import DETERMINANT, SLOGDET
from jitgrad.runtime.library.elimination import factored, matrix_places
from jitgrad.runtime.library.small_systems import MOST_ROWS, SYSTEMS, system_axes
from jitgrad.runtime.library.system import Strides, System, fits_registers


def find_system(step: OpStep) -> DeviceCall | None:
    """How a kernel computes ``step``; None for other ops, dtypes, and large matrices."""
    if step.op not in SYSTEMS:
        return None
    places = [*step.reads, *step.writes]
    dtype = dtype_name(step.writes[0].aval.dtype)
    if dtype not in ("f32", "f64") or any(dtype_name(p.aval.dtype) != dtype or not p.aval.size for p in places):
        return None
    rows, columns = step.reads[0].aval.shape[-1], step.reads[-1].aval.shape[-1]
    if rows > MOST_ROWS:
        return None
    axes = system_axes(step)
    strides = [Strides(*p.location.strides[-2:]) for p in step.reads if p.location is not None]
    upper = bool(step.attrs.get("upper"))
    system = System(step.op.name, dtype, rows, columns, strides[0], strides[-1], len(axes), upper, exact=True)
    words = tuple([word for length, steps in axes for word in (length, *steps[:-1])])
    numbers, matrices = tuple(range(len(step.reads))), prod([axis.length for axis in axes])
    fault = None if step.op in (DETERMINANT, SLOGDET) else NOT_POSITIVE if step.op is CHOLESKY else SINGULAR
    if fits_registers(system):
        return DeviceCall(in_registers(system, fault), numbers, words, matrices, fault=fault, strided=True)
    layout = shared_layout(system)
    iterations, source = matrices * layout.parts * layout.threads, in_shared_memory(system, layout, fault)
    return DeviceCall(source, numbers, (*words, rows), iterations, fault=fault, threads=layout.threads, strided=True)


def _pointers(s: System) -> dict[str, str]:
    return dict.fromkeys((*s.results, *s.operands), s.dtype)


@lru_cache(maxsize=256)
def in_registers(s: System, fault: Fault | None) -> Source:
    """A thread for each matrix."""
    writer = CallWriter(_pointers(s), s.sizes, fault is not None)
    with writer as out:
        for line in ("e = t", *matrix_places(s), "good = 1 == 1", *factored(s)):
            out.line(line)
        if fault is not None:
            with out.block("if not good:"):
                out.line("faults[thread()] = number")
    return writer.source()


@lru_cache(maxsize=256)
def in_shared_memory(s: System, layout: SharedLayout, fault: Fault | None) -> Source:
    """A block for each matrix and ``layout.columns`` of its right sides."""
    writer = CallWriter(_pointers(s), [*s.sizes, "rows"], fault is not None, layout.threads)
    with writer as out:
        for line in (f"e = block() // {layout.parts}", f"first = block() % {layout.parts} * {layout.columns}"):
            out.line(line)
        for line in (*matrix_places(s), "good = 1 == 1", *loaded(s, layout), *eliminated(s, layout)):
            out.line(line)
        if fault is not None:
            with out.block("if not good:"):
                out.line("faults[thread()] = number")
    return writer.source()
