"""Writes a fused kernel for ``numba.cuda.jit``: the same statements as for the CPU, shared by the threads of a grid.

Elements without rows, and rows no longer than a warp, are a thread's each. A longer row is a block's: its threads take
its elements in turn, and combine what they reduce through shared memory. What is reduced over rows is left by each
block in memory of its own, and a second kernel combines these in their order, so that every run gives the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import TypeAlias

from jitgrad.backends.codegen.statements import fold_statement, initial
from jitgrad.backends.cuda.schedule import BLOCK_THREADS, WARP
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Accumulate,
    AccumulatorScope,
    Epilogue,
    KernelParameter,
    Load,
    Statement,
    Store,
    overwritten,
)
from jitgrad.compiler.lowering.loop_nest import Slot
from jitgrad.core.aval import dtype_name
from jitgrad.eject.expressions import numpy_name
from jitgrad.eject.kernel_lines import KernelLines, KernelText, total_dtype
from jitgrad.eject.loops import EpilogueText, Loops, Statements

MOST_BLOCKS = 4096  # threads take further rows or elements in turn
MOST_MERGED_BLOCKS = 512  # of kernels whose blocks leave partial results
_BARRIER = "cuda.syncthreads()"


ScratchArrays: TypeAlias = "dict[str, tuple[int, str]]"
"""Arrays that the driver makes for a kernel: their parameters, numbers of elements and names of dtypes."""


class Share(Enum):
    """What the threads of a grid take in turn."""

    ELEMENTS = "elements"
    ROWS = "rows"
    ROWS_BY_BLOCK = "rows, each by a block"
    NOTHING = "nothing: there is one thread"


@dataclass(frozen=True, slots=True)
class GridText(KernelText):
    """A kernel for ``numba.cuda``.

    Attributes:
        blocks, threads: of its launch, which needs ``scratch``.
        finish: the kernel to launch after it, which combines the partial results of blocks.
    """

    blocks: int
    threads: int
    scratch: ScratchArrays
    finish: GridText | None = None


class GridKernelWriter(KernelLines):
    """Writes the kernel of one group.

    For ``tanh(x) * 0.5`` in f32::

        def kernel(x0, y0, n):
            for i in range(cuda.grid(1), n, cuda.gridsize(1)):
                a1 = x0[i]
                # demo.py:3: return jg.tanh(x) * 0.5
                tanh_2 = tanh_f32(a1)
                multiply_3 = tanh_2 * np.float32(0.5)
                y0[i] = multiply_3
    """

    def write(self) -> GridText:
        loops = GridLoops(self)
        scratch = loops.scratch()
        loops.write()
        main = self.grid_text(scratch, self.sizes(), (loops.blocks, loops.threads))
        if self.kernel.epilogue is None:
            return main
        self.lines: list[str] = []
        finish = FinishText(self, self.kernel.epilogue, loops)
        finish.write()
        return replace(main, finish=self.grid_text(scratch, {**self.sizes(), "blocks": loops.blocks}, finish.launch()))

    def grid_text(self, scratch: ScratchArrays, numbers: dict[str, int], launch: tuple[int, int]) -> GridText:
        """The kernel of all lines, with the parameters that these read."""
        read = {word for line in self.lines for word in _identifiers(line)}
        params = [p for p in self.all_params.values() if self.is_parameter(p.name)]
        params += [KernelParameter(name, f"{kind}*") for name, (_, kind) in scratch.items()]
        text = self.text([p for p in params if p.name in read], {k: n for k, n in numbers.items() if k in read})
        return GridText(text.body, text.params, text.numbers, text.first, *launch, scratch)


class GridLoops(Loops):
    """The loops of a kernel as the threads of a grid share them."""

    def __init__(self, out: KernelLines) -> None:
        super().__init__(out)
        self.range = "range"
        numbers = {**{name: n for name, n in out.args.items() if isinstance(n, int)}, **out.sizes()}
        self.columns_count: int = prod(numbers[name] for name in self.kernel.inner)
        self.rows_count: int = prod(numbers[name] for name in self.kernel.outer)
        self.share: Share = self._share()
        self.loaded: set[str] = {s.access.name for s in (*self.kernel.prologue, *self.statements) if isinstance(s, Load)}

    def _share(self) -> Share:
        kernel = self.kernel
        reduces_rows = any(isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW for s in self.statements)
        if not kernel.outer and not kernel.inner:
            return Share.NOTHING
        if not kernel.outer:
            return Share.ROWS_BY_BLOCK if reduces_rows or self.has_scratch else Share.ELEMENTS
        in_memory = self.has_scratch or any(s.where is AccumulatorScope.COLUMN for s in self.merged)
        return Share.ROWS_BY_BLOCK if in_memory or self.columns_count > WARP else Share.ROWS

    @property
    def threads(self) -> int:
        """Threads of a block: a power of two."""
        if self.share is Share.ROWS_BY_BLOCK:
            return max(WARP, min(BLOCK_THREADS, 1 << max(0, self.columns_count - 1).bit_length()))
        return 1 if self.share is Share.NOTHING else BLOCK_THREADS

    @property
    def blocks(self) -> int:
        most = MOST_MERGED_BLOCKS if self.merged else MOST_BLOCKS
        if self.share is Share.ROWS_BY_BLOCK:
            return max(1, min(most, self.rows_count if self.kernel.outer else 1))
        shared = self.rows_count if self.share is Share.ROWS else self.columns_count
        return max(1, min(most, -(-shared // BLOCK_THREADS)))

    def scratch(self) -> ScratchArrays:
        """The memory that blocks ask for; notes where the part of each of them starts."""
        out, found = self.out, dict[str, tuple[int, str]]()
        names = {s.access.name for s in self.statements if isinstance(s, (Load, Store)) and s.access.outer == PER_BLOCK}
        for p in out.all_params.values():
            arg = out.args[p.name]
            if isinstance(arg, Slot) and arg.scratch and p.name in names:
                found[p.name] = self.blocks * self.columns_count, out.translator.kinds[p.name]
                out.starts[p.name] = "own"
        for s in self.merged:
            kind = _memory_kind(s)
            for name in out.accumulators(s):
                if s.where is AccumulatorScope.COLUMN:
                    found[name] = self.blocks * self.columns_count, kind
                    out.starts[name] = "own"
                else:
                    found[f"{name}s"] = self.blocks, kind
                out.translator.kinds[name] = out.translator.kinds[f"{name}s"] = kind
        return found

    def write(self) -> None:
        if self.out.starts.keys() - self.out.first.keys():
            self.out.line(f"own = cuda.blockIdx.x * {_product(self.kernel.inner)}", "where this block's part starts")
        super().write()

    # --- what the threads share -------------------------------------------------------------------

    def once(self, place: Statements, s: Statement) -> None:
        self._alone("cuda.grid(1) == 0", place, s)

    def once_a_row(self, place: Statements, s: Statement) -> None:
        if self.share is not Share.ROWS_BY_BLOCK:
            place.statement(s)
            return
        if isinstance(s, Store) and s.access.name in self.loaded:
            self.out.line(_BARRIER, "all threads have read what is overwritten")
        self._alone("cuda.threadIdx.x == 0", place, s)

    def _alone(self, leader: str, place: Statements, s: Statement) -> None:
        """Write ``s``, which all threads compute; one of them stores or adds it."""
        if isinstance(s, (Store, Accumulate)) and self.share is not Share.NOTHING:
            with self.out.block(f"if {leader}:"):
                place.statement(s)
        else:
            place.statement(s)

    def start(self, s: Accumulate) -> None:
        if s.where is not AccumulatorScope.COLUMN:
            super().start(s)
            return
        value = self.out.translator.expression(initial(s.monoid, total_dtype(s)))
        columns = " * ".join(self.kernel.inner)
        with self.out.block(f"for j in range(cuda.threadIdx.x, {columns}, cuda.blockDim.x):"):
            for name in self.out.accumulators(s):
                self.out.line(f"{name}[own + j] = {value}")

    @contextmanager
    def each_row(self) -> Iterator[None]:
        if not self.kernel.outer:
            yield
        elif self.share is Share.ROWS_BY_BLOCK:
            with self.in_turn("r", self.rows, self.kernel.outer, "cuda.blockIdx.x", "cuda.gridDim.x"):
                yield
        else:
            with self.in_turn("r", self.rows, self.kernel.outer, "cuda.grid(1)", "cuda.gridsize(1)"):
                yield

    @contextmanager
    def each_element(self) -> Iterator[None]:
        if self.share is Share.ROWS_BY_BLOCK:
            name = "j" if self.kernel.outer else self.columns[0]
            with self.in_turn(name, self.columns, self.kernel.inner, "cuda.threadIdx.x", "cuda.blockDim.x"):
                yield
        elif self.share is Share.ELEMENTS:
            with self.in_turn("i", self.columns, self.kernel.inner, "cuda.grid(1)", "cuda.gridsize(1)"):
                yield
        else:
            with super().each_element():
                yield

    @contextmanager
    def in_turn(self, name: str, axes: Sequence[str], sizes: Sequence[str], first: str, step: str) -> Iterator[None]:
        """A loop over all points of ``axes``, of which every thread or block takes each ``step``-th."""
        with self.out.block(f"for {name} in range({first}, {' * '.join(sizes)}, {step}):"):
            if len(sizes) > 1:
                for k, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
                    after = sizes[k + 1 :]
                    at = f"{name} // {_product(after)}" if after else name
                    self.out.line(f"{axis} = {at}" if k == 0 else f"{axis} = {at} % {size}")
            yield

    def close_row(self, s: Accumulate) -> None:
        if self.share is Share.ROWS_BY_BLOCK:
            self._over_block(s)
        super().close_row(s)

    def _over_block(self, s: Accumulate) -> None:
        """Combine the threads' parts of ``s``; all of them get the whole."""
        names, support, dtype = self.out.accumulators(s), self.out.translator.support, total_dtype(s)
        if len(names) == 2:
            function = support.function("sum_over_block")
        else:
            kind = _memory_kind(s)
            self.out.translator.kinds["shared"] = kind
            fold = fold_statement(s.monoid, dtype, "shared[t]", "shared[t + k]", reorder=False)
            combined = self.out.translator.expression(fold)
            function = support.over_block(s.monoid.name, numpy_name(kind), combined)
        self.out.line(f"{', '.join(names)} = {function}({', '.join(names)})")

    def close(self) -> None:
        """Store the partial results of the block."""
        for s in self.merged:
            if s.where is not AccumulatorScope.COLUMN and self.share is not Share.NOTHING:
                self._over_block(s)
        numbers = [name for s in self.merged if s.where is not AccumulatorScope.COLUMN for name in self.out.accumulators(s)]
        if numbers:
            with self.out.block("if cuda.threadIdx.x == 0:"):
                for name in numbers:
                    self.out.line(f"{name}s[cuda.blockIdx.x] = {name}")


