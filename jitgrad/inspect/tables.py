"""Tables for the terminal."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from rich.table import Table

from jitgrad.inspect.compare import Comparison
from jitgrad.inspect.timing import Timing
from jitgrad.inspect.traffic import readable_bytes

PLAIN_WIDTH = 110


def plain(table: Any) -> str:
    """``table`` as text without colours."""
    out = io.StringIO()
    Console(file=out, width=PLAIN_WIDTH, no_color=True, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def readable_seconds(seconds: float) -> str:
    """``1.23 ms``, ``45.6 us``."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _timing(t: Timing) -> str:
    return f"{readable_seconds(t.median)}  ({readable_seconds(t.low)} .. {readable_seconds(t.high)})"


def comparison_table(c: Comparison) -> Table:
    """Eager and fused side by side."""
    verdict = "agrees with eager" if c.agrees else "DISAGREES with eager"
    what = "forward + backward" if c.backward else "one call"
    table = Table(title=f"{c.name} ({what}): {c.speedup:.2f}x, {verdict}", title_justify="left")
    for heading in ("", "eager", "fused"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("time, median (10% .. 90%)", _timing(c.eager), _timing(c.fused))
    table.add_row("first call", "", readable_seconds(c.first_call))
    kernels = "1 kernel" if c.kernels == 1 else f"{c.kernels} kernels"
    table.add_row("ops or launches", str(c.eager_ops), f"{c.launches} ({kernels})")
    table.add_row("bytes moved at least", readable_bytes(c.eager_bytes), readable_bytes(c.fused_bytes))
    compiles = f"{c.compiles.kernels_compiled} compiled, {c.compiles.kernels_from_disk} from disk"
    table.add_row("kernels made", "", compiles)
    worst = c.max_error
    if worst is not None:
        error = "0" if worst.absolute == 0 else f"{worst.relative:.2g} relative, {worst.ulps:.2g} ulp"
        table.add_row(f"largest error: {worst.what}", "", error)
    for d in c.differences:
        if d.problem:
            table.add_row(f"WRONG: {d.what}", "", d.problem)
    return table
