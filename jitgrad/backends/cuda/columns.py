"""The form of kernels that sum over rows, column by column: threads own columns."""

from __future__ import annotations

from jitgrad.backends.codegen.statements import as_stored, as_value, fold_statement, initial
from jitgrad.backends.cuda.element_loops import ElementWriter
from jitgrad.backends.cuda.grid_writer import register_type
from jitgrad.backends.cuda.schedule import CudaSchedule
from jitgrad.compiler.lowering.kernel_ir import Accumulate, AccumulatorScope, Kernel
from jitgrad.core.aval import Dtype
from jitgrad.eager.float16 import compute_dtype


class ColumnSums(ElementWriter):
    """A block takes a range of rows; its teams take rows in turn, and a thread the same columns of
    each. Each block stores one row of partial sums.

    For ``x.sum(axis=0)`` in f32 of many columns::

        def kernel(x0, n, p0, block_size, iterations):
            threads(256)
            x0u = scratch_f32(4)
            r1v = scratch_f32(4)
            start = block() * block_size
            stop = min(start + block_size, iterations)
            for c in range(0, n, 1024):
                j = c + thread() * 4
                for u in range(4):
                    r1v[u] = to_f32(0.0)
                if j < n:
                    for r in range(start, stop):
                        x0r = at(x0, r * n)
                        ...
                        for u in range(4):
                            a2 = x0u[u]
                            r1v[u] = r1v[u] + a2
                    for u in range(4):
                        p0[block() * n + j + u] = r1v[u]
    """

    def __init__(self, kernel: Kernel, schedule: CudaSchedule) -> None:
        super().__init__(kernel, schedule)
        self.sums_of_columns: list[Accumulate] = self.of(AccumulatorScope.COLUMN)

    def column_sum(self, s: Accumulate) -> tuple[str, Dtype]:
        return f"{s.name}v[u]" if self.vector > 1 else f"{s.name}v[0]", compute_dtype(s.result)

    def grid(self) -> None:
        out, schedule = self.out, self.schedule
        team, teams, width = schedule.team, schedule.teams, self.vector
        self.open_vectors()
        for s in self.sums_of_columns:
            out.line(f"{s.name}v = scratch_{register_type(s)}({width})")
        self.open_totals()
        self.block_range()
        lane = "thread()" if teams == 1 else f"thread() % {team}"
        with out.block(f"for c in range(0, {self.row_size}, {team * width}):"):
            out.line(f"j = c + {lane}{f' * {width}' if width > 1 else ''}")
            self.clear()
            with out.block(f"if j < {self.row_size}:"):
                first = "start" if teams == 1 else f"start + thread() // {team}"
                with out.block(f"for r in range({first}, stop{f', {teams}' if teams > 1 else ''}):"):
                    self.row()
            if teams > 1:
                self.merge_teams()
            with out.block(f"if j < {self.row_size}{f' and thread() < {team}' if teams > 1 else ''}:"):
                self.store()
        self.close_totals()

    def row(self) -> None:
        self.row_position()
        self.check_alignment()
        for sweep in self.kernel.sweeps:
            self.row_statements(sweep.before, "if j == 0:")
            sums = self.sums_in_runs(sweep.body)
            self.open_run(sums)
            self.elements(sweep.body)
            self.close_run(sums)

    def clear(self) -> None:
        with self.out.block(f"for u in range({self.vector}):"):
            for s in self.sums_of_columns:
                self.out.line(f"{s.name}v[u] = {initial(s.monoid, s.result)}")

    def merge_teams(self) -> None:
        """Add what the teams have of each column, in the order of the teams."""
        out, schedule, width = self.out, self.schedule, self.vector
        kinds = dict.fromkeys(register_type(s) for s in self.sums_of_columns)
        for kind in kinds:
            out.line(f"{kind}h = shared_{kind}({schedule.threads * width})")
        for s in self.sums_of_columns:
            shared = f"{register_type(s)}h"
            out.line("barrier()", "all have read what was there before")
            with out.block(f"for u in range({width}):"):
                out.line(f"{shared}[thread() * {width} + u] = {s.name}v[u]")
            out.line("barrier()")
            with (
                out.block(f"if thread() < {schedule.team}:"),
                out.block(f"for k in range(1, {schedule.teams}):"),
                out.block(f"for u in range({width}):"),
            ):
                other = f"{shared}[(k * {schedule.team} + thread()) * {width} + u]"
                out.line(f"{s.name}v[u] = {self.folded(s, f'{s.name}v[u]', other)}")

    def folded(self, s: Accumulate, kept: str, other: str) -> str:
        dtype = compute_dtype(s.result)
        return fold_statement(s.monoid, s.result, as_value(kept, dtype), as_value(other, dtype), reorder=False)

    def store(self) -> None:
        with self.out.block(f"for u in range({self.vector}):"):
            for s in self.sums_of_columns:
                place = f"{s.partial}[block() * {self.factor(self.row_size)} + j + u]"
                self.out.line(f"{place} = {as_stored(f'{s.name}v[u]', s.result)}", s.note)
