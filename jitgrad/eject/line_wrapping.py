"""Breaks long lines of written code within brackets."""

from __future__ import annotations

_WIDTH = 110


def wrap_line(line: str) -> list[str]:
    """``line``, broken after commas within brackets if it is long; a comment behind it moves in front."""
    code, mark, note = line.partition("  # ")
    code = code.rstrip()
    indent = code[: len(code) - len(code.lstrip())]
    if not code or len(line) <= _WIDTH:
        return [line]
    lines = [f"{indent}# {note}"] if mark else []
    current = ""
    for piece in _pieces(code):
        if current.strip() and len(current) + len(piece.rstrip()) > _WIDTH:
            lines.append(current.rstrip())
            current = indent + "    "
            piece = piece.lstrip()
        current += piece
    return [*lines, current.rstrip()]


def _pieces(code: str) -> list[str]:
    """``code`` cut after the commas that are within brackets and outside strings."""
    pieces, depth, quote, start = [], 0, "", 0
    for k, c in enumerate(code):
        if quote:
            quote = "" if c == quote and code[k - 1] != "\\" else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth:
            pieces.append(code[start : k + 1] + " ")
            start = k + 2 if code[k + 1 : k + 2] == " " else k + 1
    return [*pieces, code[start:]]
