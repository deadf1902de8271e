"""Writes a fused kernel as one numba function: loops over rows and elements, reductions, and what follows them."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.scalar import accumulated, cast, render
from jitgrad.backends.codegen.source import Emitter
from jitgrad.backends.codegen.statements import (
    Body,
    dense,
    fold_statement,
    index,
    initial,
    row_variables,
)
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Compute,
    Epilogue,
    KernelParameter,
    Load,
    Statement,
    Store,
    Sweep,
)
from jitgrad.compiler.lowering.loop_nest import KernelArg, Slot
from jitgrad.compiler.lowering.lower import Lowered
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.core.origin import Origin
from jitgrad.eject.expressions import LineTranslator, numpy_name
from jitgrad.eject.line_wrapping import wrap_line
from jitgrad.eject.support import SupportLibrary
from jitgrad.eject.vector_math import MathLibrary

_NOTE_COLUMN = 60
_SINGLE_BLOCK = frozenset({"block_size", "blocks"})  # parameters of kernels that run in several blocks
_FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True, slots=True)
class KernelText:
    """A kernel as numba source.

    Attributes:
        body: the text after its name: parameters and lines.
        params: the parameters in order; ``kind`` is a dtype name, with ``*`` for an array.
        numbers: the arguments of the parameters that lowering has none for, such as the number of rows.
        first: for arrays that are walked backwards: the parameter with the place of the first element.
    """

    body: str
    params: tuple[KernelParameter, ...]
    numbers: dict[str, int]
    first: dict[str, str]


def source_comment(origin: Origin) -> str:
    """The user's line of ``origin`` with its text, as a comment without ``# ``; "" for an unknown line."""
    if not origin.line:
        return ""
    text = linecache.getline(origin.file, origin.line).strip()
    line = f"{origin}: {text}" if text else str(origin)
    return f"gradient of {line}" if origin.gradient else line


