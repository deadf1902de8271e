"""The form of elementwise kernels some of whose operands are transposed in memory: square tiles of
these are copied.

A row of ``x.T`` takes one element from every row of ``x``: each from another line of the cache,
most of which is evicted before the next row needs it. So a tile of such an operand is copied with
its rows as columns, and the loop over the elements of a row finds them as neighbours. The other
operands, and the results, are used in place.
"""

from __future__ import annotations

from jitgrad.backends.codegen.source import Emitter
from jitgrad.backends.codegen.statements import Body, index, row_variables
from jitgrad.backends.cpu.block_writer import BlockWriter
from jitgrad.backends.llvm.tile_sizes import LANES
from jitgrad.compiler.lowering.kernel_ir import Access, Kernel, Load, Schedule, Store, Sweep, overwritten
from jitgrad.core.aval import dtype_name


class _Elements(Body):
    """Statements of a loop over the elements ``j`` of a row of a tile."""

    def __init__(self, out: Emitter, rows: tuple[str, ...], sweep: Sweep, transposed: tuple[str, ...]) -> None:
        super().__init__(out, rows, ("(c + j)",), True, overwritten(sweep.body))
        self.transposed = transposed

    def place(self, access: Access) -> tuple[str, str]:
        if access.name in self.transposed:
            return f"{access.name}t", f"k * {LANES} + j"
        return f"{access.name}r", index(access.inner, ("j",))


class TiledTranspose(BlockWriter):
    """Copies tiles of the operands that the schedule transposes. The kernel reduces nothing and has
    one inner axis.

    For ``x.T + y`` in f32::

        def kernel(x0, x1, y0, n, x0_i0, start, stop):
            x0t = scratch_f32(4096)
            t = start
            while t < stop:
                q = t
                m = min(64, stop - t)
                for c in range(0, n, 64):
                    w = min(64, n - c)
                    transpose_tile(x0t, at(x0, q + c * x0_i0), x0_i0, w, m)  # x0t[k * 64 + j] = x0[q + k + (c + j) * x0_i0]
                    for k in range(m):
                        r = q + k
                        x1r = at(x1, r * n + c)
                        y0r = at(y0, r * n + c)
                        for j in range(w):
                            a1 = x0t[k * 64 + j]
                            a2 = x1r[j]
                            t3 = (a1 + a2)
                            y0r[j] = t3
                t = t + m
    """

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.rows: tuple[str, ...] = row_variables(kernel.outer)
        self.sweep: Sweep
        (self.sweep,) = kernel.sweeps
        used = [s.access for s in self.sweep.body if isinstance(s, (Load, Store)) and not s.access.index]
        accesses = {a.name: a for a in used}
        self.transposed: list[Access] = [a for name, a in accesses.items() if name in schedule.transposed]
        self.others: list[Access] = [a for name, a in accesses.items() if name not in schedule.transposed]

    def open_block(self) -> None:
        for access in self.transposed:
            self.out.line(f"{access.name}t = scratch_{dtype_name(access.dtype)}({LANES * LANES})")

    def iterations(self) -> None:
        with self.groups_of_rows() as first:
            self.tiles_of(first)

    def tiles_of(self, first: tuple[str, ...]) -> None:
        """The tiles of up to LANES rows from ``first`` on, one after the other."""
        out, size = self.out, self.kernel.inner[0]
        with out.block(f"for c in range(0, {size}, {LANES}):"):
            out.line(f"w = min({LANES}, {size} - c)")
            for a in self.transposed:
                place = f"at({a.name}, {index((*a.outer, *a.inner), (*first, 'c'))})"
                out.line(f"transpose_tile({a.name}t, {place}, {a.inner[0]}, w, m)")
            with out.block("for k in range(m):"):
                out.line(f"{self.rows[-1]} = {first[-1]} + k")
                for a in self.others:
                    out.line(f"{a.name}r = at({a.name}, {index((*a.outer, *a.inner), (*self.rows, 'c'))})")
                self.row()

    def row(self) -> None:
        place = Body(self.out, self.rows, (), True)
        for s in self.sweep.before:
            place.statement(s)
        place = _Elements(self.out, self.rows, self.sweep, tuple(a.name for a in self.transposed))
        with self.out.block("for j in range(w):"):
            for s in self.sweep.body:
                place.statement(s)
