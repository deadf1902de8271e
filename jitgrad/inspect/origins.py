"""The user's lines as text."""

from __future__ import annotations

from collections.abc import Iterable

from jitgrad.core.origin import Origin


def lines_text(origins: Iterable[Origin]) -> str:
    """``step.py:3,5 loss.py:7``: every line once, by file."""
    files: dict[str, list[str]] = {}
    for origin in sorted(origins, key=lambda o: o.line):
        if origin.line:
            name, _, line = str(origin).rpartition(":")
            files.setdefault(name, []).append(line)
    return " ".join(f"{name}:{','.join(dict.fromkeys(lines))}" for name, lines in files.items())
