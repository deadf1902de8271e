"""CPU source of a kernel: a readable Python loop nest over one block of rows or elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jitgrad.backends.codegen.scalar import cast, typed
from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.codegen.statements import (
    Body,
    block_function,
    dense,
    fold_statement,
    in_blocks,
    index,
    initial,
    lane_dtype,
    lane_name,
    positions,
    row_variables,
    total_name,
)
from jitgrad.backends.cpu.short_rows import emit_short_rows
from jitgrad.backends.cpu.tiled_transpose import emit_tiled_transpose
from jitgrad.backends.cpu.vectorized_rows import emit_vectorized_rows
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Kernel,
    KernelForm,
    KernelParameter,
    Load,
    Schedule,
    Statement,
    Store,
    Sweep,
    overwritten,
)

# Float sums are cut into blocks: each is summed in vector lanes in the values' own dtype, and the blocks in f64.
SUM_BLOCK = 256
CACHE_LINE = 64  # bytes
FAR = 2 * SUM_BLOCK  # elements; four or eight blocks on is up to a tenth slower
MERGED_ROWS = 3  # in one loop of an epilogue: each takes two lines of a set of the first-level cache, which has 8 or more


def emit_cpu(kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
    """Source of ``kernel`` and of its epilogue.

    The function runs units ``start`` to ``stop``: elements of a flat loop, or rows. For ``tanh(x) * 0.5`` in f32::

        def kernel(x0, y0, start, stop):
            for i in range(start, stop):
                a1 = x0[i]                  # f32[8]
                t2 = tanh(a1)               # tanh  demo.py:3
                t3 = (t2 * to_f32(0.5))     # multiply  demo.py:3
                y0[i] = t3                  # f32[8]
    """
    if schedule.form is KernelForm.VECTORIZED_ROWS:
        main = emit_vectorized_rows(kernel)
    elif schedule.form is KernelForm.TILED_TRANSPOSE:
        main = emit_tiled_transpose(kernel, schedule)
    elif schedule.form is KernelForm.SHORT_ROWS:
        main = emit_short_rows(kernel)
    else:
        main = _Main(kernel, schedule).emit()
    return main, _emit_epilogue(kernel) if kernel.epilogue is not None else None


class _Main:
    """Writes the block function."""

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        self.kernel = kernel
        self.nontemporal = schedule.nontemporal
        self.out = Emitter()
        self.rows = row_variables(kernel.outer) if kernel.outer else ()
        self.columns = ("i",) if not kernel.outer else tuple(f"j{k}" for k in range(len(kernel.inner)))
        if kernel.outer and len(kernel.inner) == 1:
            self.columns = ("j",)
        statements = [s for sweep in kernel.sweeps for s in (*sweep.before, *sweep.body)]
        self.accumulators = [s for s in statements if isinstance(s, Accumulate)]

    def emit(self) -> Source:
        kernel, out = self.kernel, self.out
        with block_function(out, kernel):
            self.open_block()
            if kernel.outer:
                with out.block("for r in range(start, stop):"):
                    self.row()
            elif kernel.inner:
                for sweep in kernel.sweeps:
                    self.loop(sweep, "start", "stop")
            self.close_block()
            if not kernel.prologue and not kernel.sweeps:
                out.line("pass")
        return out.source(kernel.params)

    def open_block(self) -> None:
        """Accumulators of the block."""
        for s in self.accumulators:
            if s.where is AccumulatorScope.BLOCK:
                start = initial(s.monoid, s.dtype)
                self.out.line(f"{s.name} = {start}")
            elif s.where is AccumulatorScope.COLUMN:
                row = self.row_size()
                self.out.line(f"{s.name} = at({s.partial}, start // block_size * {row})")
                with self.out.block(f"for j in range({row}):"):
                    self.out.line(f"{s.name}[j] = {initial(s.monoid, s.dtype)}")
        for access in self.scratch():
            self.out.line(f"{access.name}r = at({access.name}, start // block_size * {self.row_size()})")

    def row_size(self) -> str:
        return self.kernel.inner[0] if len(self.kernel.inner) == 1 else "row"

    def scratch(self) -> list[Access]:
        return [a for a in self.accesses() if a.outer == PER_BLOCK]

    def accesses(self) -> list[Access]:
        """Memory that the inner loops walk, each once."""
        found: dict[str, Access] = {}
        for sweep in self.kernel.sweeps:
            for s in sweep.body:
                if isinstance(s, (Load, Store)) and not s.access.index:
                    found.setdefault(s.access.name, s.access)
        return list(found.values())

    def close_block(self) -> None:
        for s in self.accumulators:
            if s.where is AccumulatorScope.BLOCK:
                self.out.line(f"{s.partial}[start // block_size] = {s.name}")

    def row(self) -> None:
        """One row: its place in the outer axes, its pointers, its sweeps."""
        sizes = self.kernel.outer
        if len(sizes) > 1:
            self.out.line("q = r")
            positions(self.out, "q", sizes)
        for access in self.accesses():
            if access.outer != PER_BLOCK and set(access.outer) != {"0"}:
                self.out.line(f"{access.name}r = at({access.name}, {index(access.outer, self.rows)})")
        place = Body(self.out, self.rows, (), True)
        loops = [sweep for sweep in self.kernel.sweeps if sweep.body]
        late = [sweep for sweep in loops[1:] if any(map(in_blocks, sweep.body))]
        for sweep in self.kernel.sweeps:
            for s in sweep.before:
                place.statement(s)
            if sweep.body:
                ahead = self.next_row(loops[0]) if late and sweep is late[-1] else []
                self.loop(sweep, "0", self.kernel.inner[-1] if self.kernel.inner else "1", ahead)

    def next_row(self, first: Sweep) -> list[Access]:
        """What the ``first`` sweep of the next row will read, where the elements of a row lie side by side."""
        read = {s.access.name: s.access for s in first.body if isinstance(s, Load) and not s.access.index}
        return [a for a in read.values() if a.inner == ("1",) and len(a.outer) == 1 and a.outer[0] not in ("0", *PER_BLOCK)]

    def loop(self, sweep: Sweep, first: str, last: str, ahead: Sequence[Access] = ()) -> None:
        """The inner loop of one sweep, with its lanes and blocks; ``ahead`` is fetched into the cache meanwhile."""
        sums = [s for s in sweep.body if isinstance(s, Accumulate) and in_blocks(s)]
        for s in sweep.body:
            if isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW:
                wide = np.dtype(np.float64) if in_blocks(s) else s.dtype
                self.out.line(f"{total_name(s)} = {initial(s.monoid, wide)}")
        self.nest(sweep, sums, first, last, ahead, 0)
        for s in sums:
            if s.where is AccumulatorScope.ROW:
                self.out.line(f"{s.name} = {cast(total_name(s), np.dtype(np.float64), s.result)}")

    def nest(
        self, sweep: Sweep, sums: list[Accumulate], first: str, last: str, ahead: Sequence[Access], depth: int
    ) -> None:
        if depth < len(self.columns) - 1:
            with self.out.block(f"for {self.columns[depth]} in range({self.kernel.inner[depth]}):"):
                self.nest(sweep, sums, first, last, ahead, depth + 1)
            return
        place = Body(
            self.out, self.rows, self.columns, bool(self.kernel.outer), overwritten(sweep.body), self.nontemporal
        )
        if not sums:
            with self.out.block(f"for {self.columns[-1]} in range({'' if first == '0' else first + ', '}{last}):"):
                for s in sweep.body:
                    place.statement(s)
            return
        with self.out.block(f"for b in range({first}, {last}, {SUM_BLOCK}):"):
            self.fetch({a: f"prefetch({a.name}r, {a.outer[0]} + f)" for a in ahead}, last, "of the next row")
            self.fetch({a: f"prefetch_beside({a.name}, f + {FAR})" for a in self.streamed_past(sweep)}, last, "two blocks on")
            for s in sums:
                self.out.line(f"{lane_name(s)} = {typed(0, lane_dtype(s))}")
            with self.out.block(f"for {self.columns[-1]} in range(b, min(b + {SUM_BLOCK}, {last})):"):
                for s in sweep.body:
                    place.statement(s)
            for s in sums:
                wide = cast(lane_name(s), lane_dtype(s), np.dtype(np.float64))
                self.out.line(f"{total_name(s)} = {total_name(s)} + {wide}")

    def streamed_past(self, sweep: Sweep) -> list[Access]:
        """What a flat loop reads element by element while it streams results."""
        if self.kernel.outer or not any(isinstance(s, Store) and s.access.name in self.nontemporal for s in sweep.body):
            return []
        return [a for a in {s.access: 0 for s in sweep.body if isinstance(s, Load)} if a.inner == ("1",) and not a.index]

    def fetch(self, lines: Mapping[Access, str], last: str, note: str) -> None:
        """Start loading a block's worth of each access early: the CPU's own prefetcher stops where a page does."""
        for size in sorted({a.dtype.itemsize for a in lines}):
            with self.out.block(f"for f in range(b, min(b + {SUM_BLOCK}, {last}), {CACHE_LINE // size}):"):
                for a, line in lines.items():
                    if a.dtype.itemsize == size:
                        self.out.line(line, note)


def _emit_epilogue(kernel: Kernel) -> Source:
    """The epilogue: merges each partial result in a fixed order, then runs what reads them."""
    epilogue = kernel.epilogue
    assert epilogue is not None
    out = Emitter()
    params: tuple[KernelParameter, ...] = epilogue.params
    columns = tuple(f"j{k}" for k in range(len(kernel.inner))) if len(kernel.inner) > 1 else ("j",)
    with out.block(f"def epilogue({', '.join([*(p.name for p in params), 'start', 'stop'])}):"):
        _merge_blocks(out, [s for s in epilogue.merges if s.where is AccumulatorScope.BLOCK])
        _merge_columns(out, [s for s in epilogue.merges if s.where is not AccumulatorScope.BLOCK], epilogue.inner)
        top = Body(out, (), (), False)
        for statement in epilogue.scalars:
            top.statement(statement)
        if epilogue.columns:
            place = Body(out, (), columns, False)
            merges = [s for s in epilogue.merges if s.where is AccumulatorScope.COLUMN]
            _emit_columns(out, place, kernel, merges, epilogue.columns, 0)
    return out.source(params)


def _merge_blocks(out: Emitter, merges: Sequence[Accumulate]) -> None:
    """One number per block: all partial results in the same loops, which are most of what there is to compile."""
    if not merges:
        return
    out.line("m = blocks", "merge in a fixed tree")
    with out.block("while m > 1:"):
        out.line("h = (m + 1) // 2")
        with out.block("for k in range(m - h):"):
            for s in merges:
                p = s.partial
                out.line(f"{p}[k] = {fold_statement(s.monoid, s.dtype, f'{p}[k]', f'{p}[k + h]', reorder=False)}")
        out.line("m = h")
    for s in merges:
        first = f"to_bool({s.partial}[0])" if s.dtype.kind == "b" else f"{s.partial}[0]"
        out.line(f"{s.name} = {cast(first, s.dtype, s.result)}", s.note)


def _merge_columns(out: Emitter, merges: Sequence[Accumulate], row: str) -> None:
    """One row per block, likewise, but few rows in a loop: at the same place of a page they share lines of the cache."""
    for first in range(0, len(merges), MERGED_ROWS):
        with out.block("for k in range(1, blocks):", "merge in a fixed order"), out.block(f"for j in range({row}):"):
            for s in merges[first : first + MERGED_ROWS]:
                target = f"{s.partial}[j]"
                other = f"{s.partial}[k * {row} + j]"
                out.line(f"{target} = {fold_statement(s.monoid, s.dtype, target, other, reorder=False)}")


def _emit_columns(
    out: Emitter, place: Body, kernel: Kernel, merges: list[Accumulate], statements: Sequence[Statement], depth: int
) -> None:
    with out.block(f"for {place.columns[depth]} in range({kernel.inner[depth]}):"):
        if depth + 1 < len(place.columns):
            _emit_columns(out, place, kernel, merges, statements, depth + 1)
            return
        for s in merges:
            element = f"{s.partial}[{index(dense(s, len(place.columns)), place.columns)}]"
            out.line(f"{s.name} = {f'to_bool({element})' if s.dtype.kind == 'b' else element}", s.note)
        for statement in statements:
            place.statement(statement)
