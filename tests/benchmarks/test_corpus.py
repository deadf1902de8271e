"""The corpus beside compilers: the section of the page, and programs that have no result."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import corpus
from benchmarks.corpus import Compared


def test_the_table_has_means_and_what_is_behind_or_missing():
    rows = [Compared("slow", 2.0, 1.0, 3.0, 1.0), Compared("fast", 1.0, 8.0, 1.0, 3.0)]

    table = corpus.table("jax", rows, {"long": "jax took more than 120 s"})

    assert "2 programs: geometric mean 2.00; behind: slow." in table and "take 1.00 of jax's time" in table
    assert table.index("| fast | 1 s | 8 s | 8 |") < table.index("| slow | 2 s | 1 s | 0.5 |")
    assert table.endswith("\n* long: jax took more than 120 s.\n")


def test_the_picture_reads_the_section(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(corpus.__file__).parents[1] / "docs"))
    import speed

    ratios = {"jax": 4.0, "torch.compile": 2.0}
    tables = [corpus.table(peer, [Compared("waves", 1.0, ratio, 1.0, 1.0)], {}) for peer, ratio in ratios.items()]

    figures, beside_torch, date = speed.figures("# Page\n\n" + corpus.section(tables, 2, "2026-01-01"))

    assert figures == {"waves": (2.0, "torch.compile")} and beside_torch == 1 and date == "2026-01-01"


def test_a_program_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch):
    def run(command: list[str], timeout: float, **options: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", run)

    assert corpus.compare("heston", "jax", 1) == "jax took more than 120 s"


def test_a_library_that_fails_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subprocess, "run", lambda command, **options: None)

    assert corpus.compare("heston", "jax", 1) == "jitgrad failed: it has no row"
