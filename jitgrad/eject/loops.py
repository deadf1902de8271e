"""The loops of an ejected kernel over rows and elements, as numba's CPU compiler runs them, and what follows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from jitgrad.backends.codegen.scalar import accumulated, render
from jitgrad.backends.codegen.source import Emitter
from jitgrad.backends.codegen.statements import Body, dense, fold_statement, index, initial, row_variables
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Compute,
    Epilogue,
    Kernel,
    Load,
    Statement,
    Store,
    Sweep,
)
from jitgrad.core.aval import dtype_name
from jitgrad.eject.expressions import numpy_name
from jitgrad.eject.kernel_lines import KernelLines, is_float_sum, total_dtype


class _DialectLines(Emitter):
    """Takes lines of the kernel dialect, and writes them as plain numba."""

    def __init__(self, out: KernelLines) -> None:
        super().__init__()
        self._out = out

    def line(self, text: str, note: str = "") -> None:
        self._out.dialect(text, note)


class Statements(Body):
    """Writes the statements inside given loops."""

    def __init__(self, lines: KernelLines, rows: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__(_DialectLines(lines), rows, columns, False)
        self.lines = lines

    def place(self, access: Access) -> tuple[str, str]:
        pointer, at = super().place(access)
        return pointer, self._from_start(pointer, at)

    def _from_start(self, array: str, at: str) -> str:
        start = self.lines.starts.get(array)
        return at if start is None else start if at == "0" else f"{start} + {at}"

    def statement(self, s: Statement) -> None:
        if isinstance(s, Compute):
            self.lines.rename(s)
            self.lines.mention(s.node.origin)
            self.out.line(f"{s.local} = {render(s.node, s.args)}")
            return
        super().statement(s)

    def accumulate(self, s: Accumulate) -> None:
        at = ""
        if s.where is AccumulatorScope.COLUMN:
            place = index(dense(s, len(self.columns)), self.columns)
            at = f"[{self._from_start(self.lines.accumulator(s), place)}]"
        names = [f"{name}{at}" for name in self.lines.accumulators(s)]
        self.fold(s, names, accumulated(s, total_dtype(s)))

    def fold(self, s: Accumulate, names: Sequence[str], value: str) -> None:
        """Write the fold of ``value`` into the variables ``names`` of ``s``."""
        if len(names) == 2:
            total, rest = names
            add = self.lines.translator.support.function("add_with_rest")
            self.lines.line(f"{total}, {rest} = {add}({total}, {rest}, {self.lines.translator.expression(value)})", s.note)
            return
        (total,) = names
        text = fold_statement(s.monoid, total_dtype(s), total, value, reorder=False)
        self.lines.dialect(f"{total} = {text}", s.note)


class Loops:
    """The loops of a kernel before its epilogue."""

    def __init__(self, out: KernelLines) -> None:
        self.out = out
        self.kernel: Kernel = out.kernel
        self.rows: tuple[str, ...] = row_variables(self.kernel.outer) if self.kernel.outer else ()
        inner = self.kernel.inner
        several = tuple(f"j{k}" for k in range(len(inner))) if len(inner) > 1 else ("j",)
        self.columns: tuple[str, ...] = several if self.kernel.outer else ("i",)
        self.statements: list[Statement] = [s for sweep in self.kernel.sweeps for s in (*sweep.before, *sweep.body)]
        sums = [s for s in self.statements if isinstance(s, Accumulate)]
        self.merged: list[Accumulate] = [s for s in sums if s.where is not AccumulatorScope.ROW]
        accesses = [s.access for s in self.statements if isinstance(s, (Load, Store))]
        self.has_scratch: bool = any(access.outer == PER_BLOCK for access in accesses)
        flat_sums = sums and not self.kernel.outer
        self.range: str = "range" if self.merged or self.has_scratch or flat_sums else "prange"

    def write(self) -> None:
        top = Statements(self.out, (), ())
        for s in self.kernel.prologue:
            self.once(top, s)
        for s in self.merged:
            self.start(s)
        with self.each_row():
            place = Statements(self.out, self.rows, ())
            for sweep in self.kernel.sweeps:
                for s in sweep.before:
                    self.once_a_row(place, s)
                if sweep.body:
                    self._sweep(sweep)
        self.close()

    def _sweep(self, sweep: Sweep) -> None:
        """The loop over the elements of a row."""
        reductions = [s for s in sweep.body if isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW]
        for s in reductions:
            self.start(s)
        with self.each_element():
            place = Statements(self.out, self.rows, self.columns)
            for statement in sweep.body:
                place.statement(statement)
        for s in reductions:
            self.close_row(s)

    # --- what differs between targets -----------------------------------------------------------------

    def once(self, place: Statements, s: Statement) -> None:
        """Write ``s``, a statement of the whole kernel."""
        place.statement(s)

    def once_a_row(self, place: Statements, s: Statement) -> None:
        place.statement(s)

    def start(self, s: Accumulate) -> None:
        """Set the variables of a reduction to the neutral element."""
        out, dtype = self.out, total_dtype(s)
        for name in out.accumulators(s):
            if s.where is not AccumulatorScope.COLUMN:
                out.dialect(f"{name} = {initial(s.monoid, dtype)}")
                continue
            kind = dtype_name(dtype)
            out.translator.kinds[name] = kind
            value = out.translator.expression(initial(s.monoid, dtype))
            out.line(f"{name} = np.full({out.row_size()}, {value}, {numpy_name(kind)})", s.note)

    @contextmanager
    def each_row(self) -> Iterator[None]:
        """The loops over rows, if there are any."""
        with ExitStack() as loops:
            for k, (row, size) in enumerate(zip(self.rows, self.kernel.outer, strict=True)):
                loops.enter_context(self.out.block(f"for {row} in {'range' if k else self.range}({size}):"))
            yield

    @contextmanager
    def each_element(self) -> Iterator[None]:
        kind = "range" if self.kernel.outer else self.range
        with ExitStack() as loops:
            for column, size in zip(self.columns, self.kernel.inner or ("1",), strict=True):
                loops.enter_context(self.out.block(f"for {column} in {kind}({size}):"))
            yield

    def close_row(self, s: Accumulate) -> None:
        """The result of ``s``, a reduction over a row."""
        if is_float_sum(s):
            self.out.finish(s, self.out.accumulators(s))

    def close(self) -> None:
        """Write what follows the loops: nothing, the epilogue is in the same function."""


class EpilogueText:
    """What follows the loops: totals in the dtype of the result, then numbers, then columns."""

    def __init__(self, out: KernelLines, epilogue: Epilogue) -> None:
        self.out = out
        self.epilogue = epilogue
        inner = out.kernel.inner
        self.columns: tuple[str, ...] = ("j",) if len(inner) == 1 else tuple(f"j{k}" for k in range(len(inner)))

    def of(self, scope: AccumulatorScope) -> list[Accumulate]:
        return [s for s in self.epilogue.merges if s.where is scope]

    def write(self) -> None:
        for s in self.of(AccumulatorScope.BLOCK):
            self.out.finish(s, self.out.accumulators(s))
        top = Statements(self.out, (), ())
        for statement in self.epilogue.scalars:
            top.statement(statement)
        if not self.epilogue.columns:
            return
        with ExitStack() as loops:
            for column, size in zip(self.columns, self.out.kernel.inner, strict=True):
                loops.enter_context(self.out.block(f"for {column} in range({size}):"))
            for s in self.of(AccumulatorScope.COLUMN):
                at = index(dense(s, len(self.columns)), self.columns)
                self.out.finish(s, [f"{name}[{at}]" for name in self.out.accumulators(s)])
            place = Statements(self.out, (), self.columns)
            for statement in self.epilogue.columns:
                place.statement(statement)
