"""Tables for the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 110


def as_text(table: Table) -> str:
    """``table`` as text without colours."""
    out = io.StringIO()
    Console(file=out, width=PLAIN_WIDTH, no_color=True, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def rich_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Columns of text; those with a heading are aligned to the right."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if not heading else "right")
    for row in rows:
        table.add_row(*row)
    return table
