"""CPU source of a kernel: a readable Python loop nest over one chunk of rows or elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jitgrad.aval import Dtype, dtype_name
from jitgrad.compiler.codegen.emit import Emitter
from jitgrad.compiler.codegen.scalar import cast, render, typed
from jitgrad.compiler.kernel import Access, Accumulate, Compute, Kernel, Load, Parameter, Statement, Store, Sweep

# Float sums are cut into blocks: each is summed in vector lanes in the values' own dtype, and the blocks in f64.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class Source:
    """Generated text of one function: as shown (with notes), as identified (without), and its parameter kinds."""

    text: str
    identity: str
    params: tuple[str, ...]


def emit_cpu(kernel: Kernel) -> tuple[Source, Source | None]:
    """Source of ``kernel`` and of its finish.

    The function runs units ``start`` to ``stop``: elements of a flat loop, or rows. For ``tanh(x) * 0.5`` in f32::

        def kernel(x0, y0, start, stop):
            for i in range(start, stop):
                a1 = x0[i]                  # f32[8]
                t2 = tanh(a1)               # tanh  demo.py:3
                t3 = (t2 * to_f32(0.5))     # multiply  demo.py:3
                y0[i] = t3                  # f32[8]
    """
    main = _Main(kernel).emit()
    return main, _emit_finish(kernel) if kernel.finish is not None else None


def initial(monoid: str, dtype: Dtype) -> str:
    """The neutral element of ``monoid`` as text."""
    if monoid in ("sum", "any"):
        return typed(0, dtype)
    if monoid in ("prod", "all"):
        return typed(1, dtype)
    low = monoid == "max"
    if dtype.kind == "f":
        return typed(-np.inf if low else np.inf, dtype)
    if dtype.kind == "b":
        return "False" if low else "True"
    info = np.iinfo(dtype)
    return typed(info.min if low else info.max, dtype)


def fold(monoid: str, dtype: Dtype, accumulator: str, value: str, *, reorder: bool = True) -> str:
    """``accumulator`` combined with ``value``; ``reorder`` lets a float sum run in vector lanes."""
    name = dtype_name(dtype)
    if monoid in ("max", "min"):
        return f"f{monoid}({accumulator}, {value})"
    if monoid == "any":
        return f"to_bool({accumulator} | {value})"
    if monoid == "all":
        return f"to_bool({accumulator} & {value})"
    if dtype.kind == "f" and reorder:
        return f"f{monoid}({accumulator}, {value})"
    symbol = "+" if monoid == "sum" else "*"
    text = f"{accumulator} {symbol} {value}"
    return text if dtype.kind == "f" else f"to_{name}({text})"


def index(strides: Sequence[str], variables: Sequence[str]) -> str:
    """The linear element index, ``""`` for zero."""
    if set(strides) <= {"0"}:
        return ""
    terms = [v if s == "1" else f"{v} * {s}" for s, v in zip(strides, variables, strict=True) if s != "0"]
    return " + ".join(terms)


class _Body:
    """Writes statements for one place, given the loop variables there."""

    def __init__(self, out: Emitter, rows: Sequence[str], columns: Sequence[str], row_pointers: bool) -> None:
        self.out = out
        self.rows = rows
        self.columns = columns
        self.row_pointers = row_pointers

    def address(self, access: Access) -> str:
        inner = index(access.inner, self.columns) if self.columns else ""
        if self.row_pointers and (access.outer != () and set(access.outer) != {"0"}) and self.columns:
            return f"{access.name}r[{inner or 0}]"
        outer = index(access.outer, self.rows) if access.outer and access.outer != ("chunk",) else ""
        return f"{access.name}[{' + '.join(t for t in (outer, inner) if t) or 0}]"

    def value(self, access: Access) -> str:
        if access.index:
            terms = [index(access.outer, self.rows) if self.rows else "", index(access.inner, self.columns)]
            return f"to_{dtype_name(access.dtype)}({' + '.join(t for t in terms if t) or 0})"
        text = self.address(access)
        return f"to_bool({text})" if access.dtype.kind == "b" else text

    def statement(self, s: Statement) -> None:
        if isinstance(s, Load):
            self.out.line(f"{s.local} = {self.value(s.access)}", s.note)
        elif isinstance(s, Compute):
            self.out.line(f"{s.local} = {render(s.node, s.args)}", f"{s.node.op}  {s.node.origin}".rstrip())
        elif isinstance(s, Store):
            self.out.line(f"{self.address(s.access)} = {s.local}", s.note)
        else:
            self.accumulate(s)

    def accumulate(self, s: Accumulate) -> None:
        dtype = lane_dtype(s)
        value = cast(s.local, s.local_dtype, dtype)
        if s.where == "column":
            target = f"{s.name}[{index(dense(s, len(self.columns)), self.columns)}]"
            self.out.line(f"{target} = {fold(s.monoid, dtype, target, value, reorder=False)}", s.note)
        elif self.columns:
            name = lane_name(s)
            self.out.line(f"{name} = {fold(s.monoid, dtype, name, value)}", s.note)
        else:
            value = cast(s.local, s.local_dtype, s.dtype)
            self.out.line(f"{s.name} = {fold(s.monoid, s.dtype, s.name, value, reorder=False)}", s.note)


def dense(s: Accumulate, rank: int) -> tuple[str, ...]:
    """Strides of a partial row."""
    return (*(f"w{k}" for k in range(rank - 1)), "1")


def in_blocks(s: Statement) -> bool:
    """Whether ``s`` is a float sum over the inner loop, carried in blocks."""
    return isinstance(s, Accumulate) and s.where != "column" and s.monoid == "sum" and s.result.kind == "f"


def lane_name(s: Accumulate) -> str:
    return f"{s.name}b" if in_blocks(s) else s.name


def lane_dtype(s: Accumulate) -> Dtype:
    return s.result if s.where != "chunk" or in_blocks(s) else s.dtype


class _Main:
    """Writes the chunk function."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.out = Emitter()
        self.rows = tuple(f"o{k}" for k in range(len(kernel.outer))) if len(kernel.outer) > 1 else ("r",)
        if not kernel.outer:
            self.rows = ()
        self.columns = ("i",) if not kernel.outer else tuple(f"j{k}" for k in range(len(kernel.inner)))
        if kernel.outer and len(kernel.inner) == 1:
            self.columns = ("j",)
        statements = [s for sweep in kernel.sweeps for s in (*sweep.before, *sweep.body)]
        self.accumulators = [s for s in statements if isinstance(s, Accumulate)]

    def emit(self) -> Source:
        kernel, out = self.kernel, self.out
        with out.block(f"def kernel({', '.join([*(p.name for p in kernel.params), 'start', 'stop'])}):"):
            top = _Body(out, (), (), False)
            for s in kernel.prologue:
                top.statement(s)
            self.open_chunk()
            if kernel.outer:
                with out.block("for r in range(start, stop):"):
                    self.row()
            elif kernel.inner:
                for sweep in kernel.sweeps:
                    self.loop(sweep, "start", "stop")
            self.close_chunk()
            if not kernel.prologue and not kernel.sweeps:
                out.line("pass")
        return Source(out.source(), out.identity(), tuple(p.kind for p in kernel.params))

    def open_chunk(self) -> None:
        """Accumulators of the chunk."""
        for s in self.accumulators:
            if s.where == "chunk":
                start = initial(s.monoid, s.dtype)
                self.out.line(f"{s.name} = {start}")
            elif s.where == "column":
                row = self.row_size()
                self.out.line(f"{s.name} = at({s.partial}, start // grain * {row})")
                with self.out.block(f"for j in range({row}):"):
                    self.out.line(f"{s.name}[j] = {initial(s.monoid, s.dtype)}")
        for access in self.scratch():
            self.out.line(f"{access.name}r = at({access.name}, start // grain * {self.row_size()})")

    def row_size(self) -> str:
        return self.kernel.inner[0] if len(self.kernel.inner) == 1 else "row"

    def scratch(self) -> list[Access]:
        return [a for a in self.accesses() if a.outer == ("chunk",)]

    def accesses(self) -> list[Access]:
        """Memory that the inner loops walk, each once."""
        found: dict[str, Access] = {}
        for sweep in self.kernel.sweeps:
            for s in sweep.body:
                if isinstance(s, (Load, Store)) and not s.access.index:
                    found.setdefault(s.access.name, s.access)
        return list(found.values())

    def close_chunk(self) -> None:
        for s in self.accumulators:
            if s.where == "chunk":
                self.out.line(f"{s.partial}[start // grain] = {s.name}")

    def row(self) -> None:
        """One row: its place in the outer axes, its pointers, its sweeps."""
        sizes = self.kernel.outer
        if len(sizes) > 1:
            self.out.line("q = r")
            for k in range(len(sizes) - 1, 0, -1):
                self.out.line(f"o{k} = q % {sizes[k]}")
                self.out.line(f"q = q // {sizes[k]}")
            self.out.line("o0 = q")
        for access in self.accesses():
            if access.outer != ("chunk",) and set(access.outer) != {"0"}:
                self.out.line(f"{access.name}r = at({access.name}, {index(access.outer, self.rows)})")
        place = _Body(self.out, self.rows, (), True)
        for sweep in self.kernel.sweeps:
            for s in sweep.before:
                place.statement(s)
            if sweep.body:
                self.loop(sweep, "0", self.kernel.inner[-1] if self.kernel.inner else "1")

    def loop(self, sweep: Sweep, first: str, last: str) -> None:
        """The inner loop of one sweep, with its lanes and blocks."""
        sums = [s for s in sweep.body if isinstance(s, Accumulate) and in_blocks(s)]
        for s in sweep.body:
            if isinstance(s, Accumulate) and s.where == "row":
                wide = np.dtype(np.float64) if in_blocks(s) else s.dtype
                self.out.line(f"{s.name} = {initial(s.monoid, wide)}")
        self.nest(sweep, sums, first, last, 0)
        for s in sums:
            if s.where == "row":
                self.out.line(f"{s.name} = {cast(s.name, np.dtype(np.float64), s.result)}")

    def nest(self, sweep: Sweep, sums: list[Accumulate], first: str, last: str, depth: int) -> None:
        if depth < len(self.columns) - 1:
            with self.out.block(f"for {self.columns[depth]} in range({self.kernel.inner[depth]}):"):
                self.nest(sweep, sums, first, last, depth + 1)
            return
        place = _Body(self.out, self.rows, self.columns, bool(self.kernel.outer))
        if not sums:
            with self.out.block(f"for {self.columns[-1]} in range({'' if first == '0' else first + ', '}{last}):"):
                for s in sweep.body:
                    place.statement(s)
            return
        with self.out.block(f"for b in range({first}, {last}, {BLOCK}):"):
            for s in sums:
                self.out.line(f"{lane_name(s)} = {typed(0, lane_dtype(s))}")
            with self.out.block(f"for {self.columns[-1]} in range(b, min(b + {BLOCK}, {last})):"):
                for s in sweep.body:
                    place.statement(s)
            for s in sums:
                wide = cast(lane_name(s), lane_dtype(s), np.dtype(np.float64))
                self.out.line(f"{s.name} = {s.name} + {wide}")