class FinishText(EpilogueText):
    """The kernel that combines the partial results of all blocks, in their order, and computes what reads them."""

    def __init__(self, main: GridKernelWriter, epilogue: Epilogue, loops: GridLoops) -> None:
        super().__init__(main, epilogue)
        self.loops = loops
        self.over: frozenset[str] = overwritten(epilogue.scalars)
        for name in [name for name, start in main.starts.items() if start == "own"]:
            del main.starts[name]  # it reads the parts of all blocks

    def write(self) -> None:
        top = Statements(self.out, (), ())
        for s in self.of(AccumulatorScope.BLOCK):
            self._merge(s, top, "k")
        self._scalars(top)
        if self.epilogue.columns:
            self._columns()

    def launch(self) -> tuple[int, int]:
        """Blocks and threads: one thread where there are no columns."""
        if not self.epilogue.columns:
            return 1, 1
        blocks = 1 if self.over else min(MOST_BLOCKS, -(-self.loops.columns_count // BLOCK_THREADS))
        return max(1, blocks), BLOCK_THREADS

    def _merge(self, s: Accumulate, place: Statements, at: str) -> None:
        """The result of ``s`` from the partial results at ``at`` of every block ``k``."""
        out = self.out
        partial = [name if s.where is AccumulatorScope.COLUMN else f"{name}s" for name in out.accumulators(s)]
        local = [name.removesuffix("s") if s.where is AccumulatorScope.COLUMN else name for name in out.accumulators(s)]
        for name in local:
            out.dialect(f"{name} = {initial(s.monoid, total_dtype(s))}")
        with out.block("for k in range(blocks):"):
            place.fold(s, local, f"{partial[0]}[{at}]")
            if len(local) == 2:
                out.line(f"{local[1]} += {partial[1]}[{at}]")
        out.finish(s, local)

    def _scalars(self, place: Statements) -> None:
        """Numbers, which every thread computes and one stores; what overwrites an operand comes after all have read it."""
        late = [s for s in self.epilogue.scalars if isinstance(s, Store) and s.access.name in self.over]
        for s in [s for s in self.epilogue.scalars if s not in late]:
            self._stored_once(place, s)
        if late and self.epilogue.columns:
            self.out.line(_BARRIER, "all threads have read what is overwritten")
        for s in late:
            self._stored_once(place, s)

    def _stored_once(self, place: Statements, s: Statement) -> None:
        if isinstance(s, Store) and self.epilogue.columns:
            with self.out.block("if cuda.grid(1) == 0:"):
                place.statement(s)
        else:
            place.statement(s)

    def _columns(self) -> None:
        sizes = self.out.kernel.inner
        with self.loops.in_turn("j", self.columns, sizes, "cuda.grid(1)", "cuda.gridsize(1)"):
            place = Statements(self.out, (), self.columns)
            for s in self.of(AccumulatorScope.COLUMN):
                self._merge(s, place, f"k * {_product(sizes)} + j")
            for statement in self.epilogue.columns:
                place.statement(statement)


def _product(sizes: Sequence[str]) -> str:
    """The product of ``sizes`` as a factor of another."""
    text = " * ".join(sizes) or "1"
    return f"({text})" if len(sizes) > 1 else text


def _memory_kind(s: Accumulate) -> str:
    """The name of the dtype of the variables of ``s`` in memory; float16 is computed in float32."""
    kind = dtype_name(total_dtype(s))
    return "f32" if kind == "f16" else kind


def _identifiers(line: str) -> list[str]:
    return re.findall(r"[^\W\d]\w*", line.partition("#")[0])
