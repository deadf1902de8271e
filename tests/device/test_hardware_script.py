"""The script for machines with a GPU, tried out on the emulated device."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import peers as libraries
from tools import check_cuda_hardware as script


@pytest.mark.parametrize("part", script.MEASURED)
def test_measuring_parts(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "prepare_threads", lambda *_: None)  # it sets variables of this process
    rows = list(script.measure(part, emulated=True))

    assert all(row.part == part and row.ok is not False for row in rows), rows
    if part == "bandwidth":
        assert len(rows) == 1 + len(script.single_pass_functions())
        assert all("; 1 kernel," in row.found for row in rows[1:])


def test_a_part_that_fails_or_hangs_costs_its_row() -> None:
    def rows(code: str, seconds: float = 20.0) -> list[script.Row]:
        return script.run_part(script.Part("part", [sys.executable, "-c", code], seconds), seconds)

    good = json.dumps({"part": "part", "what": "a", "found": "b", "ok": True})
    (passed,) = rows(f"print({good!r})")
    assert passed == script.Row("part", "a", "b", True)
    measured, failed = rows(f"print({good!r}); raise SystemExit('broken')")
    assert (measured.ok, failed.ok, failed.found) == (True, False, "broken")
    (hung,) = rows("import time; time.sleep(60)", 0.5)
    assert (hung.ok, hung.found) == (False, "took too long")
    (missing,) = script.run_part(script.Part("part", ["/no/such/program"], 5.0), 5.0)
    assert missing.ok is False


def test_the_table_comes_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    commands = ["print('fine')", "raise SystemExit(2)", "import os; os.abort()"]
    found = [script.Part(f"part{k}", [sys.executable, "-c", code], 20.0) for k, code in enumerate(commands)]
    monkeypatch.setattr(script, "parts", lambda emulated: found)
    monkeypatch.setattr(sys, "argv", ["script", "--json", str(tmp_path / "rows.json")])

    assert script.main() == 1

    last = capsys.readouterr().out.splitlines()[-3:]
    assert [line.split()[0] for line in last] == ["ok", "FAIL", "FAIL"]
    assert "fine" in last[0]
    assert [row["ok"] for row in json.loads((tmp_path / "rows.json").read_text())] == [True, False, False]


def test_every_part_is_a_command_that_exists() -> None:
    names = [part.name for part in script.parts(emulated=False)]

    assert {"doctor", "tests", "ops", *script.MEASURED} <= set(names)
    assert {"sanitizer"} <= set(names) or {"memcheck", "racecheck"} <= set(names)
    assert sum(part.seconds for part in script.parts(emulated=False)) < 900  # a run ends at its limit, the last parts first
    assert all(Path(part.command[0]).exists() for part in script.parts(emulated=False))
