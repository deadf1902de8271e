"""The command ``jitgrad``: demo, bench, inspect, verify, cache, doctor."""

from __future__ import annotations

import importlib
import re
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

import jitgrad
from jitgrad.backends.llvm import disk_cache as kernel_cache
from jitgrad.cli.demo import demonstrate
from jitgrad.cli.demo_report import print_demonstration
from jitgrad.core import config
from jitgrad.core.errors import CudaError
from jitgrad.device.cuda import cuda_device
from jitgrad.inspect.doctor import Finding, examine
from jitgrad.inspect.explain import explain
from jitgrad.inspect.kernels import KernelView, kernel_views
from jitgrad.inspect.recording import Recording, record_script
from jitgrad.inspect.report import write_report
from jitgrad.inspect.traffic import readable_bytes
from jitgrad.jit.decorator import JitFunction

WIDTH = 120  # of output that is not a terminal


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jitgrad")
def main() -> None:
    """jitgrad fuses training steps, forward and backward, into a few kernels."""


# --- demo ----------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--epochs", default=80, show_default=True, type=click.IntRange(1), help="Passes over the training set.")
@click.option("--seconds", default=1.0, show_default=True, help="How long to time each of the two models.")
@click.option("--size", default=500_000, show_default=True, type=click.IntRange(1), help="Elements of the two models.")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]), help="Where to run.")
def demo(epochs: int, seconds: float, size: int, device: str) -> None:
    """Run small programs op by op and compiled, and compare.

    Trains a network, and evaluates two models. Exits with 1 if the results differ.
    """
    if device == "cuda":
        try:
            cuda_device()
        except CudaError as error:
            raise click.BadParameter(str(error), param_hint="--device") from None
    result = demonstrate(epochs, seconds, device, size)
    print_demonstration(_console(), result)
    if not (result.prices.agrees and result.motion.agrees):
        raise SystemExit(1)


def _print_kernel(console: Console, kernel: KernelView) -> None:
    traffic = f"reads {readable_bytes(kernel.bytes_read)}, writes {readable_bytes(kernel.bytes_written)}"
    console.print(f"[bold]{escape(kernel.name)}[/]  {kernel.part}, {traffic}")
    for resources in kernel.resources:
        console.print(f"  {resources}", markup=False, highlight=False)
    console.print(Syntax(kernel.source, "python", background_color="default", word_wrap=False))


# --- bench ---------------------------------------------------------------------------------------------------------


@main.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: Sequence[str]) -> None:
    """Run the benchmarks, which only a checkout has.

    The options are those of `python -m benchmarks`: see jitgrad bench --help.
    """
    _benchmarks()(args=list(arguments), prog_name="jitgrad bench")


def _benchmarks() -> Any:
    """The command of ``benchmarks``, a folder beside the package in a checkout that is not installed."""
    checkout = Path(jitgrad.__file__).parents[1]
    if not (checkout / "benchmarks" / "cli.py").is_file():
        raise click.ClickException(
            f"there are no benchmarks in {checkout}: they are part of the repository, not of the installed package. "
            "Clone it, install it with pip install -e '.[bench]', and run jitgrad bench again."
        )
    sys.path.insert(0, str(checkout))
    return importlib.import_module("benchmarks.cli").main


# --- inspect and verify --------------------------------------------------------------------------------------------


def _script(text: str) -> tuple[Path, str]:
    """(path, function or "") from ``SCRIPT[:function]``. Raises BadParameter if there is no such file."""
    path, _, function = text.rpartition(":")
    if not path or not function.isidentifier():
        path, function = text, ""
    if not Path(path).is_file():
        raise click.BadParameter(f"there is no file {path}", param_hint="SCRIPT")
    return Path(path), function


@main.command()
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--kernels/--no-kernels", default=True, help="Show the source of the kernels.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Folder for HTML reports.")
def inspect(script: str, arguments: Sequence[str], kernels: bool, report: Path | None) -> None:
    """Run SCRIPT; show the programs and kernels of its @jit functions.

    SCRIPT:function shows only that function. Arguments after -- go to the script.
    """
    console = _console()
    path, wanted = _script(script)
    if report is not None:
        _make_folder(report)
    recording = record_script(path, arguments)
    chosen = {f: c for f, c in recording.compiled.items() if wanted in ("", f.name)}
    for number, (function, compiled) in enumerate((f, c) for f, cs in chosen.items() for c in cs):
        console.rule(f"{number}: {escape(function.name)}")
        explanation = explain(compiled)
        console.print(str(explanation), markup=False, highlight=False, soft_wrap=True)
        for kernel in kernel_views(compiled) if kernels else ():
            console.print()
            _print_kernel(console, kernel)
        if report is not None:
            name = re.sub(r"\W", "_", function.name)
            write_report(report / f"{number}_{name}.html", compiled, explanation)
    _finish(console, recording, bool(chosen), wanted)