class KernelWriter:
    """Writes the kernel of one group.

    For ``tanh(x) * 0.5`` in f32::

        def kernel(x0, y0, n):
            for i in prange(n):
                a1 = x0[i]
                # demo.py:3: return jg.tanh(x) * 0.5
                tanh_2 = tanh_f32(a1)
                multiply_3 = tanh_2 * np.float32(0.5)
                y0[i] = multiply_3
    """

    def __init__(
        self,
        lowered: Lowered,
        mathematics: MathLibrary,
        support: SupportLibrary,
        user_function: Callable[[str, Callable[..., object]], str],
    ) -> None:
        self.kernel = lowered.kernel
        self.lowered = lowered
        self.args = dict(zip([p.name for p in self.kernel.params], lowered.args, strict=True))
        params = list(self.kernel.params)
        if self.kernel.epilogue is not None:
            self.args |= dict(zip([p.name for p in self.kernel.epilogue.params], lowered.epilogue_args, strict=True))
            params += self.kernel.epilogue.params
        self.all_params = {p.name: p for p in params}
        kinds = {name: _element_kind(p.kind) for name, p in self.all_params.items()}
        users = {name: user_function(name, f) for name, f in user_functions(self.kernel).items()}
        self.translator = LineTranslator(kinds, mathematics, support, users)
        self.lines: list[str] = []
        self.depth = 1
        self.comment = ""
        self.first = {p: f"{p}_first" for p, arg in self.args.items() if self._walks_backwards(p, arg)}

    def _walks_backwards(self, name: str, arg: KernelArg) -> bool:
        steps = [s for p, s in self.args.items() if p.startswith((f"{name}_o", f"{name}_i")) and isinstance(s, int)]
        accesses = [s.access for s in self.kernel.statements if isinstance(s, (Load, Store))]
        steps += [-1 for a in accesses if a.name == name and any(step[0] == "-" for step in a.inner)]
        return isinstance(arg, Slot) and any(step < 0 for step in steps)

    def write(self) -> KernelText:
        kernel, nest = self.kernel, _Nest(self)
        numbers = self._sizes()
        for p in self.all_params.values():  # scratch arrays are local
            arg = self.args[p.name]
            if isinstance(arg, Slot) and arg.scratch and not self._is_partial(p.name):
                size = self.row_size()
                self.line(f"{p.name} = np.empty({size}, {numpy_name(self.translator.kinds[p.name])})", p.note)
        nest.write()
        if kernel.epilogue is not None:
            _EpilogueText(self, kernel.epilogue).write()
        params = [p for p in self.all_params.values() if self._is_parameter(p.name)]
        params += [KernelParameter(name, "i64") for name in (*self.first.values(), *numbers)]
        head = f"({', '.join(p.name for p in params)}):\n"
        return KernelText(head + "\n".join(self.lines or ["    pass"]) + "\n", tuple(params), numbers, self.first)

    def _is_partial(self, name: str) -> bool:
        epilogue = self.kernel.epilogue
        return epilogue is not None and any(m.partial == name for m in epilogue.merges)

    def _is_parameter(self, name: str) -> bool:
        arg = self.args[name]
        return name not in _SINGLE_BLOCK and not (isinstance(arg, Slot) and arg.scratch)

    def _sizes(self) -> dict[str, int]:
        """The sizes of loops for which lowering has no parameter, as targets cut them into blocks."""
        kernel, iterations = self.kernel, self.lowered.schedule.iterations
        if kernel.outer:
            rest = [size for name in kernel.outer[1:] if isinstance(size := self.args[name], int)]
            return {kernel.outer[0]: iterations // max(1, prod(rest))}
        if kernel.inner and kernel.inner[0] not in self.args:
            return {kernel.inner[0]: iterations}
        return {}

    def row_size(self) -> str:
        return "row" if len(self.kernel.inner) > 1 else self.kernel.inner[0] if self.kernel.inner else "1"

    # --- lines ------------------------------------------------------------------------------------

    def line(self, text: str, note: str = "") -> None:
        indented = "    " * self.depth + text
        self.lines += wrap_line(f"{indented:<{_NOTE_COLUMN}}  # {note}" if note else indented)

    def dialect(self, text: str, note: str = "") -> None:
        """Add ``text``, an assignment in the kernel dialect."""
        self.line(self.translator.line(text), note)

    @contextmanager
    def block(self, header: str, note: str = "") -> Iterator[None]:
        self.line(header, note)
        self.depth += 1
        self.comment = ""
        yield
        self.depth -= 1
        self.comment = ""

    def mention(self, origin: Origin) -> None:
        """Add the user's line as a comment, if it is not that of the line before."""
        comment = source_comment(origin)
        if comment and comment != self.comment:
            self.comment = comment
            self.line(f"# {comment}")

    def rename(self, s: Compute | Accumulate) -> None:
        """Call the local of ``s`` by its op: ``tanh_2`` for t2."""
        old = s.local if isinstance(s, Compute) else s.name
        op = s.node.op.name if isinstance(s, Compute) else s.monoid.name
        self.translator.renamed[old] = f"{op if op.isidentifier() else 'op'}_{old[1:]}"

    def accumulator(self, s: Accumulate) -> str:
        """The variable that holds the total of ``s`` while its loops run."""
        self.rename(s)
        name = self.translator.renamed[s.name]
        if s.where is AccumulatorScope.COLUMN:
            return f"{name}_totals"
        return f"{name}_total" if s.where is AccumulatorScope.BLOCK or is_float_sum(s) else name

    def accumulators(self, s: Accumulate) -> list[str]:
        """All variables of ``s``: the total, and for a sum of float64 the rest."""
        total = self.accumulator(s)
        has_rest = is_float_sum(s) and s.result == _FLOAT64
        return [total, total.replace("_total", "_rest", 1)] if has_rest else [total]

    def finish(self, s: Accumulate, at: str = "") -> None:
        """The result of ``s`` in its own dtype; ``at``: the place in arrays of totals."""
        text = " + ".join(f"{name}{at}" for name in self.accumulators(s))
        self.dialect(f"{s.name} = {cast(text, total_dtype(s), s.result)}", s.note)


def is_float_sum(s: Accumulate) -> bool:
    """Whether ``s`` is summed in float64. A sum of float64 also keeps what its additions round off."""
    return s.monoid.in_f64 and s.result.kind == "f"


def total_dtype(s: Accumulate) -> Dtype:
    """The dtype of the total of ``s`` while its loops run."""
    if is_float_sum(s):
        return _FLOAT64
    return s.result if s.where is AccumulatorScope.ROW else s.dtype


class _DialectLines(Emitter):
    """Takes lines of the kernel dialect, and writes them as plain numba."""

    def __init__(self, writer: KernelWriter) -> None:
        super().__init__()
        self._writer = writer

    def line(self, text: str, note: str = "") -> None:
        self._writer.dialect(text, note)


class _Statements(Body):
    """Writes the statements inside given loops."""

    def __init__(self, writer: KernelWriter, rows: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__(_DialectLines(writer), rows, columns, False)
        self.writer = writer

    def place(self, access: Access) -> tuple[str, str]:
        pointer, at = super().place(access)
        if (first := self.writer.first.get(pointer)) is not None:
            at = first if at == "0" else f"{first} + {at}"
        return pointer, at

    def statement(self, s: Statement) -> None:
        if isinstance(s, Compute):
            self.writer.rename(s)
            self.writer.mention(s.node.origin)
            self.out.line(f"{s.local} = {render(s.node, s.args)}")
            return
        super().statement(s)

    def accumulate(self, s: Accumulate) -> None:
        total, dtype = self.writer.accumulator(s), total_dtype(s)
        if s.where is AccumulatorScope.COLUMN:
            total = f"{total}[{index(dense(s, len(self.columns)), self.columns)}]"
        if is_float_sum(s) and s.result == _FLOAT64:
            rest, value = total.replace("_total", "_rest", 1), self.writer.translator.expression(accumulated(s, dtype))
            add = self.writer.translator.support.function("add_with_rest")
            self.writer.line(f"{total}, {rest} = {add}({total}, {rest}, {value})", s.note)
            return
        text = fold_statement(s.monoid, dtype, total, accumulated(s, dtype), reorder=False)
        self.writer.dialect(f"{total} = {text}", s.note)


class _Nest:
    """The loops of a kernel before its epilogue."""

    def __init__(self, writer: KernelWriter) -> None:
        self.writer = writer
        self.kernel = writer.kernel
        self.rows = row_variables(self.kernel.outer) if self.kernel.outer else ()
        inner = self.kernel.inner
        several = tuple(f"j{k}" for k in range(len(inner))) if len(inner) > 1 else ("j",)
        self.columns = several if self.kernel.outer else ("i",)
        statements = [s for sweep in self.kernel.sweeps for s in (*sweep.before, *sweep.body)]
        self.merged = [s for s in statements if isinstance(s, Accumulate) and s.where is not AccumulatorScope.ROW]
        scratch = any(getattr(s, "access", None) is not None and s.access.outer == PER_BLOCK for s in statements)  # type: ignore[union-attr]
        sums = any(isinstance(s, Accumulate) for s in statements) and not self.kernel.outer
        self.range = "range" if self.merged or scratch or sums else "prange"

    def write(self) -> None:
        out = self.writer
        top = _Statements(out, (), ())
        for s in self.kernel.prologue:
            top.statement(s)
        for s in self.merged:
            self._start(s)
        if self.kernel.outer:
            self._rows(0)
            return
        for sweep in self.kernel.sweeps:
            for s in sweep.before:
                top.statement(s)
            if sweep.body:
                self._sweep(sweep, _Statements(out, (), self.columns))

    def _start(self, s: Accumulate) -> None:
        """Set the variables of a reduction to the neutral element."""
        out, dtype = self.writer, total_dtype(s)
        for name in out.accumulators(s):
            if s.where is not AccumulatorScope.COLUMN:
                out.dialect(f"{name} = {initial(s.monoid, dtype)}")
                continue
            kind = dtype_name(dtype)
            out.translator.kinds[name] = kind
            value = out.translator.expression(initial(s.monoid, dtype))
            out.line(f"{name} = np.full({out.row_size()}, {value}, {numpy_name(kind)})", s.note)

    def _rows(self, depth: int) -> None:
        out, sizes = self.writer, self.kernel.outer
        kind = self.range if depth == 0 else "range"
        with out.block(f"for {self.rows[depth]} in {kind}({sizes[depth]}):"):
            if depth + 1 < len(sizes):
                self._rows(depth + 1)
                return
            place = _Statements(out, self.rows, ())
            for sweep in self.kernel.sweeps:
                for s in sweep.before:
                    place.statement(s)
                if sweep.body:
                    self._sweep(sweep, _Statements(out, self.rows, self.columns))

    def _sweep(self, sweep: Sweep, place: _Statements) -> None:
        """The loop over the elements of a row."""
        out = self.writer
        reductions = [s for s in sweep.body if isinstance(s, Accumulate) and s.where is AccumulatorScope.ROW]
        for s in reductions:
            self._start(s)
        self._inner(sweep, place, 0)
        for s in reductions:
            if is_float_sum(s):
                out.finish(s)

    def _inner(self, sweep: Sweep, place: _Statements, depth: int) -> None:
        size = self.kernel.inner[depth] if self.kernel.inner else "1"
        kind = "range" if self.kernel.outer else self.range
        with self.writer.block(f"for {self.columns[depth]} in {kind}({size}):"):
            if depth < len(self.columns) - 1:
                self._inner(sweep, place, depth + 1)
                return
            for s in sweep.body:
                place.statement(s)


class _EpilogueText:
    """What follows the loops: totals in the dtype of the result, then numbers, then columns."""

    def __init__(self, writer: KernelWriter, epilogue: Epilogue) -> None:
        self.writer = writer
        self.epilogue = epilogue
        inner = writer.kernel.inner
        self.columns = ("j",) if len(inner) == 1 else tuple(f"j{k}" for k in range(len(inner)))

    def write(self) -> None:
        out = self.writer
        merges = {scope: [s for s in self.epilogue.merges if s.where is scope] for scope in AccumulatorScope}
        for s in merges[AccumulatorScope.BLOCK]:
            out.finish(s)
        top = _Statements(out, (), ())
        for statement in self.epilogue.scalars:
            top.statement(statement)
        if self.epilogue.columns:
            self._loop(merges[AccumulatorScope.COLUMN], 0)

    def _loop(self, merges: Collection[Accumulate], depth: int) -> None:
        out = self.writer
        with out.block(f"for {self.columns[depth]} in range({out.kernel.inner[depth]}):"):
            if depth + 1 < len(self.columns):
                self._loop(merges, depth + 1)
                return
            place = _Statements(out, (), self.columns)
            for s in merges:
                out.finish(s, f"[{index(dense(s, len(self.columns)), self.columns)}]")
            for statement in self.epilogue.columns:
                place.statement(statement)


def _element_kind(kind: str) -> str:
    """The dtype of a parameter, or of its elements: those of a float16 array are their bits."""
    name = kind.rstrip("*")
    return "u16" if name == "f16" and kind.endswith("*") else "f32" if name == "f16" else name
