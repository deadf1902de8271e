"""The form of kernels that reduce rows: a team of threads, up to a whole block, runs a row through
all its sweeps."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from jitgrad.backends.codegen.scalar import cast
from jitgrad.backends.codegen.statements import as_stored, in_sum_blocks, initial, total_name
from jitgrad.backends.cuda.element_loops import ElementWriter, wide_dtype
from jitgrad.compiler.lowering.kernel_ir import Accumulate, AccumulatorScope, Load, Statement, Store, Sweep


class RowTeams(ElementWriter):
    """A team takes a row; a block has one team or many.

    Threads without a row run no elements, but take part in the shuffles. For ``x.sum(axis=1)`` in
    f32, of rows of 100::

        def kernel(x0, y0, n, iterations):
            threads(256)
            x0u = scratch_f32(4)
            start = block() * 8
            stop = min(start + 8, iterations)
            r = start + thread() // 32
            size = select(r < stop, n, 0)
            x0r = at(x0, r * n)
            whole = is_aligned(x0r, 16)
            r1s = to_f64(0.0)
            r1b = to_f32(0.0)
            for j in range(thread() % 32 * 4, size, 128):
                ...
                for u in range(4):
                    a2 = x0u[u]
                    r1b = r1b + a2
            r1s = r1s + to_f64(r1b)
            r1s = r1s + shuffle_xor(r1s, 16)
            ...
            r1 = to_f32(r1s)
            if r < stop:
                if thread() % 32 == 0:
                    y0[r] = r1
    """

    def grid(self) -> None:
        out, schedule = self.out, self.schedule
        self.open_vectors()
        self.open_totals()
        self.open_columns()
        self.block_range()
        if schedule.team == schedule.threads:
            with out.block("for r in range(start, stop):"):
                out.line(f"size = {self.row_size}")
                self.row()
        elif any(p.name == "block_size" for p in self.kernel.params):
            with out.block(f"for t in range(start, stop, {schedule.teams}):"):
                self.team_row("t")
        else:
            self.team_row("start")
        self.close_totals()

    @property
    def lane(self) -> str:
        """The number of the thread in its team."""
        team = self.schedule.team
        return "0" if team == 1 else "thread()" if team == self.schedule.threads else f"thread() % {team}"

    @property
    def first(self) -> str:
        """The first element of the thread."""
        return self.lane if self.vector == 1 or self.lane == "0" else f"{self.lane} * {self.vector}"

    @property
    def leader(self) -> str:
        return "" if self.schedule.team == 1 else f"if {self.lane} == 0:"

    @property
    def step(self) -> int:
        return self.schedule.team * self.vector

    def team_row(self, first: str) -> None:
        team = self.schedule.team
        self.out.line(f"r = {first} + thread()" + (f" // {team}" if team > 1 else ""))
        self.out.line(f"size = select(r < stop, {self.row_size}, 0)")
        self.row()

    def alive(self) -> AbstractContextManager[None]:
        """A block of lines for teams that have a row."""
        return nullcontext() if self.schedule.team == self.schedule.threads else self.out.block("if r < stop:")

    def row(self) -> None:
        self.row_position()
        self.check_alignment()
        for sweep in self.kernel.sweeps:
            if sweep.before:
                with self.alive():
                    self.before(sweep)
            if sweep.body:
                self.sweep(sweep)

    def before(self, sweep: Sweep) -> None:
        """Statements of the row. What is written over an operand waits until all threads have read
        it."""
        loaded = {s.access.name for s in self.statements if isinstance(s, Load)}
        pending: list[Statement] = list(sweep.before)
        late = [s for s in pending if isinstance(s, Store) and s.access.name in loaded]
        self.row_statements([s for s in pending if s not in late], self.leader)
        if late:
            self.out.line("barrier()")
            self.row_statements(late, self.leader)

    def sweep(self, sweep: Sweep) -> None:
        """The loop over the elements of a row, and the team's totals."""
        reduced = [s for s in sweep.body if isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW]
        for s in reduced:
            self.out.line(f"{total_name(s)} = {initial(s.monoid, wide_dtype(s))}")
        self.sweep_loop(sweep)
        self.sums.over_team([(total_name(s), s.monoid, wide_dtype(s)) for s in reduced])
        for s in reduced:
            if in_sum_blocks(s):
                self.out.line(f"{s.name} = {cast(total_name(s), wide_dtype(s), s.result)}")

    def sweep_loop(self, sweep: Sweep) -> None:
        """The loop of a thread over its elements of a row."""
        long = self.schedule.team in (1, self.schedule.threads)
        self.sum_loop(sweep.body, self.first, "size", self.step, runs=long)

    def columns_in_memory(self) -> list[Accumulate]:
        """The sums of columns whose partial sums lie in memory."""
        return self.of(AccumulatorScope.COLUMN)

    def open_columns(self) -> None:
        """Set the partial sums of columns, each of which belongs to the thread that adds to it."""
        sums = self.columns_in_memory()
        for s in sums:
            self.out.line(f"{s.name} = at({s.partial}, block() * {self.factor(self.row_size)})")
        if not sums:
            return
        with self.out.block(f"for j in range({self.first}, {self.row_size}, {self.step}):"):
            if self.vector == 1:
                for s in sums:
                    self.out.line(f"{s.name}[j] = {as_stored(initial(s.monoid, s.result), s.result)}")
                return
            with self.out.block(f"for u in range({self.vector}):"):
                for s in sums:
                    self.out.line(f"{s.name}[j + u] = {as_stored(initial(s.monoid, s.result), s.result)}")


