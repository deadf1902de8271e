"""Draws one HTML file: for each workload a bar per library, relative to the fastest other library."""

from __future__ import annotations

import html
import math

from benchmarks.measure import Outcome
from benchmarks.record import Record

BAR, GAP, LABEL, WIDTH, LARGEST = 14, 3, 130, 520, 8.0
COLOURS = {
    "jitgrad": "#c2410c",
    "jitgrad.module": "#ea8a5b",
    "jitgrad.eager": "#f3c6ad",
    "numpy": "#6b7280",
    "torch": "#9ca3af",
    "torch.compile": "#4b6a9b",
    "torch.module": "#93a8c9",
    "jax": "#5b8c5a",
}

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222;
       background: #fff; }
h2 { font-size: 1rem; margin: 1.6rem 0 .3rem; } svg { width: 100%; height: auto; } p { color: #555; }
text { font: 11px system-ui, sans-serif; fill: currentColor; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #ddd; } p { color: #aaa; } }
"""


def _bars(outcome: Outcome) -> str:
    """An SVG of the times in units of the fastest other library; bars end at LARGEST, the text beside has the number."""
    rows = sorted((r for r in outcome.rows if not math.isnan(r.median)), key=lambda r: r.median)
    others = [r.median for r in rows if not r.peer.startswith("jitgrad")]
    unit = min(others) if others else (rows[0].median if rows else 1.0)
    height = len(rows) * (BAR + GAP) + GAP
    scale = (WIDTH - 40) / LARGEST
    parts = [f'<svg viewBox="0 0 {LABEL + WIDTH + 110} {height}" role="img">']
    line = LABEL + scale
    parts.append(f'<line x1="{line:.1f}" x2="{line:.1f}" y1="0" y2="{height}" stroke="#999" stroke-dasharray="2 3"/>')
    for k, row in enumerate(rows):
        y = GAP + k * (BAR + GAP)
        times = row.median / unit
        width = max(1.0, min(times, LARGEST) * scale)
        colour = COLOURS.get(row.peer, "#888")
        parts.append(f'<text x="{LABEL - 6}" y="{y + 11}" text-anchor="end">{html.escape(row.peer)}</text>')
        parts.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{colour}"/>')
        text = f"{times:.2f}x  {row.median * 1e3:.3g} ms"
        parts.append(f'<text x="{LABEL + width + 5:.1f}" y="{y + 11}">{text}</text>')
    return "\n".join([*parts, "</svg>"])


def plot(record: Record) -> str:
    """The page, without scripts or other files."""
    about = ", ".join(f"{k} {v}" for k, v in record.machine.items())
    body = [
        "<h1>jitgrad and others</h1>",
        f"<p>{html.escape(record.date)}. {html.escape(about)}. Time per call relative to the fastest library that is "
        "not jitgrad (dotted line): shorter is faster.</p>",
    ]
    for outcome in record.outcomes:
        body.append(f"<h2>{html.escape(outcome.workload)}: {html.escape(outcome.title)}</h2>\n{_bars(outcome)}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>jitgrad benchmarks</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )
