"""Measures workloads with several libraries, and writes tables, charts and records."""

from __future__ import annotations

import datetime
import fnmatch
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from benchmarks import compile_time, report, system
from benchmarks import peers as libraries
from benchmarks.record import Record, load_record, save_record
from jitgrad.runtime.executor.thread_pool import default_threads

WIDTH = 130  # of tables in files and pipes


def _chosen(patterns: Sequence[str], slow: bool) -> list[Any]:
    from benchmarks.workloads import ALL

    chosen = [w for w in ALL.values() if any(fnmatch.fnmatch(w.name, p) for p in patterns) or not patterns]
    if patterns and not chosen:
        raise click.BadParameter(f"no workload is called {', '.join(patterns)}; there are: {', '.join(ALL)}")
    return [w for w in chosen if slow or not w.slow or w.name in patterns]


def _list(patterns: Sequence[str], console: Console) -> None:
    for workload in _chosen(patterns, slow=True):
        console.print(f"{workload.name:24}{workload.title}", markup=False)


def _print_failures(outcome: Any, console: Console) -> None:
    for row in (r for r in outcome.rows if r.failure):
        console.print(f"{outcome.workload}: {row.peer}: {row.failure}", markup=False)


def run(
    patterns: Sequence[str],
    names: Sequence[str],
    *,
    threads: int,
    quick: bool,
    slow: bool,
    seconds: float,
    save_to: Path | None = None,
    device: str = "cpu",
    scale: int = 1,
) -> Record:
    """Measure with progress on the terminal; saves after each workload."""
    from benchmarks.measure import measure

    console = Console(stderr=True)
    loaded = libraries.load_all(names, threads, console.print, device)
    workloads = _chosen(patterns, slow)
    record = Record(datetime.date.today().isoformat(), system.machine(threads), quick, [])
    columns = (SpinnerColumn(), *Progress.get_default_columns()[:2], TimeElapsedColumn())
    with compile_time.empty_caches(), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(workloads))
        for workload in workloads:

            def say(text: str, name: str = workload.name) -> None:
                bar.update(task, description=f"{name}: {text}")

            able = [p for p in loaded if slow or not p.name.startswith(workload.slow_peers)]
            for peer in (p for p in loaded if p not in able):
                bar.console.print(f"{workload.name}: {peer.name} takes a minute to compile: --slow includes it")
            try:
                outcome = measure(workload, able, quick=quick, seconds=seconds, threads=threads, say=say, scale=scale)
            except MemoryError:
                bar.console.print(f"{workload.name}: not enough memory")
                continue
            record.outcomes.append(outcome)
            _print_failures(outcome, bar.console)
            _save(record, save_to)
            bar.advance(task)
    return record


def _save(record: Record, path: Path | None) -> None:
    if path is not None:
        save_record(record, path)


def _write(record: Record, plot: Path | None, markdown: Path | None, beside: Path | None) -> None:
    """Write the chart and the page, where paths are given."""
    if plot is not None:
        plot.write_text(report.plot(record), encoding="utf-8")
    if markdown is not None:
        other = load_record(beside) if beside is not None else None
        page = markdown.read_text(encoding="utf-8") if markdown.exists() else ""
        markdown.write_text(report.markdown(record, other, page), encoding="utf-8")


@click.command(help=__doc__, context_settings={"show_default": True})
@click.argument("names", nargs=-1)
@click.option("--peers", default=",".join(libraries.DEFAULT), help="Comma-separated.")
@click.option("--threads", type=int, default=default_threads, help="For every library; default: all cores.")
@click.option("--seconds", default=4.0, help="Timing per workload, after compiling.")
@click.option("--device", default="cpu", type=click.Choice(["cpu", "cuda"]), help="For jitgrad and torch.")
@click.option("--scale", default=1, help="Times the sizes; a GPU is busy with 16 times those.")
@click.option("--quick", is_flag=True, help="Tiny sizes: does everything run, and is it right?")
@click.option("--slow", is_flag=True, help="Also what takes minutes to compile, and 1e8 elements.")
@click.option("--compile-times/--no-compile-times", default=False, help="Compile time by number of operations.")
@click.option("--list", "only_list", is_flag=True, help="List the workloads.")
@click.option("--json", "json_path", type=Path, help="Save the measurements.")
@click.option("--load", "load_path", type=Path, help="Saved measurements; those of NAMES are measured anew.")
@click.option("--compare", "compare_path", type=Path, help="Ratios to saved measurements.")
@click.option("--plot", "plot_path", type=Path, help="One HTML file with a chart.")
@click.option("--markdown", "markdown_path", type=Path, help="Write the page of tables: the section of this machine.")
@click.option("--beside", "beside_path", type=Path, help="For it: saved measurements with another number of threads.")
def main(
    names: tuple[str, ...],
    peers: str,
    threads: int,
    seconds: float,
    device: str,
    scale: int,
    quick: bool,
    slow: bool,
    compile_times: bool,
    only_list: bool,
    json_path: Path | None,
    load_path: Path | None,
    compare_path: Path | None,
    plot_path: Path | None,
    markdown_path: Path | None,
    beside_path: Path | None,
) -> None:
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    if only_list:
        return _list(names, console)
    before = load_record(compare_path) if compare_path is not None else None  # it may be the file to be written
    record = load_record(load_path) if load_path is not None else None
    if record is None or names:
        libraries.prepare_threads(threads, device)
        warnings.filterwarnings("ignore", module="torch")
        chosen = [p.strip() for p in peers.split(",") if p.strip()]
        limit = 0.2 if quick else seconds
        with libraries.only_cpus(threads):
            options = {"threads": threads, "quick": quick, "slow": slow, "device": device, "scale": scale}
            measured = run(names, chosen, seconds=limit, save_to=json_path, **options)
        record = measured if record is None else record.updated(measured)
        if compile_times or (markdown_path is not None and not names):
            record.compiling = compile_time.measure(chosen, threads, quick=quick, slow=slow)
    report.show(record, console)
    if before is not None:
        report.show_comparison(record, before, console)
    _save(record, json_path)
    _write(record, plot_path, markdown_path, beside_path)
    sys.exit(1 if any(r.failure for o in record.outcomes for r in o.rows if r.peer.startswith("jitgrad")) else 0)
