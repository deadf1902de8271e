"""CPU source for rows shorter than a vector: a tile of rows is turned, so that the rows are the vector's lanes.

Vectors along a row of ten elements would be mostly remainder. Here every access is copied into a tile in which the
elements ``j`` of ``LANES`` rows lie side by side, the statements run over them, and results are copied back. (Gathers
and scatters do this without tiles, and slower: on current x86 they take several cycles per element.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jitgrad.backends.codegen.scalar import accumulated, cast
from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.codegen.statements import Body, as_value, block_function, fold_statement, index, initial
from jitgrad.backends.llvm.tile_sizes import LANES, LEAST_BYTES, SHORT_ROW
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Compute,
    Kernel,
    Load,
    Statement,
    Store,
    Sweep,
)
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.eager.float16 import compute_dtype


def emit_short_rows(kernel: Kernel) -> Source:
    """Source of the block function of ``kernel``, which has one outer axis and one inner axis of at most ``SHORT_ROW``.

    For ``x.sum(axis=1)`` in f32::

        def kernel(x0, y0, n, start, stop):
            x0t = scratch_f32(2048)
            y0t = scratch_f32(64)
            r1t = scratch_f32(64)
            for t in range(start, stop, 64):
                m = min(64, stop - t)
                transpose_rows_in(x0t, at(x0, t * n), n, n, m)    # x0t[j * 64 + k] = x0[(t + k) * n + j]
                for k in range(64):
                    r1t[k] = to_f32(0.0)
                for j in range(n):
                    for k in range(64):
                        a2 = x0t[j * 64 + k]
                        r1t[k] = r1t[k] + a2
                for k in range(64):
                    r1 = r1t[k]
                    y0t[k] = r1
                for k in range(m):
                    y0[t + k] = y0t[k]
    """
    return Tiles(kernel).emit()


def _reads(s: Statement) -> Iterable[str]:
    """Locals that ``s`` uses."""
    if isinstance(s, Compute):
        return [arg for arg, _ in s.args if isinstance(arg, str)]
    return [s.local] if isinstance(s, (Store, Accumulate)) and isinstance(s.local, str) else []


class Lanes(Body):
    """Statements of a loop over the lanes ``k`` of a tile."""

    def __init__(
        self,
        out: Emitter,
        rows: Sequence[str],
        columns: Sequence[str],
        tiles: dict[Access, str],
        overwritten: Collection[str] = (),
    ) -> None:
        super().__init__(out, rows, columns, False, overwritten)
        self.tiles = tiles

    def place(self, access: Access) -> tuple[str, str]:
        tile = self.tiles.get(access)
        if tile is None:
            return super().place(access)
        return tile, f"{'j * ' + str(LANES) + ' + ' if self.columns else ''}k"

    def accumulate(self, s: Accumulate) -> None:
        dtype = s.result  # also of a float sum: a lane adds few numbers before they go to its f64 total
        value = accumulated(s, dtype)
        if s.where is AccumulatorScope.COLUMN:
            masked = f"select(k < m, {value}, {initial(s.monoid, dtype)})"  # rows after the last one do not count
            self.out.line(f"{s.name}c = {fold_statement(s.monoid, dtype, f'{s.name}c', masked)}", s.note)
            return
        lane = f"{s.name}t[k]"
        self.out.line(f"{lane} = {fold_statement(s.monoid, dtype, as_value(lane, dtype), value, reorder=False)}", s.note)


class Tiles:
    """Writes the block function."""

    rows: tuple[str, ...] = ("(t + k)",)  # the row of lane ``k``
    count = str(LANES)  # of the lanes that loops run over

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.out = Emitter()
        self.size = kernel.inner[0]
        self.statements = [s for sweep in kernel.sweeps for s in (*sweep.before, *sweep.body)]
        self.accumulators = [s for s in self.statements if isinstance(s, Accumulate)]
        self.wide = {s.access for sweep in kernel.sweeps for s in sweep.body if isinstance(s, (Load, Store))}
        self.tiles: dict[Access, str] = {}
        self.loaded: list[Access] = []
        self.stored: list[Access] = []
        for s in self.statements:
            if isinstance(s, (Load, Store)) and set(s.access.outer) - {"0"} and not s.access.index:
                self.see(s)
        self.row_locals = self.find_row_locals()

    def see(self, s: Load | Store) -> None:
        """Note the tile of an access, and whether it must be filled before or emptied after."""
        access = s.access
        if not self.tiled(access):
            return
        first = access not in self.tiles
        if first:
            self.tiles[access] = f"{access.name}t{len(self.tiles)}"
        if access.outer == PER_BLOCK:
            return
        if isinstance(s, Load) and first:
            self.loaded.append(access)
        if isinstance(s, Store) and access not in self.stored:
            self.stored.append(access)

    def tiled(self, access: Access) -> bool:
        """Whether statements work on a copy of what ``access`` shows."""
        return True

    def find_row_locals(self) -> dict[str, Dtype]:
        """Locals of the row that another loop reads, with their dtypes: those need lanes of their own."""
        found: dict[str, Dtype] = {s.name: s.result for s in self.accumulators if s.where is AccumulatorScope.ROW}
        defined: dict[str, Dtype] = {}
        for sweep in self.kernel.sweeps:
            own: dict[str, Dtype] = {}
            for s in sweep.before:
                found.update({name: defined[name] for name in _reads(s) if name in defined})
                if isinstance(s, Load):
                    own[s.local] = s.access.dtype
                elif isinstance(s, Compute):
                    own[s.local] = s.node.out.aval.dtype
            defined.update(own)
            found.update({name: defined[name] for s in sweep.body for name in _reads(s) if name in defined})
        return found

    def emit(self) -> Source:
        kernel, out = self.kernel, self.out
        with block_function(out, kernel):
            self.open_block()
            self.all_tiles()
            for s in self.of(AccumulatorScope.BLOCK):
                out.line(f"{s.partial}[start // block_size] = {s.name}")
        return out.source(kernel.params)

    def all_tiles(self) -> None:
        with self.out.block(f"for t in range(start, stop, {LANES}):"):
            self.out.line(f"m = min({LANES}, stop - t)")
            self.tile()

    def tile(self) -> None:
        for access in self.loaded:
            self.fill(access)
        for s in self.of(AccumulatorScope.BLOCK):
            self.clear(s)
        for sweep in self.kernel.sweeps:
            self.sweep(sweep)
        for s in self.of(AccumulatorScope.BLOCK):
            with self.out.block("for k in range(m):"):
                lane = cast(as_value(f"{s.name}t[k]", s.result), s.result, s.dtype)
                self.out.line(f"{s.name} = {fold_statement(s.monoid, s.dtype, s.name, lane)}")
        for access in self.stored:
            self.empty(access)

    def of(self, where: AccumulatorScope) -> list[Accumulate]:
        return [s for s in self.accumulators if s.where is where]

    def open_block(self) -> None:
        """Tiles and lanes, then the accumulators of the block."""
        for access, tile in self.tiles.items():
            size = LANES * SHORT_ROW if access in self.wide else LANES
            self.out.line(f"{tile} = scratch_{dtype_name(access.dtype)}({size})")
        lanes = {**self.row_locals, **{s.name: s.result for s in self.of(AccumulatorScope.BLOCK)}}
        for name, dtype in lanes.items():
            self.out.line(f"{name}t = scratch_{dtype_name(compute_dtype(dtype))}({LANES})")
        for s in self.of(AccumulatorScope.BLOCK):
            self.out.line(f"{s.name} = {initial(s.monoid, s.dtype)}")
        for s in self.of(AccumulatorScope.COLUMN):
            self.out.line(f"{s.name} = at({s.partial}, start // block_size * {self.size})")
            with self.out.block(f"for j in range({self.size}):"):
                self.out.line(f"{s.name}[j] = {initial(s.monoid, s.dtype)}")

    def clear(self, s: Accumulate) -> None:
        with self.out.block(f"for k in range({self.count}):"):
            self.out.line(f"{s.name}t[k] = {initial(s.monoid, s.result)}")

    def fill(self, access: Access) -> None:
        """Copy a tile in. Lanes without a row repeat the last one: they must hold numbers that are safe to work on."""
        if self.turns(access):
            self.out.line(f"transpose_rows_in({self.tiles[access]}, {self.rows_of(access)})")
        elif access in self.wide:
            with self.out.block(f"for j in range({self.size}):"):
                self.copy_in(access, f"j * {LANES} + ", ("j",))
        else:
            self.copy_in(access, "", ())

    def turns(self, access: Access) -> bool:
        """Whether blocks of the access can be transposed in registers."""
        return access in self.wide and access.inner == ("1",) and access.dtype.itemsize >= LEAST_BYTES

    def rows_of(self, access: Access) -> str:
        """The first row of the tile in memory, the stride of the rows, their length and their number, as arguments."""
        (stride,) = access.outer
        return f"at({access.name}, {index(access.outer, ('t',))}), {stride}, {self.size}, m"

    def copy_in(self, access: Access, place: str, columns: tuple[str, ...]) -> None:
        tile, inner = self.tiles[access], index(access.inner, columns) if columns else ""
        for lanes, row in (("range(m)", "(t + k)"), (f"range(m, {LANES})", "(t + m - 1)")):
            terms = [index(access.outer, (row,)), inner]
            with self.out.block(f"for k in {lanes}:"):
                self.out.line(f"{tile}[{place}k] = {access.name}[{' + '.join(t for t in terms if t)}]")

    def empty(self, access: Access) -> None:
        """Copy a tile's rows out."""
        tile, row = self.tiles[access], index(access.outer, self.rows)
        if self.turns(access):
            place, rest = self.rows_of(access).split("), ")
            self.out.line(f"transpose_rows_out({place}), {tile}, {rest})")
            return
        if access not in self.wide:
            with self.out.block("for k in range(m):"):
                self.out.line(f"{access.name}[{row}] = {tile}[k]")
            return
        inner = index(access.inner, ("j",))
        with self.out.block(f"for j in range({self.size}):"), self.out.block("for k in range(m):"):
            self.out.line(f"{access.name}[{row}{' + ' + inner if inner else ''}] = {tile}[j * {LANES} + k]")

    def sweep(self, sweep: Sweep) -> None:
        """The row's own statements over the lanes, then its elements one after the other, each over the lanes."""
        if sweep.before:
            self.lanes(sweep.before, ())
        for s in sweep.body:
            if isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW:
                self.clear(s)
        if sweep.body:
            self.elements(sweep, f"range({self.size})")

    def elements(self, sweep: Sweep, columns: str) -> None:
        """The loop over ``columns`` of the rows."""
        sums = [s for s in sweep.body if isinstance(s, Accumulate) and s.where is AccumulatorScope.COLUMN]
        with self.out.block(f"for j in {columns}:"):
            for s in sums:
                self.out.line(f"{s.name}c = {initial(s.monoid, s.result)}")
            self.lanes(sweep.body, ("j",))
            for s in sums:
                target, dtype = f"{s.name}[j]", s.result
                total = fold_statement(s.monoid, dtype, as_value(target, dtype), f"{s.name}c", reorder=False)
                self.out.line(f"{target} = {total}", s.note)

    def place(self, columns: tuple[str, ...]) -> Body:
        return Lanes(self.out, self.rows, columns, self.tiles)

    def lanes(self, statements: Sequence[Statement], columns: tuple[str, ...]) -> None:
        place = self.place(columns)
        own = {s.local for s in statements if isinstance(s, (Load, Compute))}
        with self.out.block(f"for k in range({self.count}):"):
            for name in dict.fromkeys(name for s in statements for name in _reads(s)):
                if name in self.row_locals and name not in own:
                    self.out.line(f"{name} = {as_value(f'{name}t[k]', compute_dtype(self.row_locals[name]))}")
            for s in statements:
                place.statement(s)
            for name in self.row_locals:
                if name in own and not columns:
                    self.out.line(f"{name}t[k] = {name}")
