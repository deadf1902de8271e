"""Lines of generated source with aligned notes; the notes are not part of the program's identity."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from jitgrad.errors import CodegenError

_NOTE_COLUMN = 56


class Emitter:
    """Collects indented lines."""

    def __init__(self) -> None:
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

    def source(self) -> str:
        """The text with notes. Raises CodegenError if it does not parse."""
        text = "\n".join(f"{line:<{_NOTE_COLUMN}}  # {note}" if note else line for line, note in self._lines) + "\n"
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise CodegenError(f"generated source does not parse: {error}\n{text}") from None
        return text

    def identity(self) -> str:
        """The text without notes: equal for structurally equal programs."""
        return "\n".join(line for line, _ in self._lines) + "\n"
