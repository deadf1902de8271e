"""The lines of one kernel of an ejected module: its names, sizes and accumulators, and how they are written."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.scalar import cast
from jitgrad.compiler.lowering.kernel_ir import (
    Accumulate,
    AccumulatorScope,
    Compute,
    Kernel,
    KernelParameter,
    Load,
    Store,
)
from jitgrad.compiler.lowering.loop_nest import KernelArg, Slot
from jitgrad.compiler.lowering.lower import Lowered
from jitgrad.core.aval import Dtype
from jitgrad.core.origin import Origin
from jitgrad.eject.expressions import LineTranslator
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


class KernelLines:
    """The text of a kernel so far, and what its loops ask about it."""

    def __init__(
        self,
        lowered: Lowered,
        mathematics: MathLibrary,
        support: SupportLibrary,
        user_function: Callable[[str, Callable[..., object]], str],
    ) -> None:
        self.kernel: Kernel = lowered.kernel
        self.lowered = lowered
        self.args: dict[str, KernelArg] = dict(zip([p.name for p in self.kernel.params], lowered.args, strict=True))
        params = list(self.kernel.params)
        if self.kernel.epilogue is not None:
            self.args |= dict(zip([p.name for p in self.kernel.epilogue.params], lowered.epilogue_args, strict=True))
            params += self.kernel.epilogue.params
        self.all_params: dict[str, KernelParameter] = {p.name: p for p in params}
        kinds = {name: _element_kind(p.kind) for name, p in self.all_params.items()}
        users = {name: user_function(name, f) for name, f in user_functions(self.kernel).items()}
        self.translator: LineTranslator = LineTranslator(kinds, mathematics, support, users)
        self.lines: list[str] = []
        self.depth: int = 1
        self.comment: str = ""
        self.first: dict[str, str] = {p: f"{p}_first" for p, arg in self.args.items() if self._walks_backwards(p, arg)}
        self.starts: dict[str, str] = dict(self.first)  # where each array's elements start, if not at its beginning

    def _walks_backwards(self, name: str, arg: KernelArg) -> bool:
        steps = [s for p, s in self.args.items() if p.startswith((f"{name}_o", f"{name}_i")) and isinstance(s, int)]
        accesses = [s.access for s in self.kernel.statements if isinstance(s, (Load, Store))]
        steps += [-1 for a in accesses if a.name == name and any(step[0] == "-" for step in a.inner)]
        return isinstance(arg, Slot) and any(step < 0 for step in steps)

    def is_partial(self, name: str) -> bool:
        epilogue = self.kernel.epilogue
        return epilogue is not None and any(m.partial == name for m in epilogue.merges)

    def is_parameter(self, name: str) -> bool:
        arg = self.args[name]
        return name not in _SINGLE_BLOCK and not (isinstance(arg, Slot) and arg.scratch)

    def sizes(self) -> dict[str, int]:
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

    def text(self, params: Iterable[KernelParameter], numbers: dict[str, int]) -> KernelText:
        """The kernel of all lines, which takes ``params`` and ``numbers``."""
        params = [*params, *(KernelParameter(name, "i64") for name in (*self.first.values(), *numbers))]
        head = f"({', '.join(p.name for p in params)}):\n"
        return KernelText(head + "\n".join(self.lines or ["    pass"]) + "\n", tuple(params), numbers, self.first)

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

    def finish(self, s: Accumulate, totals: Sequence[str]) -> None:
        """The result of ``s`` in its own dtype, from its variables or elements of them."""
        text = " + ".join(totals)
        self.dialect(f"{s.name} = {cast(text, total_dtype(s), s.result)}", s.note)


def is_float_sum(s: Accumulate) -> bool:
    """Whether ``s`` is summed in float64. A sum of float64 also keeps what its additions round off."""
    return s.monoid.in_f64 and s.result.kind == "f"


def total_dtype(s: Accumulate) -> Dtype:
    """The dtype of the total of ``s`` while its loops run."""
    if is_float_sum(s):
        return _FLOAT64
    return s.result if s.where is AccumulatorScope.ROW else s.dtype


def _element_kind(kind: str) -> str:
    """The dtype of a parameter, or of its elements: those of a float16 array are their bits."""
    name = kind.rstrip("*")
    return "u16" if name == "f16" and kind.endswith("*") else "f32" if name == "f16" else name
