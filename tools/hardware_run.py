"""Runs the parts of `tools/check_cuda_hardware.py` in processes of their own, and writes the table of what they found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
TOO_LONG, NOT_STARTED = -101, -102  # in place of an exit status


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; ``ok`` None is information."""

    part: str
    what: str
    found: str
    ok: bool | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A command, and the most seconds that it may take."""

    name: str
    command: list[str]
    seconds: float


def run_part(part: Part, seconds: float, folder: Path | None = None) -> list[Row]:
    """Run one part and read its rows from the lines that are JSON; else its exit status and last line make one.

    What it prints goes to a file, in ``folder`` if there is one: so it is there whatever becomes of the part.
    """
    start = time.perf_counter()
    print(f"\n--- {part.name}: at most {seconds:.0f} s", flush=True)
    with (folder / f"{part.name}.txt").open("w+b") if folder else tempfile.TemporaryFile() as file:
        status = run_command(part.command, seconds, file)
        file.seek(0)
        output = file.read().decode(errors="replace")
    print(output[-2500:], flush=True)
    rows = [row for line in output.splitlines() if (row := row_of(line)) is not None]
    took = f"{time.perf_counter() - start:.0f} s"
    if status == 0 and rows:
        return rows
    lines = output.strip().splitlines()
    found = "took too long" if status == TOO_LONG else (lines[-1][:110] if lines else "no output")
    return [*rows, Row(part.name, f"exit status {status}, {took}", found, status == 0)]


def run_command(command: list[str], seconds: float, file: IO[bytes]) -> int:
    """The exit status of ``command``, whose output goes to ``file``. After ``seconds`` it ends, with all that it started."""
    try:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        file.write(f"{type(error).__name__}: {error}".encode())
        return NOT_STARTED
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return TOO_LONG
    finally:
        with suppress(OSError):  # compilers that a part started may outlive it, and keep the device
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def row_of(line: str) -> Row | None:
    """The row that a part printed as ``line``; None for other lines."""
    if not line.startswith('{"part"'):
        return None
    try:
        return Row(**json.loads(line))
    except (ValueError, TypeError):  # cut off when the part ended
        return None


def table(rows: list[Row]) -> str:
    """All rows as text."""
    marks = {True: "ok", False: "FAIL", None: ""}
    lines = [f"{'':4} {'part':<10} {'what':<32} found"]
    lines += [f"{marks[row.ok]:<4} {row.part:<10} {row.what:<32} {row.found}" for row in rows]
    return "\n".join(lines)


def write_rows(rows: list[Row], path: Path | None, folder: Path | None) -> None:
    """Write what is known so far: nothing is lost if the machine goes away."""
    text = json.dumps([asdict(row) for row in rows], indent=1)
    for file in (path, folder / "rows.json" if folder else None):
        if file is not None:
            file.write_text(text, encoding="utf-8")
    if folder:
        (folder / "table.txt").write_text(table(rows) + "\n", encoding="utf-8")


def results_folder() -> Path | None:
    """The folder that the variable OUT names, made if it is not there."""
    name = os.environ.get("OUT")
    if not name:
        return None
    folder = Path(name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
