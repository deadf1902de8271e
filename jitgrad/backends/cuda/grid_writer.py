"""The base of the CUDA's kernel forms: writes the function that every thread of a grid runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.codegen.statements import Body, as_stored, initial, outer_index, positions, row_variables
from jitgrad.backends.cuda.schedule import CudaSchedule
from jitgrad.backends.cuda.team_sums import TeamSums
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Kernel,
    Load,
    Statement,
    Store,
)
from jitgrad.core.aval import dtype_name
from jitgrad.eager.float16 import compute_dtype

LAST = "iterations"  # the parameter that every kernel ends with
FAULT_WORDS = "faults"  # the parameter that any thread may write, in any order
FIRST_THREAD = "if block() == 0 and thread() == 0:"


class GridWriter(ABC):
    """Writes ``kernel(..., iterations)``, which runs rows, or elements of a flat loop."""

    def __init__(self, kernel: Kernel, schedule: CudaSchedule) -> None:
        self.kernel = kernel
        self.schedule = schedule
        self.out: Emitter = Emitter(LAST)
        self.statements: list[Statement] = [s for sweep in kernel.sweeps for s in (*sweep.before, *sweep.body)]
        self.accumulators: list[Accumulate] = [s for s in self.statements if isinstance(s, Accumulate)]
        self.row_size: str = " * ".join(kernel.inner) or "1"
        self.rows: tuple[str, ...] = row_variables(kernel.outer) if kernel.outer else ()
        self.columns: tuple[str, ...] = ("j",) if len(kernel.inner) <= 1 else tuple(f"j{k}" for k in range(len(kernel.inner)))
        self.accesses: list[Access] = self._element_accesses()
        self.sums: TeamSums = TeamSums(self.out, schedule.threads, schedule.team)

    def _element_accesses(self) -> list[Access]:
        """The accesses of the loops over elements, one for each buffer."""
        found: dict[str, Access] = {}
        for sweep in self.kernel.sweeps:
            for s in sweep.body:
                if isinstance(s, (Load, Store)) and not s.access.index:
                    found.setdefault(s.access.name, s.access)
        return list(found.values())

    def emit(self) -> Source:
        kernel, out = self.kernel, self.out
        with out.block(f"def kernel({', '.join([*(p.name for p in kernel.params), LAST])}):"):
            out.line(f"threads({self.schedule.threads})")
            if kernel.sweeps:
                write_once(out, Body(out, (), (), False), kernel.prologue, FIRST_THREAD)
                self.grid()
            elif kernel.prologue:
                with out.block(FIRST_THREAD):
                    for s in kernel.prologue:
                        Body(out, (), (), False).statement(s)
        return out.source(kernel.params)

    @abstractmethod
    def grid(self) -> None:
        """Write what threads do after the prologue."""

    def of(self, scope: AccumulatorScope) -> list[Accumulate]:
        return [s for s in self.accumulators if s.where is scope]

    # --- parts of several forms --------------------------------------------------------------------------------------

    def block_range(self) -> None:
        """Write ``start`` and ``stop``, the iterations of the block."""
        given = any(p.name == "block_size" for p in self.kernel.params)
        self.out.line(f"start = block() * {'block_size' if given else self.schedule.block_size}")
        self.out.line(f"stop = min(start + {'block_size' if given else self.schedule.block_size}, {LAST})")

    def open_totals(self) -> None:
        """Set the accumulators of the block, of which every thread has its own part."""
        for s in self.of(AccumulatorScope.BLOCK):
            self.out.line(f"{s.name} = {initial(s.monoid, s.dtype)}")

    def close_totals(self) -> None:
        """Merge the threads' parts, and store the block's partial results."""
        totals = self.of(AccumulatorScope.BLOCK)
        self.sums.over_block([(s.name, s.monoid, s.dtype) for s in totals])
        if totals:
            with self.out.block("if thread() == 0:"):
                for s in totals:
                    self.out.line(f"{s.partial}[block()] = {as_stored(s.name, s.dtype)}")

    def row_position(self) -> None:
        """Write the position of row ``r`` along the outer axes, and the pointers to its elements."""
        if len(self.kernel.outer) > 1:
            self.out.line("q = r")
            positions(self.out, "q", self.kernel.outer)
        for access in self.accesses:
            if access.outer == PER_BLOCK:
                self.out.line(f"{access.name}r = at({access.name}, block() * {self.factor(self.row_size)})")
            elif self.has_row_pointer(access):
                self.out.line(f"{access.name}r = at({access.name}, {outer_index(access, self.rows) or 0})")

    def factor(self, text: str) -> str:
        return f"({text})" if " " in text else text

    def has_row_pointer(self, access: Access) -> bool:
        return access.outer != () and (access.segments != () or set(access.outer) != {"0"})

    def pointer(self, access: Access) -> str:
        """The name of the pointer to the elements of a row."""
        return f"{access.name}r" if self.has_row_pointer(access) else access.name

    def column_position(self) -> None:
        """Write the position of element ``j`` along several inner axes."""
        sizes = self.kernel.inner
        if len(sizes) < 2:
            return
        self.out.line("q = j")
        for k in range(len(sizes) - 1, 0, -1):
            self.out.line(f"j{k} = q % {sizes[k]}")
            self.out.line(f"q = q // {sizes[k]}")
        self.out.line("j0 = q")

    def row_statements(self, statements: Sequence[Statement], leader: str) -> None:
        """Statements of a row, which every thread of its team runs; ``leader`` says which one
        stores and counts."""
        write_once(self.out, Body(self.out, self.rows, (), True), statements, leader)


def write_once(out: Emitter, place: Body, statements: Sequence[Statement], leader: str) -> None:
    """Statements that many threads run with the same result, which ``leader`` alone stores."""
    for s in statements:
        if isinstance(s, (Load, Store, Accumulate)) and not isinstance(s, Load) and leader:
            with out.block(leader):
                place.statement(s)
        else:
            place.statement(s)


def register_type(s: Accumulate) -> str:
    """The name of the dtype of what a thread accumulates for a column."""
    return dtype_name(compute_dtype(s.result))
