"""Rows whose elements stay in registers from one sweep to the next, so that each is read from memory once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jitgrad.backends.codegen.statements import Body, as_stored, initial
from jitgrad.backends.cuda.element_loops import SUM_RUN, Elements
from jitgrad.backends.cuda.rows import RowTeams
from jitgrad.backends.cuda.schedule import CudaSchedule
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Kernel,
    Load,
    Statement,
    Store,
    Sweep,
)
from jitgrad.core.aval import Dtype, dtype_name

# Of a thread, for elements that it holds: half of its registers, where two blocks of 256 threads share a processor. Less
# with arithmetic in 64 bits, whose other numbers take more of them, and with sums of columns, which are there throughout.
HELD_BYTES, HELD_BYTES_WITH_MORE = 256, 192
REGISTER_BYTES = 4
# Statements that loops over held elements may have once they are unrolled: code beyond that is slow to compile.
MAX_UNROLLED = 2048


class HeldRows(RowTeams):
    """Row teams whose threads hold what several sweeps use of their elements.

    A row's length decides how many elements a thread has at most (``steps`` times a vector); which of them exist, the
    kernel finds out. First all elements are loaded, then used: so all loads are under way at once. For softmax in f32
    of rows of 1,000::

        def kernel(x0, y0, n, iterations):
            threads(256)
            x0u = scratch_f32(32)
            y0u = scratch_f32(32)
            ...
            r2 = to_f32(-INF)
            if whole:
                for v in range(8):
                    j = thread() % 32 * 4 + v * 128
                    if j < size:
                        copy_vector(at(x0u, v * 4), at(x0r, j), 4)
            else:
                ...
            for v in range(8):
                j = thread() % 32 * 4 + v * 128
                if j < size:
                    for u in range(4):
                        a1 = x0u[v * 4 + u]
                        r2 = fmax(a1, r2)
            ...

    Sums have the order that they have without registers. Rows that follow each other in a block add to sums of columns
    in registers too, and the block's sums are stored at its end.
    """

    def __init__(self, kernel: Kernel, schedule: CudaSchedule) -> None:
        super().__init__(kernel, schedule)
        self.steps: int = -(-schedule.columns // self.step)
        self.held: dict[str, Access] = {}
        self.held_sums: set[str] = set()
        self.ready: set[str] = set()  # what registers hold at this place of the text
        self.current: Sweep = kernel.sweeps[0]
        stores = [(s.access.name, sweep) for sweep in kernel.sweeps for s in sweep.body if isinstance(s, Store)]
        self.last_stores: dict[str, Sweep] = dict(stores)
        self._choose()

    def _choose(self) -> None:
        """Choose what to hold: rows first, then sums of columns, as far as registers do."""
        wide = any(a.dtype.itemsize > REGISTER_BYTES for a in self.accesses)
        elements, most = self.steps * self.vector, HELD_BYTES_WITH_MORE if wide else HELD_BYTES
        left = [most] * len(self.kernel.sweeps)
        if elements > SUM_RUN or elements * sum(len(sweep.body) for sweep in self.kernel.sweeps) > MAX_UNROLLED:
            return
        for access in filter(self.is_worth_holding, self.accesses):
            size, during = elements * max(REGISTER_BYTES, access.dtype.itemsize), self.sweeps_with(access)
            if all(left[k] >= size for k in during):
                self.held[access.name] = access
                left = [bytes_left - size * (k in during) for k, bytes_left in enumerate(left)]
        for s in self.of(AccumulatorScope.COLUMN):
            if (size := elements * max(REGISTER_BYTES, s.result.itemsize)) <= min(left) - (most - HELD_BYTES_WITH_MORE):
                self.held_sums.add(s.name)
                left = [bytes_left - size for bytes_left in left]

    def sweeps_with(self, access: Access) -> range:
        """The sweeps that start with elements of ``access`` in registers, or load them."""
        uses = [
            (k, isinstance(s, Load))
            for k, sweep in enumerate(self.kernel.sweeps)
            for s in sweep.body
            if isinstance(s, (Load, Store)) and s.access.name == access.name
        ]
        (first, loads), last = uses[0], uses[-1][0]
        return range(first if loads else first + 1, last + 1)

    def is_worth_holding(self, access: Access) -> bool:
        """Whether a sweep reads elements that an earlier one has read or written, and nothing else uses the buffer."""
        if access.segments or not any(step != "0" for step in access.inner):
            return False
        used = again = False
        for sweep in self.kernel.sweeps:
            own = [s for s in sweep.body if isinstance(s, (Load, Store)) and s.access.name == access.name]
            if any(s.access != access for s in own):
                return False
            again = again or (used and any(isinstance(s, Load) for s in own))
            used = used or bool(own)
        others = [*self.kernel.prologue, *(s for sweep in self.kernel.sweeps for s in sweep.before)]
        return again and all(s.access.name != access.name for s in others if isinstance(s, (Load, Store)))

    # --- registers ---------------------------------------------------------------------------------------------------

    def open_vectors(self) -> None:
        for a in dict.fromkeys((*self.vectors, *self.held.values())):
            count = self.vector * (self.steps if a.name in self.held else 1)
            self.out.line(f"{a.name}u = scratch_{dtype_name(a.dtype)}({count})")

    def first_register(self, access: Access) -> str:
        return f"v * {self.vector}" if access.name in self.held else ""

    @property
    def held_place(self) -> str:
        """Which of the held registers is that of the element."""
        return "v" if self.vector == 1 else f"v * {self.vector} + u"

    def in_memory(self, access: Access) -> bool:
        """Whether the elements have a place in memory as well: not those that sweeps leave for each other alone."""
        return access.name not in self.held or access.outer != PER_BLOCK

    @property
    def aligned_vectors(self) -> list[Access]:
        return [a for a in self.vectors if self.in_memory(a)]

    # --- loops -------------------------------------------------------------------------------------------------------

    def row(self) -> None:
        self.ready.clear()
        super().row()

    def sweep_loop(self, sweep: Sweep) -> None:
        """The loops of a thread over its elements of a row: one that loads those to hold, and one that uses them."""
        self.current = sweep
        names = dict.fromkeys(s.access.name for s in sweep.body if isinstance(s, Load) and s.access.name in self.held)
        self.load_held([self.held[name] for name in names if name not in self.ready])
        self.ready |= {s.access.name for s in sweep.body if isinstance(s, (Load, Store)) and s.access.name in self.held}
        sums = self.sums_in_runs(sweep.body)
        self.open_run(sums)
        with self.each_step("size"):
            self.elements(sweep.body)
        self.close_run(sums)

    @contextmanager
    def each_step(self, stop: str) -> Iterator[None]:
        """A block of lines for each of the thread's vectors, which starts at ``j``."""
        with self.out.block(f"for v in range({self.steps}):"):
            self.out.line(f"j = {self.first} + v * {self.step}")
            with self.out.block(f"if j < {stop}:"):
                yield

    def load_held(self, accesses: Sequence[Access]) -> None:
        """Read all of a thread's elements."""
        if not accesses:
            return
        if self.vector == 1:
            with self.each_step("size"):
                self.column_position()
                for a in accesses:
                    self.out.line(f"{a.name}u[v] = {self.memory.address(a)}")
            return
        with self.out.block("if whole:"), self.each_step("size"):
            for a in accesses:
                self.copy(a, load=True)
        with self.out.block("else:"), self.each_step("size"), self.out.block(f"for u in range({self.vector}):"):
            for a in accesses:
                self.out.line(f"{a.name}u[{self.held_place}] = {self.pointer(a)}[j + u]")

    @property
    def memory(self) -> Body:
        """Places of elements in memory."""
        return Body(self.out, self.rows, self.columns, bool(self.kernel.outer))

    def elements(self, statements: Sequence[Statement]) -> None:
        if self.vector > 1:
            super().elements(statements)
            return
        self.column_position()
        place = Elements(self, self.columns, {name: (f"{name}u", "v") for name in self.held}, "")
        for s in statements:
            place.statement(s)
        for name, a in self.held.items():
            if self.is_last_store(a, statements):
                self.out.line(f"{self.memory.address(a)} = {name}u[v]")

    def loaded(self, statements: Sequence[Statement]) -> list[Access]:
        return [a for a in super().loaded(statements) if a.name not in self.held]

    def stored(self, statements: Sequence[Statement]) -> list[Access]:
        found = super().stored(statements)
        return [a for a in found if a.name not in self.held or self.is_last_store(a, statements)]

    def is_last_store(self, access: Access, statements: Sequence[Statement]) -> bool:
        """Whether these statements store what stays in memory of held elements."""
        return self.in_memory(access) and self.last_stores.get(access.name) is self.current

    # --- sums of columns ---------------------------------------------------------------------------------------------

    def column_sum(self, s: Accumulate) -> tuple[str, Dtype]:
        return (f"{s.name}u[{self.held_place}]", s.result) if s.name in self.held_sums else super().column_sum(s)

    def columns_in_memory(self) -> list[Accumulate]:
        return [s for s in super().columns_in_memory() if s.name not in self.held_sums]

    def open_columns(self) -> None:
        super().open_columns()
        sums = self.sums_in_registers
        for s in sums:
            self.out.line(f"{s.name}u = scratch_{dtype_name(s.result)}({self.steps * self.vector})")
        if sums:
            with self.out.block(f"for v in range({self.steps * self.vector}):"):
                for s in sums:
                    self.out.line(f"{s.name}u[v] = {as_stored(initial(s.monoid, s.result), s.result)}")

    @property
    def sums_in_registers(self) -> list[Accumulate]:
        return [s for s in self.of(AccumulatorScope.COLUMN) if s.name in self.held_sums]

    def close_totals(self) -> None:
        if sums := self.sums_in_registers:
            with self.each_step(self.row_size):
                self.store_sums(sums)
        super().close_totals()

    def store_sums(self, sums: Sequence[Accumulate]) -> None:
        """Write the block's sums of columns."""
        first = f"block() * {self.factor(self.row_size)} + j"
        if self.vector == 1:
            for s in sums:
                self.out.line(f"{s.partial}[{first}] = {s.name}u[v]")
            return
        with self.out.block(f"for u in range({self.vector}):"):
            for s in sums:
                self.out.line(f"{s.partial}[{first} + u] = {s.name}u[{self.held_place}]")


def row_writer(kernel: Kernel, schedule: CudaSchedule) -> RowTeams:
    """The writer of a kernel whose teams run rows."""
    holding = HeldRows(kernel, schedule)
    return holding if holding.held or holding.held_sums else RowTeams(kernel, schedule)
