"""The plain form of kernels: a loop over rows with a loop over elements for each sweep, or one loop
over elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jitgrad.backends.codegen.offsets import Part
from jitgrad.backends.codegen.scalar import cast, typed
from jitgrad.backends.codegen.statements import (
    Body,
    in_sum_blocks,
    initial,
    lane_dtype,
    lane_name,
    outer_index,
    outer_inside,
    positions,
    row_variables,
    total_name,
)
from jitgrad.backends.cpu.block_writer import BlockWriter
from jitgrad.backends.llvm.unroll import EDGES
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Kernel,
    Load,
    Schedule,
    Store,
    Sweep,
    overwritten,
)

# Float sums are cut into blocks: each is summed in vector lanes in the values' own dtype, and the
# blocks in f64.
SUM_BLOCK = 256
CACHE_LINE = 64  # bytes
PREFETCH_DISTANCE = 2 * SUM_BLOCK  # elements; four or eight sum blocks are up to a tenth slower


class RowLoops(BlockWriter):
    """AxisRuns rows, or elements of a flat loop, one after the other.

    For ``tanh(x) * 0.5`` in f32::

        def kernel(x0, y0, start, stop):
            for i in range(start, stop):
                a1 = x0[i]                  # f32[8]
                t2 = tanh(a1)               # tanh  demo.py:3
                t3 = (t2 * to_f32(0.5))     # multiply  demo.py:3
                y0[i] = t3                  # f32[8]
    """

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.rows: tuple[str, ...] = row_variables(kernel.outer) if kernel.outer else ()
        self.columns: tuple[str, ...] = ("i",) if not kernel.outer else tuple(f"j{k}" for k in range(len(kernel.inner)))
        if kernel.outer and len(kernel.inner) == 1:
            self.columns = ("j",)
        self.flags: list[str] = []  # variables that are 0 in rows in which an access reads zeros
        accesses: dict[str, Access] = {}
        for sweep in kernel.sweeps:
            for s in sweep.body:
                if isinstance(s, (Load, Store)) and not s.access.index:
                    accesses.setdefault(s.access.name, s.access)
        self.accesses: list[Access] = list(accesses.values())  # of the inner loops, one for each buffer

    def open_block(self) -> None:
        for s in self.accumulators:
            self.start(s)
        for access in self.accesses:
            if access.outer == PER_BLOCK:
                self.out.line(f"{access.name}r = at({access.name}, start // block_size * {self.row_size})")

    def iterations(self) -> None:
        if self.kernel.outer:
            with self.out.block("for r in range(start, stop):"):
                self.row()
        elif self.kernel.inner:
            for sweep in self.kernel.sweeps:
                self.loop(sweep, "start", "stop")

    def row(self) -> None:
        """One row: its position along the outer axes, its pointers, its sweeps."""
        sizes = self.kernel.outer
        if len(sizes) > 1:
            self.out.line("q = r")
            positions(self.out, "q", sizes)
        for access in self.accesses:
            if access.outer != PER_BLOCK and (access.segments or set(access.outer) != {"0"}):
                self.out.line(f"{access.name}r = at({access.name}, {outer_index(access, self.rows) or 0})")
        self.flags = []
        for access in self.accesses:
            if access.segments and (condition := outer_inside(access, self.rows)):
                self.out.line(f"{access.name}z = {condition}")
                self.flags.append(f"{access.name}z")
        place = Body(self.out, self.rows, (), True)
        loops = [sweep for sweep in self.kernel.sweeps if sweep.body]
        late = [sweep for sweep in loops[1:] if any(map(in_sum_blocks, sweep.body))]
        for sweep in self.kernel.sweeps:
            for s in sweep.before:
                place.statement(s)
            if sweep.body:
                ahead = self.next_row(loops[0]) if late and sweep is late[-1] else []
                self.loop(sweep, "0", self.kernel.inner[-1] if self.kernel.inner else "1", ahead)

    def next_row(self, first: Sweep) -> list[Access]:
        """The reads of the ``first`` sweep of the next row, where the elements of a row are
        neighbours."""
        read = {s.access.name: s.access for s in first.body if isinstance(s, Load) and not s.access.index}
        plain = [a for a in read.values() if a.inner == ("1",) and len(a.outer) == 1 and not a.segments]
        return [a for a in plain if a.outer[0] not in ("0", *PER_BLOCK)]

    def loop(self, sweep: Sweep, first: str, last: str, ahead: Sequence[Access] = ()) -> None:
        """The inner loop of one sweep, cut into sum blocks; ``ahead`` is prefetched meanwhile."""
        sums = [s for s in sweep.body if isinstance(s, Accumulate) and in_sum_blocks(s)]
        for s in sweep.body:
            if isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW:
                wide = np.dtype(np.float64) if in_sum_blocks(s) else s.dtype
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
        if not self.kernel.has_edges:
            self.elements(sweep, sums, first, last, ahead)
            return
        place = Body(self.out, self.rows, self.columns, bool(self.kernel.outer), part=Part.EDGES)
        for s in {s.access.name: s for s in sweep.body if isinstance(s, Load) and s.access.segments}.values():
            place.load_single(s.access)
        self.interior_and_edges(sweep, sums, first, last, ahead)

    def interior_and_edges(
        self, sweep: Sweep, sums: list[Accumulate], first: str, last: str, ahead: Sequence[Access]
    ) -> None:
        """The part of a row in which every operand is read in one segment, and what is before and after it, in one loop."""
        if self.kernel.interior is None:
            self.elements(sweep, sums, first, last, ahead, Part.ROW)
            return
        low, high = self.kernel.interior
        if self.flags:
            self.out.line(f"low = select({' * '.join(self.flags)} > 0, {low}, 0)", "a row with zeros is an edge")
            self.out.line(f"high = select({' * '.join(self.flags)} > 0, {high}, 0)")
            low, high = "low", "high"
        if not self.kernel.outer:
            self.out.line(f"low = min(max({first}, {low}), {last})")
            self.out.line(f"high = max(min({last}, {high}), low)")
            low, high = "low", "high"
        self.elements(sweep, sums, low, high, ahead, Part.INTERIOR)
        with self.out.block(f"for {EDGES[0]} in range(2):", "what is before, and what is after"):
            self.out.line(f"begin = select({EDGES[0]} < 1, {first}, {high})")
            self.out.line(f"end = select({EDGES[0]} < 1, {low}, {last})")
            self.elements(sweep, sums, "begin", "end", (), Part.EDGES)

    def body(self, sweep: Sweep, part: Part) -> None:
        """The loop over elements of ``part``, without its head."""
        past, columns = self.schedule.nontemporal, (*self.columns[:-1], self.variable(part))
        place = Body(self.out, self.rows, columns, bool(self.kernel.outer), overwritten(sweep.body), past, part)
        for s in sweep.body:
            place.statement(s)

    def variable(self, part: Part) -> str:
        return EDGES[1] if part in (Part.EDGES, Part.ROW) else self.columns[-1]

    def add_to_totals(self, sums: list[Accumulate]) -> None:
        for s in sums:
            wide = cast(lane_name(s), lane_dtype(s), np.dtype(np.float64))
            self.out.line(f"{total_name(s)} = {total_name(s)} + {wide}")

    def elements(
        self,
        sweep: Sweep,
        sums: list[Accumulate],
        first: str,
        last: str,
        ahead: Sequence[Access],
        part: Part = Part.ANYWHERE,
    ) -> None:
        """The loop over the elements ``first`` to ``last`` of a row, or of everything."""
        if not sums:
            with self.out.block(f"for {self.variable(part)} in range({'' if first == '0' else first + ', '}{last}):"):
                self.body(sweep, part)
            return
        with self.out.block(f"for b in range({first}, {last}, {SUM_BLOCK}):"):
            self.prefetch({a: f"prefetch({a.name}r, {a.outer[0]} + f)" for a in ahead}, last, "of the next row")
            beside = self.read_beside_stores(sweep)
            self.prefetch({a: f"prefetch_beside({a.name}, f + {PREFETCH_DISTANCE})" for a in beside}, last, "two blocks on")
            for s in sums:
                self.out.line(f"{lane_name(s)} = {typed(0, lane_dtype(s))}")
            with self.out.block(f"for {self.variable(part)} in range(b, min(b + {SUM_BLOCK}, {last})):"):
                self.body(sweep, part)
            self.add_to_totals(sums)

    def read_beside_stores(self, sweep: Sweep) -> list[Access]:
        """The reads of a flat loop, element by element, beside its non-temporal stores."""
        if self.kernel.outer or not any(isinstance(s, Store) and s.access.name in self.schedule.nontemporal for s in sweep.body):
            return []
        read = dict.fromkeys(s.access for s in sweep.body if isinstance(s, Load))
        return [a for a in read if a.inner == ("1",) and not a.index and not a.segments]

    def prefetch(self, lines: Mapping[Access, str], last: str, note: str) -> None:
        """Prefetch a sum block of each access: the CPU's own prefetcher stops at the end of a
        page."""
        for size in sorted({a.dtype.itemsize for a in lines}):
            with self.out.block(f"for f in range(b, min(b + {SUM_BLOCK}, {last}), {CACHE_LINE // size}):"):
                for a, line in lines.items():
                    if a.dtype.itemsize == size:
                        self.out.line(line, note)
