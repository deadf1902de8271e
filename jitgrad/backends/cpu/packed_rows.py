"""The form of kernels for rows that run across memory where only a few of them are neighbours: several groups of neighbours
fill the lanes of vectors.

The rows of ``x.sum(axis=1)`` for ``x[64, 128, 6]`` are neighbours by sixes. One element of each row of ten such groups is
copied to a tile of 60 lanes, over which the statements run; results are copied back.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.backends.codegen.scalar import typed
from jitgrad.backends.codegen.statements import Body, as_stored, index, positions
from jitgrad.backends.cpu.short_rows import Lanes
from jitgrad.backends.cpu.vectorized_rows import LanesInMemory, VectorizedRows
from jitgrad.backends.llvm.tile_sizes import LANES, LEAST_BYTES
from jitgrad.compiler.lowering.kernel_ir import PER_BLOCK, Access, Accumulate, Kernel, Load, Schedule, Store, Sweep

STAGED = 16  # elements of each row that are in tiles at a time


class _PackedLanes(LanesInMemory):
    """Statements of a loop over lanes, all of whose elements are in tiles, but for numbers that are the same in all."""

    def place(self, access: Access) -> tuple[str, str]:
        tile = self.tiles.get(access)
        if access.outer == PER_BLOCK:
            return super().place(access)
        if tile is None:
            return Lanes.place(self, access)
        return tile, f"({self.columns[-1]} - b) * {LANES} + k" if self.columns else "k"


class PackedRows(VectorizedRows):
    """Runs several groups of rows that differ in the last outer axis alone, up to LANES rows in all, through all sweeps.

    For ``x.max(axis=1)`` of three axes in f32::

        def kernel(x0, y0, m1, n, x0_o0, y0_o0, start, stop):
            x0t0 = scratch_f32(1024)
            y0t1 = scratch_f32(64)
            r2t = scratch_f32(64)
            for k in range(1024):
                x0t0[k] = to_f32(0.0)
            t = start
            while t < stop:
                q = t % m1
                p = t // m1
                w = min(64, min(m1 - q, stop - t))    # rows of a group
                g = min(64 // m1, (stop - t) // m1)   # groups
                g = select(w < m1, 1, g)
                m = g * w
                o0 = p
                for k in range(64):
                    r2t[k] = to_f32(-INF)
                for b in range(0, n, 16):
                    e = min(b + 16, n)
                    for j in range(b, e):             # lane i * w + k: row k of group i
                        lanes_in(at(x0t0, (j - b) * 64), at(x0, o0 * x0_o0 + q + j * 6), x0_o0, w, g)
                    for j in range(b, e):
                        for k in range(64):
                            a1 = x0t0[(j - b) * 64 + k]
                            r2t[k] = fmax(a1, r2t[k])
                for k in range(64):
                    r2 = r2t[k]
                    y0t1[k] = r2
                lanes_out(at(y0, o0 * y0_o0 + q), at(y0t1, 0), y0_o0, w, g)
                t = t + m
    """

    count = str(LANES)

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.rows: tuple[str, ...] = (*[f"o{k}" for k in range(len(kernel.outer) - 1)], "q")  # of the first lane
        self.loaded = [access for access in self.loaded if access not in self.wide]
        self.stored = [access for access in self.stored if access not in self.wide]

    def tiled(self, access: Access) -> bool:
        return access.outer != PER_BLOCK

    def place(self, columns: tuple[str, ...]) -> Body:
        return _PackedLanes(self.out, self.rows, columns, self.tiles, self.overwritten)

    def open_block(self) -> None:
        super().open_block()
        filled = dict.fromkeys(s.access for s in self.statements if isinstance(s, Load) and s.access in self.tiles)
        for access in filled:  # lanes without a row hold ordinary numbers
            with self.out.block(f"for k in range({self.tile_size(access)}):"):
                self.out.line(f"{self.tiles[access]}[k] = {as_stored(typed(0, access.dtype), access.dtype)}")

    def tile_size(self, access: Access) -> int:
        return STAGED * LANES if access in self.wide else LANES

    def iterations(self) -> None:
        out, sizes = self.out, self.kernel.outer
        last = sizes[-1]
        out.line("t = start")
        with out.block("while t < stop:"):
            out.line(f"q = t % {last}")
            out.line(f"p = t // {last}")
            out.line(f"w = min({LANES}, min({last} - q, stop - t))", "rows of a group")
            groups = f"min({LANES} // {last}, (stop - t) // {last})"
            if len(sizes) > 2:
                groups = f"min({groups}, {sizes[-2]} - p % {sizes[-2]})"
            out.line(f"g = {groups}", "groups")
            out.line(f"g = select(w < {last}, 1, g)")
            out.line("m = g * w")
            positions(out, "p", sizes[:-1])
            self.tile()
            out.line("t = t + m")

    def fill(self, access: Access) -> None:
        self.copy(access, (), into_tile=True)

    def empty(self, access: Access) -> None:
        self.copy(access, (), into_tile=False)

    def blocks(self, sweep: Sweep, sums: list[Accumulate], size: str) -> None:
        """A loop over blocks of the last inner axis: their elements are staged, used and copied back."""
        with self.out.block(f"for b in range(0, {size}, {STAGED}):"):
            self.out.line(f"e = min(b + {STAGED}, {size})")
            for access in self.of_body(sweep, Load):
                self.copy_block(access, into_tile=True)
            self.open_sums(sums)
            self.elements_of_block(sweep, "range(b, e)")
            self.close_sums(sums)
            for access in self.of_body(sweep, Store):
                self.copy_block(access, into_tile=False)

    def of_body(self, sweep: Sweep, kind: type[Load] | type[Store]) -> list[Access]:
        """The accesses of a sweep's loop that have tiles."""
        found = dict.fromkeys(s.access for s in sweep.body if isinstance(s, kind))
        return [access for access in found if access in self.tiles]

    def copy_block(self, access: Access, *, into_tile: bool) -> None:
        """Copy a block of elements of each row between memory and the lanes."""
        with self.out.block(f"for {self.columns[-1]} in range(b, e):"):
            self.copy(access, self.columns, into_tile=into_tile)

    def copy(self, access: Access, columns: Sequence[str], *, into_tile: bool) -> None:
        """Copy the element of each row between memory and the lanes."""
        tile, name = self.tiles[access], access.name
        inner, first = (index(access.inner, columns), f"({columns[-1]} - b) * {LANES}") if columns else ("", "0")
        step = access.outer[-2]
        if access.outer[-1] == "1" and access.dtype.itemsize >= LEAST_BYTES:
            place = " + ".join(t for t in (index(access.outer, self.rows), inner) if t)
            lanes, memory = f"at({tile}, {first})", f"at({name}, {place})"
            call = f"lanes_in({lanes}, {memory}" if into_tile else f"lanes_out({memory}, {lanes}"
            self.out.line(f"{call}, {step}, w, g)")
            return
        *before, group, row = self.rows
        terms = [index(access.outer, (*before, f"({group} + i)", f"({row} + k)")), inner]
        memory, lane = f"{name}[{' + '.join(t for t in terms if t)}]", f"{tile}[{first} + i * w + k]"
        with self.out.block("for i in range(g):"), self.out.block("for k in range(w):"):
            self.out.line(f"{lane} = {memory}" if into_tile else f"{memory} = {lane}")
