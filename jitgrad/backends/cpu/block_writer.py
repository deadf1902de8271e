"""The base of the CPU's kernel forms: writes the function that runs one block of a kernel's
iterations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.codegen.statements import Body, initial, positions, row_variables
from jitgrad.backends.llvm.tile_sizes import LANES
from jitgrad.compiler.lowering.kernel_ir import Accumulate, AccumulatorScope, Kernel, Schedule, Statement


class BlockWriter(ABC):
    """Writes ``kernel(..., start, stop)``, which runs iterations: rows, or elements of a flat
    loop."""

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        self.kernel = kernel
        self.schedule = schedule
        self.out: Emitter = Emitter()
        self.statements: list[Statement] = [s for sweep in kernel.sweeps for s in (*sweep.before, *sweep.body)]
        self.accumulators: list[Accumulate] = [s for s in self.statements if isinstance(s, Accumulate)]
        self.row_size: str = kernel.inner[0] if len(kernel.inner) == 1 else "row"

    def emit(self) -> Source:
        kernel, out = self.kernel, self.out
        with out.block(f"def kernel({', '.join([*(p.name for p in kernel.params), 'start', 'stop'])}):"):
            top = Body(out, (), (), False)
            for s in kernel.prologue:
                top.statement(s)
            self.open_block()
            self.iterations()
            for accumulator in self.of(AccumulatorScope.BLOCK):
                out.line(f"{accumulator.partial}[start // block_size] = {accumulator.name}")
            if not kernel.prologue and not kernel.sweeps:
                out.line("pass")
        return out.source(kernel.params)

    @abstractmethod
    def open_block(self) -> None:
        """Write what precedes the loops: scratch memory and accumulators."""

    @abstractmethod
    def iterations(self) -> None:
        """Write the loops."""

    def of(self, scope: AccumulatorScope) -> list[Accumulate]:
        return [s for s in self.accumulators if s.where is scope]

    def start(self, s: Accumulate) -> None:
        """Set an accumulator of the block to its neutral element."""
        if s.where is AccumulatorScope.BLOCK:
            self.out.line(f"{s.name} = {initial(s.monoid, s.dtype)}")
        elif s.where is AccumulatorScope.COLUMN:
            self.out.line(f"{s.name} = at({s.partial}, start // block_size * {self.row_size})")
            with self.out.block(f"for j in range({self.row_size}):"):
                self.out.line(f"{s.name}[j] = {initial(s.monoid, s.dtype)}")

    @contextmanager
    def groups_of_rows(self) -> Iterator[tuple[str, ...]]:
        """A loop over groups of up to LANES rows ``t`` to ``t + m``, which differ in the last outer
        axis alone.

        Yields:
            The position of a group's first row along each outer axis; the last is ``q``.
        """
        out, sizes = self.out, self.kernel.outer
        out.line("t = start")
        with out.block("while t < stop:"):
            if len(sizes) == 1:
                out.line("q = t")
                out.line(f"m = min({LANES}, stop - t)")
            else:
                out.line(f"q = t % {sizes[-1]}")
                out.line(f"m = min({LANES}, min(stop - t, {sizes[-1]} - q))", "rows that differ in the last axis alone")
                out.line(f"p = t // {sizes[-1]}")
                positions(out, "p", sizes[:-1])
            yield (*row_variables(sizes)[:-1], "q")
            out.line("t = t + m")
