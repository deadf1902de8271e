"""Draws docs/speed.svg, the corpus of programs beside torch.compile and JAX, from docs/PERFORMANCE.md: ``make picture``."""

from __future__ import annotations

import math
import re
from pathlib import Path

FOLDER = Path(__file__).parent
PICTURE = FOLDER / "speed.svg"
SECTION = "## Programs of others' kind"
WIDTH, LABELS, BAR, ROW, TOP, LOWEST, LARGEST = 760, 150, 12, 18, 66, 0.5, 32.0
AHEAD, BEHIND, GRID, QUIET = "#0b7285", "#c2410c", "#ced4da", "#5c6770"


def figures(page: str) -> tuple[dict[str, tuple[float, str]], int, str]:
    """For each program how many times as fast as the faster compiler it is, and that compiler; how many were measured
    beside torch.compile; and when."""
    section = page[page.index(SECTION) :].split("\n## ", maxsplit=1)[0]
    found: dict[str, tuple[float, str]] = {}
    beside_torch = 0
    for table in section.split("\n\n"):
        heads = re.match(r"\| \w+ \| jitgrad \| ([\w.]+) \| ratio \|", table)
        for name, ratio in re.findall(r"^\| (\w+) \|[^|]+\|[^|]+\| ([\d.]+) \|", table, re.MULTILINE) if heads else ():
            found[name] = min(found.get(name, (math.inf, "")), (float(ratio), heads[1]))
            beside_torch += heads[1] == "torch.compile"
    return found, beside_torch, " and ".join(sorted(set(re.findall(r"\d{4}-\d\d-\d\d", section))))


def position(ratio: float) -> float:
    """Where ``ratio`` is from left to right; each doubling takes as much room."""
    low, high = math.log2(LOWEST), math.log2(LARGEST)
    exponent = min(max(math.log2(ratio), low), high)
    return LABELS + (exponent - low) / (high - low) * (WIDTH - LABELS - 150)


def draw(found: dict[str, tuple[float, str]], beside_torch: int, date: str) -> str:
    """One bar for each program, the fastest first."""
    mean = math.exp(sum(math.log(ratio) for ratio, _ in found.values()) / len(found))
    height, one = TOP + ROW * len(found) + 12, position(1.0)
    parts = [
        f'<text x="20" y="20" font-weight="bold">{len(found)} programs, value and gradient: how many times as fast as JAX '
        "or torch.compile</text>",
        f'<text x="20" y="38" fill="{QUIET}">geometric mean {mean:.1f}; two threads, {date}; torch.compile was measured '
        f"for {beside_torch} programs and counts where it is faster</text>",
    ]
    for ratio in (0.5, 1, 2, 4, 8, 16, 32):
        x = position(ratio)
        dashes = "" if ratio == 1 else ' stroke-dasharray="2 3"'
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 12}" stroke="{GRID}"{dashes}/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle" font-size="11" fill="{QUIET}">{ratio}</text>')
    for k, (name, (ratio, other)) in enumerate(sorted(found.items(), key=lambda item: -item[1][0])):
        y, end = TOP + k * ROW, position(ratio)
        start, length = min(one, end), max(1.0, abs(end - one))
        parts.append(f'<text x="{LABELS - 10}" y="{y + 11}" text-anchor="end">{name.replace("_", " ")}</text>')
        colour = AHEAD if ratio >= 1 else BEHIND
        parts.append(f'<rect x="{start:.1f}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
        parts.append(f'<text x="{max(end, one) + 6:.1f}" y="{y + 11}" font-size="11">{ratio:.3g} ({other})</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13"'
    return "\n".join([f'{head} fill="#212529">', f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(draw(*figures((FOLDER / "PERFORMANCE.md").read_text(encoding="utf-8"))), encoding="utf-8")