def _make_folder(path: Path) -> None:
    """Make the folder for reports, before the script runs. Raises BadParameter if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"cannot make the folder {path}: {error.strerror}", param_hint="--report") from None


def _finish(console: Console, recording: Recording, found: bool, wanted: str = "") -> None:
    """Print all problems, and exit with 1 if there are any."""
    if recording.error is not None:
        text = "".join(traceback.format_exception(recording.error))
        console.print(f"the script failed:\n{text}", markup=False, highlight=False)
    if not found:
        known = ", ".join(f.name for f in recording.compiled) or "none at all"
        what = f"no @jit function {wanted!r}" if wanted else "no @jit function"
        console.print(f"{what} was called; called were: {known}", markup=False)
    for problem in recording.problems:
        console.print(f"- {problem}", markup=False, highlight=False)
    if recording.error is not None or not found or recording.problems:
        raise SystemExit(1)


@main.command("verify")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def verify_script(script: str, arguments: Sequence[str]) -> None:
    """Run SCRIPT; compare each compiled call with eager execution.

    The graph is verified after each compiler pass. Exits with 1 if anything differs. Arguments after -- go to the script.
    """
    console = _console()
    path, _ = _script(script)
    recording = record_script(path, arguments, {"JITGRAD_CHECK": "always", "JITGRAD_VERIFY": "2"})
    table = Table("function", "calls", "traces", "kernels", "ran eagerly")
    for function in recording.compiled:
        table.add_row(escape(function.name), *_counts(function))
    if recording.compiled:
        console.print(table)
    _finish(console, recording, bool(recording.compiled))
    console.print("every call agreed with eager")


def _counts(function: JitFunction) -> list[str]:
    info = function.cache_info()
    return [str(n) for n in (info.calls, info.traces, info.kernels_compiled + info.kernels_from_disk, info.fallbacks)]


# --- cache ---------------------------------------------------------------------------------------------------------


@main.group()
def cache() -> None:
    """The compiled kernels on disk."""


@cache.command("info")
def cache_info() -> None:
    """The cache's folder and its size."""
    info = kernel_cache.info()
    console = _console()
    console.print(f"{info.directory}", markup=False, soft_wrap=True)
    console.print(f"{info.entries} kernels, {readable_bytes(info.size)} of at most {readable_bytes(info.max_size)}")
    if info.problem:
        console.print(f"not used: {info.problem}", markup=False)
        raise SystemExit(1)


@cache.command("list")
def cache_list() -> None:
    """All kernels on disk, oldest first."""
    for entry in kernel_cache.entries():
        modified = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.modified))
        click.echo(f"{modified}  {readable_bytes(entry.size):>8}  {entry.key}")


@cache.command("verify")
def cache_verify() -> None:
    """Check every file; exit with 1 if one is damaged.

    A damaged kernel is compiled again when it is needed.
    """
    damaged = kernel_cache.verify_entries()
    for key, problem in damaged:
        click.echo(f"{key}: {problem}")
    click.echo(f"{len(kernel_cache.entries()) - len(damaged)} good, {len(damaged)} damaged")
    if damaged:
        raise SystemExit(1)


@cache.command("clear")
def cache_clear() -> None:
    """Remove all kernels from disk."""
    click.echo(f"{kernel_cache.clear()} kernels removed")


# --- doctor --------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--env", "environment", is_flag=True, help="Print the table of environment variables (Markdown) instead.")
def doctor(environment: bool) -> None:
    """Examine this installation; exit with 1 if something is wrong."""
    if environment:
        click.echo(config.documentation())
        return
    console = _console()
    findings: list[Finding] = []
    for finding in examine():
        findings.append(finding)
        mark = {True: "[green]ok  [/]", False: "[red]FAIL[/]", None: "    "}[finding.ok]
        console.print(f"{mark} {finding.what:<18} {escape(finding.found)}", highlight=False, soft_wrap=True)
    if any(finding.ok is False for finding in findings):
        raise SystemExit(1)
