"""The epilogue of a kernel that reduces over its rows or elements: a second kernel, launched after
it, merges the partial results of all blocks in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from jitgrad.backends.codegen.scalar import cast
from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.codegen.statements import Body, as_value, fold_statement, initial
from jitgrad.backends.cuda.grid_writer import FIRST_THREAD, LAST, write_once
from jitgrad.backends.cuda.schedule import BLOCK_THREADS
from jitgrad.backends.cuda.team_sums import TeamSums
from jitgrad.compiler.lowering.kernel_ir import (
    Accumulate,
    AccumulatorScope,
    Epilogue,
    Kernel,
    Store,
    overwritten,
)
from jitgrad.core.aval import dtype_name
from jitgrad.eager.float16 import compute_dtype

MERGED_COLUMNS = 32  # that a block merges: neighbours, which one access reads; the more threads has each of them


def runs_in_one_block(epilogue: Epilogue) -> bool:
    """Whether one block runs it: no columns to share, or numbers that are written over operands,
    which other blocks would read."""
    return not epilogue.columns or bool(overwritten(epilogue.scalars))


class EpilogueWriter:
    """Writes ``epilogue(..., iterations)``, whose iterations are the columns.

    Every block merges the numbers again, since its columns may read them. For ``x.sum()`` in f32::

        def epilogue(y0, blocks, p0, iterations):
            threads(256)
            r2s = to_f64(0.0)
            for k in range(thread(), blocks, 256):
                r2s = r2s + p0[k]
            r2s = r2s + shuffle_xor(r2s, 16)
            ...
            r2 = to_f32(r2s)
            if block() == 0 and thread() == 0:
                y0[0] = r2

    The partial results of a column are read by eight threads, each of which takes every eighth block: one would wait for
    each of hundreds of reads. For ``x.sum(axis=0)``::

        def epilogue(y0, n, blocks, p0, iterations):
            threads(256)
            c = block() * 32
            j = c + thread() % 32
            r1 = to_f32(0.0)
            if j < iterations:
                for k in range(thread() // 32, blocks, 8):
                    r1 = r1 + p0[k * n + j]
            f32h = shared_f32(256)
            barrier()
            f32h[thread()] = r1
            barrier()
            if thread() < 32:
                for k in range(1, 8):
                    r1 = r1 + f32h[k * 32 + thread()]
            if j < iterations and thread() < 32:
                y0[j] = r1
    """

    def __init__(self, kernel: Kernel) -> None:
        assert kernel.epilogue is not None
        self.kernel = kernel
        self.epilogue: Epilogue = kernel.epilogue
        self.out: Emitter = Emitter(LAST)

    def emit(self) -> Source:
        epilogue, out = self.epilogue, self.out
        numbers = [s for s in epilogue.merges if s.where is AccumulatorScope.BLOCK]
        columns = [s for s in epilogue.merges if s.where is AccumulatorScope.COLUMN]
        with out.block(f"def epilogue({', '.join([*(p.name for p in epilogue.params), LAST])}):"):
            out.line(f"threads({BLOCK_THREADS})")
            self.merge_numbers(numbers)
            self.scalars()
            if epilogue.columns:
                lanes = MERGED_COLUMNS if columns else BLOCK_THREADS
                with self.columns_from("c", lanes, one_block=runs_in_one_block(epilogue)):
                    self.column(columns, lanes)
        return out.source(epilogue.params)

    def columns_from(self, name: str, step: int, *, one_block: bool) -> AbstractContextManager[None]:
        """A block of lines for ``step`` columns from ``name`` on: those of this block, or one after the other all."""
        if one_block:
            return self.out.block(f"for {name} in range(0, {LAST}, {step}):")
        self.out.line(f"{name} = block() * {step}")
        return nullcontext()

    def scalars(self) -> None:
        """Numbers; what overwrites an operand waits until all threads have read it."""
        statements = self.epilogue.scalars
        over = overwritten(statements)
        late = [s for s in statements if isinstance(s, Store) and s.access.name in over]
        place = Body(self.out, (), (), False)
        write_once(self.out, place, [s for s in statements if s not in late], FIRST_THREAD)
        if late:
            self.out.line("barrier()", "all threads have read the operands")
            write_once(self.out, place, late, FIRST_THREAD)

    def merge_numbers(self, merges: Sequence[Accumulate]) -> None:
        out = self.out
        if not merges:
            return
        for s in merges:
            out.line(f"{s.name}s = {initial(s.monoid, s.dtype)}")
        with out.block(f"for k in range(thread(), blocks, {BLOCK_THREADS}):"):
            for s in merges:
                part = as_value(f"{s.partial}[k]", s.dtype)
                out.line(f"{s.name}s = {fold_statement(s.monoid, s.dtype, f'{s.name}s', part, reorder=False)}")
        TeamSums(out, BLOCK_THREADS, BLOCK_THREADS).over_block([(f"{s.name}s", s.monoid, s.dtype) for s in merges])
        for s in merges:
            out.line(f"{s.name} = {cast(f'{s.name}s', s.dtype, s.result)}", s.note)

    def column(self, merges: Sequence[Accumulate], lanes: int) -> None:
        """Merge column ``j``, then run the statements that read it, by the first ``lanes`` threads."""
        out, sizes = self.out, self.kernel.inner
        out.line(f"j = c + thread() % {lanes}")
        if merges:
            self.merge_columns(merges, lanes)
        with out.block(f"if j < {LAST} and thread() < {lanes}:" if lanes < BLOCK_THREADS else f"if j < {LAST}:"):
            if len(sizes) > 1:
                out.line("q = j")
                for k in range(len(sizes) - 1, 0, -1):
                    out.line(f"j{k} = q % {sizes[k]}")
                    out.line(f"q = q // {sizes[k]}")
                out.line("j0 = q")
            columns = tuple(f"j{k}" for k in range(len(sizes))) if len(sizes) > 1 else ("j",)
            place = Body(out, (), columns, False)
            for statement in self.epilogue.columns:
                place.statement(statement)

    def merge_columns(self, merges: Sequence[Accumulate], lanes: int) -> None:
        """Merge the partial results of column ``j``: several threads take blocks in turn, then the first of them what these
        have, in a fixed order."""
        out, teams, row = self.out, BLOCK_THREADS // lanes, self.epilogue.inner
        for s in merges:
            out.line(f"{s.name} = {initial(s.monoid, s.dtype)}")
        with out.block(f"if j < {LAST}:"), out.block(f"for k in range(thread() // {lanes}, blocks, {teams}):"):
            for s in merges:
                part = as_value(f"{s.partial}[k * {row} + j]", s.dtype)
                out.line(f"{s.name} = {fold_statement(s.monoid, s.dtype, s.name, part, reorder=False)}", s.note)
        kinds = {s.name: dtype_name(compute_dtype(s.dtype)) for s in merges}
        for kind in dict.fromkeys(kinds.values()):
            out.line(f"{kind}h = shared_{kind}({BLOCK_THREADS})")
        for s in merges:
            shared = f"{kinds[s.name]}h"
            out.line("barrier()", "all have read what was there before")
            out.line(f"{shared}[thread()] = {s.name}")
            out.line("barrier()")
            with out.block(f"if thread() < {lanes}:"), out.block(f"for k in range(1, {teams}):"):
                other = as_value(f"{shared}[k * {lanes} + thread()]", compute_dtype(s.dtype))
                out.line(f"{s.name} = {fold_statement(s.monoid, s.dtype, s.name, other, reorder=False)}")

