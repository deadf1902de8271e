"""The form of kernels for rows that run across memory: elements of neighbouring rows are the lanes
of vectors.

A reduction of a middle axis is such a kernel: the softmax over the channels of images, with the
pixels as rows. Up to LANES rows go through all sweeps together; their elements are read and written
in place.
"""

from __future__ import annotations

import numpy as np

from jitgrad.backends.codegen.scalar import accumulated, cast, typed
from jitgrad.backends.codegen.statements import (
    Body,
    fold_statement,
    in_sum_blocks,
    index,
    lane_dtype,
    row_variables,
)
from jitgrad.backends.cpu.short_rows import Lanes, ShortRows
from jitgrad.backends.llvm.tile_sizes import LANES
from jitgrad.compiler.lowering.kernel_ir import PER_BLOCK, Access, Accumulate, Kernel, Schedule, Sweep, overwritten
from jitgrad.core.aval import dtype_name

# Numbers that a lane adds in their own dtype before the sum goes to its float64 total.
LANE_BLOCK = 32


class LanesInMemory(Lanes):
    """Statements of a loop over the lanes, whose elements are in memory."""

    def place(self, access: Access) -> tuple[str, str]:
        if access.outer == PER_BLOCK:
            return f"{access.name}r", f"({index(access.inner, self.columns)}) * {LANES} + k"
        if not self.columns or access in self.tiles or set(access.outer) <= {"0"}:
            return super().place(access)
        inner, lane = index(access.inner, self.columns), index(access.outer[-1:], ("k",))
        return f"{access.name}r", f"{inner}{' + ' + lane if lane else ''}"

    def accumulate(self, s: Accumulate) -> None:
        if not in_sum_blocks(s) or not self.columns:  # the row's own numbers: one for each lane
            super().accumulate(s)
            return
        lane, dtype = f"{s.name}b[k]", lane_dtype(s)
        value = fold_statement(s.monoid, dtype, lane, accumulated(s, dtype), reorder=False)
        self.out.line(f"{lane} = {value}", s.note)


class VectorizedRows(ShortRows):
    """Runs up to LANES neighbouring rows at a time, and reads and writes their elements in memory.

    For ``x.max(axis=1)`` of three axes in f32::

        def kernel(x0, y0, m1, n, x0_o0, x0_i0, start, stop):
            y0t0 = scratch_f32(64)
            r2t = scratch_f32(64)
            t = start
            while t < stop:
                q = t % m1
                m = min(64, min(stop - t, m1 - q))    # rows that differ in the last outer axis alone
                p = t // m1
                o0 = p
                x0r = at(x0, o0 * x0_o0 + q)
                for k in range(m):
                    r2t[k] = to_f32(-INF)
                for j in range(n):
                    for k in range(m):
                        a1 = x0r[j * x0_i0 + k]
                        r2t[k] = fmax(a1, r2t[k])
                for k in range(m):
                    r2 = r2t[k]
                    y0t0[k] = r2
                for k in range(m):
                    y0[o0 * m1 + (q + k)] = y0t0[k]
                t = t + m
    """

    count = "m"

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.rows: tuple[str, ...] = (*row_variables(kernel.outer)[:-1], "(q + k)")
        self.overwritten: frozenset[str] = overwritten(s for sweep in kernel.sweeps for s in sweep.body)

    def tiled(self, access: Access) -> bool:
        return access not in self.wide

    def address_scratch(self) -> None:
        """Point to the block's part of the scratch that sweeps leave values in."""
        for name in sorted({access.name for access in self.wide if access.outer == PER_BLOCK}):
            self.out.line(f"{name}r = at({name}, start // block_size * {self.row_size} * {LANES})")

    def place(self, columns: tuple[str, ...]) -> Body:
        return LanesInMemory(self.out, self.rows, columns, self.tiles, self.overwritten)

    def open_block(self) -> None:
        super().open_block()
        self.address_scratch()
        for s in filter(in_sum_blocks, self.accumulators):
            self.out.line(f"{s.name}b = scratch_{dtype_name(lane_dtype(s))}({LANES})")
            self.out.line(f"{s.name}w = scratch_f64({LANES})")

    def iterations(self) -> None:
        with self.groups_of_rows() as first:
            accesses = {a.name: a for a in self.wide if not a.index and a.outer != PER_BLOCK and not set(a.outer) <= {"0"}}
            for name, a in sorted(accesses.items()):
                self.out.line(f"{name}r = at({name}, {index(a.outer, first)})")
            self.tile()

    def fill(self, access: Access) -> None:
        with self.out.block("for k in range(m):"):
            self.out.line(f"{self.tiles[access]}[k] = {access.name}[{index(access.outer, self.rows)}]")

    def elements(self, sweep: Sweep, columns: str) -> None:
        sums = [s for s in sweep.body if isinstance(s, Accumulate) and in_sum_blocks(s)]
        for s in sums:
            self.over_lanes(f"{s.name}w[k] = {typed(0, np.dtype(np.float64))}")
        self.nest(sweep, sums, 0)
        for s in sums:
            self.over_lanes(f"{s.name}t[k] = {cast(f'{s.name}w[k]', np.dtype(np.float64), s.result)}")

    def over_lanes(self, *lines: str) -> None:
        """A loop over the lanes."""
        with self.out.block(f"for k in range({self.count}):"):
            for line in lines:
                self.out.line(line)

    def nest(self, sweep: Sweep, sums: list[Accumulate], depth: int) -> None:
        """The loops over the inner axes from ``depth`` on."""
        size = self.kernel.inner[depth]
        if depth < len(self.kernel.inner) - 1:
            with self.out.block(f"for {self.columns[depth]} in range({size}):"):
                self.nest(sweep, sums, depth + 1)
        else:
            self.blocks(sweep, sums, size)

    def blocks(self, sweep: Sweep, sums: list[Accumulate], size: str) -> None:
        """The loop over the last inner axis, in sum blocks if there are sums."""
        if not sums:
            self.elements_of_block(sweep, f"range({size})")
            return
        with self.out.block(f"for b in range(0, {size}, {LANE_BLOCK}):"):
            self.open_sums(sums)
            self.elements_of_block(sweep, f"range(b, min(b + {LANE_BLOCK}, {size}))")
            self.close_sums(sums)

    def elements_of_block(self, sweep: Sweep, columns: str) -> None:
        super().elements(sweep, columns)

    def open_sums(self, sums: list[Accumulate]) -> None:
        """Begin a sum block."""
        if sums:
            self.over_lanes(*[f"{s.name}b[k] = {typed(0, lane_dtype(s))}" for s in sums])

    def close_sums(self, sums: list[Accumulate]) -> None:
        """Add a sum block to the totals."""
        wide = [(s.name, cast(f"{s.name}b[k]", lane_dtype(s), np.dtype(np.float64))) for s in sums]
        if wide:
            self.over_lanes(*[f"{name}w[k] = {name}w[k] + {text}" for name, text in wide])
