"""Lines of generated source with aligned notes, and the same function with its numbers as
parameters.

The user's float literals come in marks (`marked`). From one emission follow two texts: one with the
numbers written out, which is fast and readable, and a general one in which each number is a
parameter, for kernels that come again with other numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

import numpy as np

from jitgrad.compiler.lowering.kernel_ir import KernelParameter
from jitgrad.core.errors import CodegenError

_NOTE_COLUMN = 56
# ⟨operand:to_f32(0.1)⟩. Python has no such brackets, so text with an unresolved mark does not
# parse.
_MARK = re.compile(r"⟨(\w*):(to_(f\d+)\(([^)]*)\))⟩")


@dataclass(frozen=True, slots=True)
class Source:
    """Generated text of one function: as shown (with notes), as identified (without), and its
    parameter kinds.

    Attributes:
        general: the same function with the user's float literals as parameters, after its own; None
            if it has none.
        args: of a general function, the arguments for those parameters.
        row_vectors: of its loops over rows, as the schedule says.
    """

    text: str
    identity: str
    params: tuple[str, ...]
    general: Source | None = None
    args: tuple[int, ...] = ()
    row_vectors: int | None = None

    @property
    def generalised(self) -> Source:
        """The general form; of a function without literals the function itself."""
        return self.general or self

    def with_row_vectors(self, count: int | None) -> Source:
        """The same text and its general form, with ``count`` as its `row_vectors`."""
        general = self.general and self.general.with_row_vectors(count)
        return replace(self, general=general, row_vectors=count)


def marked(text: str, operand: str) -> str:
    """The typed float literal ``text`` (``to_f32(0.1)``) marked as a number from the user's code,
    for ``operand`` of an op."""
    return f"⟨{operand}:{text}⟩"


def unmarked(line: str) -> str:
    """``line`` with the numbers of its marks written out."""
    return _MARK.sub(r"\2", line)


class Emitter:
    """Collects the indented lines of one function, the first of which is ``def name(..., start,
    stop):``.

    Args:
        last: the parameters that every function of the target ends with.
    """

    def __init__(self, last: str = "start, stop") -> None:
        self._last = f"{last}):"
        self._lines: list[tuple[str, str]] = []
        self._depth = 0

    def line(self, text: str, note: str = "") -> None:
        self._lines.append(("    " * self._depth + text, note))

    @contextmanager
    def block(self, header: str, note: str = "") -> Iterator[None]:
        self.line(header, note)
        self._depth += 1
        yield
        self._depth -= 1

    def source(self, params: Sequence[KernelParameter]) -> Source:
        """The function of ``params`` whose lines are complete. Raises CodegenError if it does not
        parse."""
        lines = [(unmarked(line), note) if "⟨" in line else (line, note) for line, note in self._lines]
        general, identity = self._general(params), _identity(lines)
        _check(identity if general is None else general.identity)
        return Source(_shown(lines), identity, tuple([p.kind for p in params]), general)

    def _general(self, params: Sequence[KernelParameter]) -> Source | None:
        numbers = _Numbers({p.name for p in params})
        (header, note), *body = [numbers.named(line, note) for line, note in self._lines]
        if not numbers.names:
            return None
        header = header.removesuffix(self._last) + f"{', '.join(numbers.names)}, {self._last}"
        lines = [(header, note), *body]
        kinds = (*(p.kind for p in params), *numbers.kinds)
        return Source(_shown(lines), _identity(lines), kinds, args=tuple(numbers.args))


@lru_cache(maxsize=256)
def _check(source: str) -> None:
    """Raise CodegenError if ``source`` does not parse. Sources that differ in numbers alone are
    one, in general form."""
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise CodegenError(f"generated source does not parse: {error}\n{source}") from None


class _Numbers:
    """Gives marked literals names. One operand is one name; equal numbers elsewhere may differ in
    the next kernel."""

    def __init__(self, taken: set[str]) -> None:
        self._free = (name for name in (f"c{k}" for k in count()) if name not in taken)
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.args: list[int] = []

    def named(self, line: str, note: str) -> tuple[str, str]:
        """``line`` with names for its marks, and the note with their values."""
        operands: dict[str, str] = {}
        values: list[str] = []

        if "⟨" not in line:
            return line, note

        def name_of(match: re.Match[str]) -> str:
            operand, _, kind, number = match.groups()
            if operand not in operands:
                operands[operand] = next(self._free)
                self.names.append(operands[operand])
                self.kinds.append(kind)
                self.args.append(_bits(float(number), kind))
                values.append(f"{operands[operand]} = {float(number)!r}")
            return operands[operand]

        return _MARK.sub(name_of, line), "  ".join([*([note] if note else []), *values])


def _bits(value: float, kind: str) -> int:
    """The bit pattern of ``value`` in the float dtype ``kind``, as an entry of an argument
    table."""
    size = int(kind[1:]) // 8
    with np.errstate(over="ignore"):  # numbers beyond the largest f32 become infinity, as in a literal
        return int(np.array(value, np.float64).astype(f"f{size}").view(f"i{size}"))


def _shown(lines: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{line:<{_NOTE_COLUMN}}  # {note}" if note else line for line, note in lines) + "\n"


def _identity(lines: Iterable[tuple[str, str]]) -> str:
    """The text without notes: equal for structurally equal programs."""
    return "\n".join(line for line, _ in lines) + "\n"
