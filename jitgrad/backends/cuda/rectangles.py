"""The forms of kernels with rows that reduce nothing: blocks take rectangles of rows and columns."""

from __future__ import annotations

from jitgrad.backends.codegen.statements import Body, index, outer_index, row_variables
from jitgrad.backends.cuda.element_loops import ElementWriter
from jitgrad.backends.cuda.grid_writer import LAST, GridWriter
from jitgrad.backends.cuda.schedule import TILE, CudaSchedule
from jitgrad.compiler.lowering.kernel_ir import Access, Kernel, Sweep
from jitgrad.core.aval import dtype_name


class Rectangles(ElementWriter):
    """Rows and columns: a thread takes a vector of one row.

    For ``x + b`` in f32, with a bias for each of 1,000 columns::

        def kernel(x0, x1, y0, n, iterations):
            threads(256)
            ...
            tiles = max((n + 1023) // 1024, 1)
            r = block() // tiles
            j = block() % tiles * 1024 + thread() * 4
            if r < iterations and j < n:
                x0r = at(x0, r * n)
                y0r = at(y0, r * n)
                whole = is_aligned(x0r, 16) and is_aligned(x1, 16) and is_aligned(y0r, 16)
                ...
    """

    def grid(self) -> None:
        out, schedule = self.out, self.schedule
        self.open_vectors()
        width = schedule.team * self.vector
        out.line(f"tiles = max(({self.row_size} + {width - 1}) // {width}, 1)")
        lane = "thread()" if schedule.teams == 1 else f"thread() % {schedule.team}"
        row = "block() // tiles"
        if schedule.teams > 1:
            row = f"{row} * {schedule.teams} + thread() // {schedule.team}"
        out.line(f"r = {row}")
        out.line(f"j = block() % tiles * {width} + {lane}{f' * {self.vector}' if self.vector > 1 else ''}")
        with out.block(f"if r < {LAST} and j < {self.row_size}:"):
            self.row_position()
            self.check_alignment()
            for sweep in self.kernel.sweeps:
                self.row_statements(sweep.before, "if j == 0:")
                self.elements(sweep.body)


class _TileElements(Body):
    """Statements of the element of row ``k`` of a tile that the thread has."""

    def __init__(self, writer: TiledTranspose) -> None:
        super().__init__(writer.out, writer.rows, ("j",), True)
        self.transposed = writer.schedule.transposed

    def place(self, access: Access) -> tuple[str, str]:
        if access.name in self.transposed:
            return f"{access.name}h", f"thread() % {TILE} * {TILE + 1} + k"
        return super().place(access)


class TiledTranspose(GridWriter):
    """Squares of rows and columns; those of transposed operands go through shared memory.

    A warp reads 32 neighbours in memory, which are a column of the tile, and later a row of the
    tile. The rows of a tile have 33 places, so that both are in different banks. For ``x.T + y`` in
    f32::

        def kernel(x0, x1, y0, n, x0_i0, iterations):
            threads(256)
            x0h = shared_f32(1056)
            across = (n + 31) // 32
            down = (iterations + 31) // 32
            c = block() % across * 32
            t = block() // across % down * 32
            for k in range(thread() // 32, 32, 8):
                r = t + thread() % 32
                if r < iterations and c + k < n:
                    x0h[k * 33 + thread() % 32] = x0[r + (c + k) * x0_i0]
            barrier()
            for k in range(thread() // 32, 32, 8):
                r = t + k
                j = c + thread() % 32
                if r < iterations and j < n:
                    a1 = x0h[thread() % 32 * 33 + k]
                    a2 = x1r[j]
                    ...
    """

    def __init__(self, kernel: Kernel, schedule: CudaSchedule) -> None:
        super().__init__(kernel, schedule)
        self.sweep: Sweep
        (self.sweep,) = kernel.sweeps
        self.transposed: list[Access] = [a for a in self.accesses if a.name in schedule.transposed]
        self.rows: tuple[str, ...] = (*row_variables(kernel.outer)[:-1], "r")
        self.length: str = LAST if len(kernel.outer) == 1 else kernel.outer[-1]

    def grid(self) -> None:
        out, schedule, (n,) = self.out, self.schedule, self.kernel.inner
        for a in self.transposed:
            out.line(f"{a.name}h = shared_{dtype_name(a.dtype)}({TILE * (TILE + 1)})")
        out.line(f"across = max(({n} + {TILE - 1}) // {TILE}, 1)")
        out.line(f"down = max(({self.length} + {TILE - 1}) // {TILE}, 1)")
        out.line(f"c = block() % across * {TILE}")
        out.line(f"t = block() // across % down * {TILE}")
        if len(self.kernel.outer) > 1:
            self.outer_position()
        loop = f"for k in range(thread() // {TILE}, {TILE}, {schedule.threads // TILE}):"
        with out.block(loop):
            out.line(f"r = t + thread() % {TILE}")
            with out.block(f"if r < {self.length} and c + k < {n}:"):
                for a in self.transposed:
                    place = index((*a.outer, *a.inner), (*self.rows, "(c + k)"))
                    out.line(f"{a.name}h[k * {TILE + 1} + thread() % {TILE}] = {a.name}[{place}]")
        out.line("barrier()")
        with out.block(loop):
            out.line("r = t + k")
            out.line(f"j = c + thread() % {TILE}")
            with out.block(f"if r < {self.length} and j < {n}:"):
                self.row()

    def outer_position(self) -> None:
        """Write the position of the square along the outer axes but the last."""
        *names, _ = self.rows
        self.out.line("q = block() // across // down")
        for k in range(len(names) - 1, 0, -1):
            self.out.line(f"{names[k]} = q % {self.kernel.outer[k]}")
            self.out.line(f"q = q // {self.kernel.outer[k]}")
        self.out.line(f"{names[0]} = q")

    def row(self) -> None:
        for a in self.accesses:
            if a not in self.transposed and self.has_row_pointer(a):
                self.out.line(f"{a.name}r = at({a.name}, {outer_index(a, self.rows) or 0})")
        self.row_statements(self.sweep.before, "if j == 0:")
        place = _TileElements(self)
        for s in self.sweep.body:
            place.statement(s)
