"""The script for machines with a GPU, tried out on the emulated device."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
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


def test_what_a_part_started_ends_with_it(tmp_path: Path) -> None:
    """As the processes that compile for torch: they hold the output open, and the device."""
    code = "import subprocess, sys, time; sleep = [sys.executable, '-c', 'import time; time.sleep(60)']; "
    code += "subprocess.Popen(sleep); print('begun', flush=True)"
    start = time.monotonic()

    (hung,) = script.run_part(script.Part("part", [sys.executable, "-c", code + "; time.sleep(60)"], 1.0), 1.0, tmp_path)
    (done,) = script.run_part(script.Part("part", [sys.executable, "-c", code], 20.0), 20.0)

    assert (hung.ok, hung.found, done.ok, done.found) == (False, "took too long", True, "begun")
    assert (tmp_path / "part.txt").read_text() == "begun\n"
    assert time.monotonic() - start < 30


def test_everything_is_written_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = json.dumps({"part": "one", "what": "a", "found": "b", "ok": True})
    found = [
        script.Part("one", [sys.executable, "-c", f"print({row!r}); print('{{\"part\": cut')"], 20.0),
        script.Part("two", [sys.executable, "-c", f"import os, signal; os.kill({os.getpid()}, signal.SIGTERM); input()"], 20.0),
        script.Part("three", [sys.executable, "-c", ""], 20.0),
    ]
    monkeypatch.setattr(script, "parts", lambda emulated: found)
    monkeypatch.setattr(sys, "argv", ["script"])
    monkeypatch.setenv("OUT", str(tmp_path / "new"))
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert script.main() == 1
    finally:
        signal.signal(signal.SIGTERM, before)

    written = json.loads((tmp_path / "new" / "rows.json").read_text())
    assert [(r["part"], r["ok"]) for r in written] == [("one", True), ("script", False)]
    table = (tmp_path / "new" / "table.txt").read_text().splitlines()
    assert [line.split()[:2] for line in table[1:]] == [["ok", "one"], ["FAIL", "script"]]
    assert "cut" in (tmp_path / "new" / "one.txt").read_text()


def test_tests_and_ops_end_in_time(tmp_path: Path) -> None:
    """With what they have: a row says how much that is."""
    body = "import time, pytest\n@pytest.mark.parametrize('k', range(40))\ndef test_slow(k): time.sleep(0.1); assert k != 7\n"
    (tmp_path / "test_them.py").write_text(body)
    command = [sys.executable, str(script.ROOT / "tools" / "bounded_tests.py")]
    for seconds, expected in (("1", "no time was left for"), ("60", "39 passed, 1 failed: test_them.py::test_slow[7]")):
        (row, *_) = script.run_part(script.Part("tests", [*command, seconds, "-q", str(tmp_path)], 60.0), 60.0)
        assert expected in row.found
    command = [sys.executable, str(script.ROOT / "tools" / "check_cuda_ops.py"), "--programs", "1", "--seconds", "3"]
    (row,) = script.run_part(script.Part("ops", command, 60.0), 60.0)
    assert row.ok
    assert re.match(r"0 of \d+ checks fail; no time was left for \d+", row.found)


def test_every_part_is_a_command_that_exists() -> None:
    names = [part.name for part in script.parts(emulated=False)]

    assert {"doctor", "tests", "ops", *script.MEASURED} <= set(names)
    assert {"sanitizer"} <= set(names) or {"memcheck", "racecheck"} <= set(names)
    *bounded, suite = script.parts(emulated=False)
    assert sum(part.seconds for part in bounded) <= script.LIMIT  # so the last part alone takes what is left
    assert (suite.name, suite.seconds) == ("suite", script.LIMIT)
    assert all(Path(part.command[0]).exists() for part in script.parts(emulated=False))
