"""The form of kernels for rows shorter than a vector: tiles are transposed, so that rows become
vector lanes.

Vectors along a row of ten elements would be mostly remainder. So every access is copied into a
tile, where the elements ``j`` of LANES rows are neighbours; the statements run over them, and
results are copied back. (Gathers and scatters need no tiles, and are slower: on current x86 they
take several cycles per element.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jitgrad.backends.codegen.scalar import accumulated, cast
from jitgrad.backends.codegen.source import Emitter
from jitgrad.backends.codegen.statements import Body, as_value, dense, fold_statement, index, initial
from jitgrad.backends.cpu.block_writer import BlockWriter
from jitgrad.backends.llvm.tile_sizes import LANES, LEAST_BYTES, SHORT_ROW
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Compute,
    Kernel,
    Load,
    Schedule,
    Statement,
    Store,
    Sweep,
)
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.eager.float16 import compute_dtype


def _reads(s: Statement) -> Iterable[str]:
    """The locals that ``s`` reads."""
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
        dtype = s.result  # also of a float sum: a lane adds few numbers before they go to the f64 total
        value = accumulated(s, dtype)
        if s.where is AccumulatorScope.COLUMN:
            masked = f"select(k < m, {value}, {initial(s.monoid, dtype)})"  # rows after the last one do not count
            self.out.line(f"{s.name}c = {fold_statement(s.monoid, dtype, f'{s.name}c', masked)}", s.note)
            return
        lane = f"{s.name}t[k]"
        self.out.line(f"{lane} = {fold_statement(s.monoid, dtype, as_value(lane, dtype), value, reorder=False)}", s.note)


class ShortRows(BlockWriter):
    """Runs LANES rows at a time, which have one outer axis and one inner axis of at most
    ``SHORT_ROW``.

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

    rows: tuple[str, ...] = ("(t + k)",)  # the row of lane ``k``
    count: str = str(LANES)  # of the lanes that loops run over

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.wide: set[Access] = {s.access for sweep in kernel.sweeps for s in sweep.body if isinstance(s, (Load, Store))}
        inner = kernel.inner
        self.columns: tuple[str, ...] = ("j",) if len(inner) < 2 else tuple(f"j{k}" for k in range(len(inner)))
        self.tiles: dict[Access, str] = {}
        self.loaded: list[Access] = []
        self.stored: list[Access] = []
        for s in self.statements:
            if isinstance(s, (Load, Store)) and set(s.access.outer) - {"0"} and not s.access.index:
                self.add_tile(s)
        self.row_locals: dict[str, Dtype] = self.find_row_locals()

    def add_tile(self, s: Load | Store) -> None:
        """Give an access a tile, and note whether it is filled before and emptied after."""
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
        """Whether statements work on a tile, not on the memory of ``access``."""
        return True

    def find_row_locals(self) -> dict[str, Dtype]:
        """The locals of a row that another loop reads, with their dtypes: they need an array, one
        element for each lane."""
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

    def iterations(self) -> None:
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

    def open_block(self) -> None:
        """Tiles and arrays of lanes, then the accumulators of the block."""
        for access, tile in self.tiles.items():
            self.out.line(f"{tile} = scratch_{dtype_name(access.dtype)}({self.tile_size(access)})")
        lanes = {**self.row_locals, **{s.name: s.result for s in self.of(AccumulatorScope.BLOCK)}}
        for name, dtype in lanes.items():
            self.out.line(f"{name}t = scratch_{dtype_name(compute_dtype(dtype))}({LANES})")
        for s in (*self.of(AccumulatorScope.BLOCK), *self.of(AccumulatorScope.COLUMN)):
            self.start(s)

    def tile_size(self, access: Access) -> int:
        """How many elements the tile of ``access`` has."""
        return LANES * SHORT_ROW if access in self.wide else LANES

    def clear(self, s: Accumulate) -> None:
        with self.out.block(f"for k in range({self.count}):"):
            self.out.line(f"{s.name}t[k] = {initial(s.monoid, s.result)}")

    def fill(self, access: Access) -> None:
        """Fill a tile. Lanes without a row repeat the last row, so that they hold ordinary
        numbers."""
        if self.transposes(access):
            self.out.line(f"transpose_rows_in({self.tiles[access]}, {self.rows_of(access)})")
        elif access in self.wide:
            with self.out.block(f"for j in range({self.row_size}):"):
                self.copy_in(access, f"j * {LANES} + ", ("j",))
        else:
            self.copy_in(access, "", ())

    def transposes(self, access: Access) -> bool:
        """Whether blocks of the access can be transposed in registers."""
        return access in self.wide and access.inner == ("1",) and access.dtype.itemsize >= LEAST_BYTES

    def rows_of(self, access: Access) -> str:
        """As arguments: the first row of the tile in memory, the stride, length and number of the
        rows."""
        (stride,) = access.outer
        return f"at({access.name}, {index(access.outer, ('t',))}), {stride}, {self.row_size}, m"

    def copy_in(self, access: Access, place: str, columns: tuple[str, ...]) -> None:
        tile, inner = self.tiles[access], index(access.inner, columns) if columns else ""
        for lanes, row in (("range(m)", "(t + k)"), (f"range(m, {LANES})", "(t + m - 1)")):
            terms = [index(access.outer, (row,)), inner]
            with self.out.block(f"for k in {lanes}:"):
                self.out.line(f"{tile}[{place}k] = {access.name}[{' + '.join(t for t in terms if t)}]")

    def empty(self, access: Access) -> None:
        """Copy a tile to memory."""
        tile, row = self.tiles[access], index(access.outer, self.rows)
        if self.transposes(access):
            place, rest = self.rows_of(access).split("), ")
            self.out.line(f"transpose_rows_out({place}), {tile}, {rest})")
            return
        if access not in self.wide:
            with self.out.block("for k in range(m):"):
                self.out.line(f"{access.name}[{row}] = {tile}[k]")
            return
        inner = index(access.inner, ("j",))
        with self.out.block(f"for j in range({self.row_size}):"), self.out.block("for k in range(m):"):
            self.out.line(f"{access.name}[{row}{' + ' + inner if inner else ''}] = {tile}[j * {LANES} + k]")

    def sweep(self, sweep: Sweep) -> None:
        """The row's own statements over the lanes, then each element over the lanes."""
        if sweep.before:
            self.lanes(sweep.before, ())
        for s in sweep.body:
            if isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW:
                self.clear(s)
        if sweep.body:
            self.elements(sweep, f"range({self.row_size})")

    def elements(self, sweep: Sweep, columns: str) -> None:
        """The loop over ``columns`` of the rows, the positions along the last inner axis."""
        sums = [s for s in sweep.body if isinstance(s, Accumulate) and s.where is AccumulatorScope.COLUMN]
        with self.out.block(f"for {self.columns[-1]} in {columns}:"):
            for s in sums:
                self.out.line(f"{s.name}c = {initial(s.monoid, s.result)}")
            self.lanes(sweep.body, self.columns)
            for s in sums:
                target, dtype = f"{s.name}[{index(dense(s, len(self.columns)), self.columns)}]", s.result
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
