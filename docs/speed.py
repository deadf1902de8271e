"""Draws docs/speed.svg, the corpus of programs beside torch.compile and JAX: ``make picture``.

``python docs/speed.py RECORD`` draws measurements that ``python -m benchmarks --json RECORD`` saved.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import cli
from benchmarks.measure import Outcome
from benchmarks.programs import PROGRAMS
from benchmarks.record import Record, load_record

PICTURE = Path(__file__).with_name("speed.svg")
COMPILERS = ("torch.compile", "jax")
WIDTH, LABELS, BAR, ROW, TOP, LARGEST = 760, 190, 12, 18, 66, 16.0
AHEAD, BEHIND, GRID = "#0b7285", "#c2410c", "#ced4da"


def times_faster(outcome: Outcome) -> tuple[float, str] | None:
    """How many times as fast as the faster compiler jitgrad is, and that compiler; None if there is no figure."""
    times = {row.peer: row.median for row in outcome.rows if not math.isnan(row.median)}
    others = {name: times[name] for name in COMPILERS if name in times}
    if "jitgrad" not in times or not others:
        return None
    best = min(others, key=lambda name: others[name])
    return others[best] / times["jitgrad"], best


def position(ratio: float) -> float:
    """Where ``ratio`` is from left to right; each doubling takes as much room."""
    low, high = -1.0, math.log2(LARGEST)
    exponent = min(max(math.log2(ratio), low), high)
    return LABELS + (exponent - low) / (high - low) * (WIDTH - LABELS - 130)


def draw(record: Record) -> str:
    """One bar for each program, the fastest first."""
    names = [p.name for p in PROGRAMS]
    found = {o.workload: figure for o in record.outcomes if o.workload in names and (figure := times_faster(o)) is not None}
    mean = math.exp(sum(math.log(ratio) for ratio, _ in found.values()) / len(found))
    height, one = TOP + ROW * len(found) + 12, position(1.0)
    threads = record.machine.get("threads", "2")
    parts = [
        f'<text x="20" y="20" font-weight="bold">{len(found)} programs, value and gradient: how many times as fast as the faster '
        "of torch.compile and JAX</text>",
        f'<text x="20" y="38" fill="#5c6770">geometric mean {mean:.1f}; {threads} threads, {record.date}; longer is '
        "better</text>",
    ]
    for ratio in (0.5, 1, 2, 4, 8, 16):
        x = position(ratio)
        dashes = "" if ratio == 1 else ' stroke-dasharray="2 3"'
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 12}" stroke="{GRID}"{dashes}/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle" font-size="11" fill="#5c6770">{ratio}</text>')
    for k, (name, (ratio, best)) in enumerate(sorted(found.items(), key=lambda item: -item[1][0])):
        y, end = TOP + k * ROW, position(ratio)
        colour = AHEAD if ratio >= 1 else BEHIND
        parts.append(f'<text x="{LABELS - 10}" y="{y + 11}" text-anchor="end">{name}</text>')
        start, length = min(one, end), max(1.0, abs(end - one))
        parts.append(f'<rect x="{start:.1f}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
        parts.append(f'<text x="{max(end, one) + 6:.1f}" y="{y + 11}" font-size="11">{ratio:.1f} ({best})</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13"'
    return "\n".join([f'{head} fill="#212529">', f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>\n"])


def main() -> None:
    if len(sys.argv) > 1:
        record = load_record(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as folder:
            path = Path(folder, "corpus.json")
            names = [p.name for p in PROGRAMS]
            options = ["--peers", ",".join(("jitgrad", *COMPILERS)), "--seconds", "2", "--json", str(path)]
            cli.main([*names, *options], standalone_mode=False)
            record = load_record(path)
    PICTURE.write_text(draw(record), encoding="utf-8")


if __name__ == "__main__":
    main()
