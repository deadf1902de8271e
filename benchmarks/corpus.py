"""Times the programs of `benchmarks/programs/` beside a compiler each in a process of its own: `python -m benchmarks.corpus`.

Each process starts with empty caches on disk, so first calls contain all that a user waits for. `--markdown docs/PERFORMANCE.md`
writes the section of this machine, from which `make picture` draws.
"""

from __future__ import annotations

import compileall
import datetime
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks import system
from benchmarks.record import load_record
from benchmarks.report import geometric, seconds, with_section

ROOT = Path(__file__).parents[1]
PREFIX = "program_"
PEERS = ("jax", "torch.compile")
TIMING, TIMEOUT = 1.5, 120.0  # seconds for the calls of a program, and for its whole process


@dataclass(frozen=True, slots=True)
class Compared:
    """Seconds of a program with jitgrad and with a peer: of a call, the median, and of the first call."""

    program: str
    own: float
    other: float
    own_first: float
    other_first: float

    @property
    def ratio(self) -> float:
        return self.other / self.own


def compare(program: str, peer: str, threads: int) -> Compared | str:
    """Measure ``program`` in a process of its own; a text says why there is no result."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record.json")
        options = ["--peers", f"jitgrad,{peer}", "--seconds", str(TIMING), "--threads", str(threads), "--json", str(path)]
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks", PREFIX + program, *options]
        try:
            subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return f"{peer} took more than {TIMEOUT:.0f} s"
        rows = {row.peer: row for row in load_record(path).outcomes[0].rows} if path.exists() else {}
    for name in ("jitgrad", peer):
        if name not in rows or rows[name].failure:
            return f"{name} failed: {rows[name].failure if name in rows else 'it has no row'}"
    own, other = rows["jitgrad"], rows[peer]
    return Compared(program, own.median, other.median, own.first, other.first)


def table(peer: str, results: Sequence[Compared], failures: dict[str, str]) -> str:
    """The programs beside ``peer``, fastest first, with the means."""
    rows = sorted(results, key=lambda row: -row.ratio)
    first = geometric([row.own_first / row.other_first for row in rows])
    behind = [row.program for row in rows if row.ratio < 1]
    least = "none is behind" if not behind else f"behind: {', '.join(behind)}"
    lines = [
        f"Beside {peer}, {len(rows)} programs: geometric mean {geometric([row.ratio for row in rows]):.2f}; {least}. First calls",
        f"take {first:.2f} of {peer}'s time in the mean.\n",
        f"| program | jitgrad | {peer} | ratio | first call | of {peer} |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        times = [seconds(t) for t in (row.own, row.other, row.own_first, row.other_first)]
        lines.append(f"| {row.program} | {times[0]} | {times[1]} | {row.ratio:.3g} | {times[2]} | {times[3]} |")
    lines += ["", *(f"* {program}: {why}." for program, why in failures.items())]
    return "\n".join(lines).rstrip() + "\n"


def section(tables: Sequence[str], threads: int, date: str) -> str:
    """The section of this machine."""
    return "\n".join(
        [
            f"## Programs of others' kind, {system.title(system.machine(threads))}\n",
            f"The programs of `benchmarks/programs/`, value and gradient, measured on {date} with {threads} threads by",
            "`python -m benchmarks.corpus --markdown docs/PERFORMANCE.md`: each in a process of its own with empty caches on",
            "disk, where jitgrad and the peer take turns. The ratio is the peer's time over jitgrad's. First calls contain",
            "jitgrad's check against eager execution and the import of its compiler, which comes with the first compiled",
            "function.\n",
            *tables,
        ]
    )


@click.command(help=__doc__)
@click.argument("programs", nargs=-1)
@click.option("--peers", default=",".join(PEERS), show_default=True, help="Comma-separated.")
@click.option("--threads", default=2, show_default=True, help="For every library.")
@click.option("--markdown", "page", type=Path, help="Write the section of this page.")
def main(programs: tuple[str, ...], peers: str, threads: int, page: Path | None) -> None:
    """Measure PROGRAMS, by default all."""
    from benchmarks.workloads import ALL

    compileall.compile_dir(ROOT / "jitgrad", quiet=1)  # as installing compiles the peers
    names = [*programs] or [name.removeprefix(PREFIX) for name in ALL if name.startswith(PREFIX)]
    tables = []
    for peer in peers.split(","):
        results, failures = [], {}
        for name in names:
            result = compare(name, peer, threads)
            if isinstance(result, Compared):
                results.append(result)
                click.echo(f"{name:20}{peer:15}{result.ratio:8.2f}   first call {result.own_first / result.other_first:.2f}")
            else:
                failures[name] = result
                click.echo(f"{name:20}{peer:15}{result}")
        tables.append(table(peer, results, failures))
    if page is not None:
        new = section(tables, threads, datetime.date.today().isoformat())
        page.write_text(with_section(page.read_text(encoding="utf-8"), new), encoding="utf-8")


if __name__ == "__main__":
    main()
