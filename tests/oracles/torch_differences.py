"""The list of differences from torch: reads it, and says which failures it covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

LISTED = Path(__file__).with_name("torch_differences.txt")


@dataclass(frozen=True)
class Difference:
    """A line of the list: ops, how they fail, what the message or the call contains, and why that is so."""

    ops: tuple[str, ...]
    how: str
    texts: tuple[str, ...]
    reason: str

    @property
    def general(self) -> bool:
        """Whether the line is about ops that it doesn't name."""
        return any("*" in op for op in self.ops)

    def is_about(self, op: str) -> bool:
        return any(fnmatchcase(op, pattern) for pattern in self.ops)

    def covers(self, failure: Any) -> bool:
        text = f"{failure.message} | {failure.call}"
        return self.is_about(failure.op) and self.how in (failure.how, "compiled") and all(part in text for part in self.texts)


def listed_differences() -> Sequence[Difference]:
    """The lines of the list. Raises ValueError for one that is not in the form that its head describes."""
    lines = [line.strip() for line in LISTED.read_text(encoding="utf-8").splitlines()]
    return [_parsed(line) for line in lines if line and not line.startswith("#")]


def _parsed(line: str) -> Difference:
    parts = [part.strip() for part in line.split(" :: ")]
    if len(parts) != 4 or parts[1] not in ("refuses", "differs", "gradient", "compiled") or not parts[3]:
        raise ValueError(f"{LISTED.name}: {line!r}: expected 'ops :: refuses|differs|gradient|compiled :: texts :: reason'")
    ops, how, texts, reason = parts
    return Difference(tuple(ops.split()), how, tuple(t.strip() for t in texts.split(" & ") if t.strip() != "-"), reason)