def _emit_finish(kernel: Kernel) -> Source:
    """The finish: merges each partial result in a fixed order, then runs what reads them."""
    finish = kernel.finish
    assert finish is not None
    out = Emitter()
    params: tuple[Parameter, ...] = finish.params
    columns = tuple(f"j{k}" for k in range(len(kernel.inner))) if len(kernel.inner) > 1 else ("j",)
    with out.block(f"def finish({', '.join([*(p.name for p in params), 'start', 'stop'])}):"):
        for s in finish.merges:
            _emit_merge(out, s, finish.inner)
        top = _Body(out, (), (), False)
        for statement in finish.scalars:
            top.statement(statement)
        if finish.columns:
            place = _Body(out, (), columns, False)
            _emit_columns(out, place, kernel, [s for s in finish.merges if s.where == "column"], finish.columns, 0)
    return Source(out.source(), out.identity(), tuple(p.kind for p in params))


def _emit_merge(out: Emitter, s: Accumulate, row: str) -> None:
    p = s.partial
    if s.where == "chunk":
        out.line("m = chunks", "merge in a fixed tree")
        with out.block("while m > 1:"):
            out.line("h = (m + 1) // 2")
            with out.block("for k in range(m - h):"):
                out.line(f"{p}[k] = {fold(s.monoid, s.dtype, f'{p}[k]', f'{p}[k + h]', reorder=False)}")
            out.line("m = h")
        first = f"to_bool({p}[0])" if s.dtype.kind == "b" else f"{p}[0]"
        out.line(f"{s.name} = {cast(first, s.dtype, s.result)}", s.note)
        return
    with out.block("for k in range(1, chunks):", "merge in a fixed order"), out.block(f"for j in range({row}):"):
        target = f"{p}[j]"
        out.line(f"{target} = {fold(s.monoid, s.dtype, target, f'{p}[k * {row} + j]', reorder=False)}")


def _emit_columns(
    out: Emitter, place: _Body, kernel: Kernel, merges: list[Accumulate], statements: Sequence[Statement], depth: int
) -> None:
    with out.block(f"for {place.columns[depth]} in range({kernel.inner[depth]}):"):
        if depth + 1 < len(place.columns):
            _emit_columns(out, place, kernel, merges, statements, depth + 1)
            return
        for s in merges:
            element = f"{s.partial}[{index(dense(s, len(place.columns)), place.columns)}]"
            out.line(f"{s.name} = {f'to_bool({element})' if s.dtype.kind == 'b' else element}", s.note)
        for statement in statements:
            place.statement(statement)
