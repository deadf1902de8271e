"""The benchmark runner: wrong answers are failures, failures stay in their row, and records survive a file."""

from __future__ import annotations

import gc
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks import main, report
from benchmarks import peers as libraries
from benchmarks.measure import Outcome, Row, _Running, measure, rounds
from benchmarks.record import Compiling, Record, load_record, save_record
from benchmarks.workloads import ALL


def record(median: float = 2e-3, copy: float = 1e-3) -> Record:
    rows = [
        Row("swiglu", "jitgrad", first=0.5, median=median, low=median, high=median, best=median, steps={"silu": 1}),
        Row("swiglu", "jax", median=8e-3, low=8e-3, high=8e-3, best=8e-3),
        Row("swiglu", "torch", failure="RuntimeError: no | compiler"),
    ]
    outcome = Outcome("swiglu", "a title", "n=3", 1000, "torch", copy, rows)
    return Record("2026-01-01", {"cpu": "some"}, False, [outcome], [Compiling("jax", 10, 0.2)])


def test_a_wrong_answer_is_a_failure_and_has_no_time():
    right = libraries.load("numpy", 1)
    wrong = replace(right, name="wrong", numpy=lambda x: right.numpy(x) * 1.01)

    outcome = measure(ALL["size_1e2"], [wrong, right], quick=True, seconds=0.0, threads=1)

    rows = {row.peer: row for row in outcome.rows}
    assert rows["wrong"].failure.startswith("ArithmeticError: wrong")
    assert math.isnan(rows["wrong"].median)
    assert rows["numpy"].median > 0


def test_an_exception_of_one_peer_leaves_the_others():
    right = libraries.load("numpy", 1)

    def refuse(function):
        raise RuntimeError("cannot compile\nlong story")

    outcome = measure(
        ALL["size_1e2"], [replace(right, name="x", compile=refuse), right], quick=True, seconds=0.0, threads=1
    )

    assert [row.failure for row in outcome.rows] == ["RuntimeError: cannot compile", ""]


def test_rounds_take_turns_without_the_garbage_collector():
    seen = []
    runners = [_Running(Row("w", name), lambda name=name: seen.append((name, gc.isenabled()))) for name in "ab"]

    rounds(runners, seconds=0.0, least=4)

    turns = ["".join(name for name, _ in seen[k : k + 4]) for k in range(0, 16, 4)]
    assert set(turns) == {"aabb", "bbaa"}  # each twice, the first time not timed, in either order
    assert not any(enabled for _, enabled in seen)
    assert gc.isenabled()
    assert [len(r.times) for r in runners] == [4, 4]


def test_the_state_of_a_step_goes_round():
    peer = libraries.load("numpy", 1)
    workload = replace(
        ALL["adam_one"], function=lambda peer: lambda state, gradients: (state[0][0][0], state), variants={}
    )
    seen = []
    spy = replace(peer, wait=lambda out: seen.append(out[-1]) or out)

    measure(workload, [spy], quick=True, seconds=0.0, threads=1)

    assert all(later is first for first, later in zip(seen, seen[1:]))


def test_a_record_survives_its_file(tmp_path: Path):
    save_record(record(), tmp_path / "r.json")

    loaded = load_record(tmp_path / "r.json")

    assert repr(loaded) == repr(record())  # NaN is not equal to NaN
    assert loaded.outcomes[0].rows[0].median == 2e-3
    assert math.isnan(loaded.outcomes[0].rows[2].median)
    assert math.isnan(loaded.compiling[0].cached)


def test_the_comparison_divides_by_the_speed_of_the_machine():
    console = Console(record=True, width=130)

    report.show_comparison(record(median=1e-3, copy=1e-3), record(median=4e-3, copy=2e-3), console)

    line = next(line for line in console.export_text().splitlines() if "jitgrad" in line)
    assert line.split()[-2:] == ["4.00", "2.00"]


def test_the_page_has_every_workload_and_says_what_failed():
    page = report.markdown(record())

    assert "| swiglu | 2 ms | 8 ms (jax) | 4.00 |" in page
    assert "failed: RuntimeError: no / compiler" in page


def test_a_machine_replaces_its_own_section_of_the_page_alone():
    here, there = record(), record()
    here.machine["cpu"], there.machine["cpu"] = "here", "there"
    page = report.markdown(there, page=report.markdown(here)) + "\n## By hand\n\nkept\n"
    here.outcomes[0].workload = "renamed"
    again = report.markdown(here, page=page)

    assert [line for line in again.splitlines() if line[:3] == "## "] == [line for line in page.splitlines() if line[:3] == "## "]
    assert "### renamed" in again and "### swiglu" in again and again.endswith("kept\n") and again.count("# Performance\n") == 1


def test_the_page_has_the_mean_of_first_calls():
    some = record()
    assert "mean, first call" not in report.markdown(some)
    some.outcomes[0].rows[1] = replace(some.outcomes[0].rows[1], first=2.0)
    sizes = replace(some.outcomes[0], workload="size_1e2", rows=[replace(row) for row in some.outcomes[0].rows])
    sizes.rows[1] = replace(sizes.rows[1], first=8.0)
    some.outcomes.append(sizes)

    page = report.markdown(some)

    assert "first call, jax's time divided by jitgrad's: 8.00 (4.00 without calls and sizes, which share kernels)" in page


def test_averages_are_of_workloads_that_exist():
    assert {name for names in report.GROUPS.values() for name in names} <= set(ALL)


def test_the_summary_has_a_column_for_another_number_of_threads():
    two, one = record(2e-3), record(4e-3)
    for measured, name in ((two, "2"), (one, "1")):
        measured.machine["threads"] = name
        measured.outcomes[0].workload = "mlp"
    page = report.markdown(two, one)

    faster = [report.ratio(r.outcomes[0], next(x for x in r.outcomes[0].rows if x.peer == "jitgrad")) for r in (two, one)]
    assert "| 1 thread |" in page
    assert f"| {faster[1]:.2f} |\n" in page
    assert f"matrix products: {faster[0]:.2f}, 2 threads; {faster[1]:.2f}, 1 thread." in page


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no such thing")
def test_fewer_threads_are_fewer_cpus_while_it_is_measured():
    before = os.sched_getaffinity(0)
    with libraries.only_cpus(1):
        assert len(os.sched_getaffinity(0)) == 1

    assert os.sched_getaffinity(0) == before


def test_the_plot_needs_nothing_from_elsewhere():
    page = report.plot(record())

    assert "http" not in page
    assert "<script" not in page
    assert "0.25x" in page


def test_a_run_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(libraries, "prepare_threads", lambda *_: None)  # the environment is that of all tests
    arguments = ["size_1e1", "--quick", "--peers", "numpy,jitgrad.eager"]
    names = {"json": "r.json", "plot": "p.html", "markdown": "p.md"}
    files = [f"--{form}={tmp_path / name}" for form, name in names.items()]

    result = CliRunner().invoke(main, arguments + files)

    assert result.exit_code == 0, result.output
    assert [row.peer for row in load_record(tmp_path / "r.json").outcomes[0].rows] == ["numpy", "jitgrad.eager"]
    assert (tmp_path / "p.html").exists()
    assert "size_1e1" in (tmp_path / "p.md").read_text(encoding="utf-8")


def test_an_unknown_workload_is_named():
    result = CliRunner().invoke(main, ["sise_1e1"])

    assert result.exit_code != 0
    assert "sise_1e1" in result.output


def test_libraries_that_are_not_installed_are_skipped_with_a_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(libraries.importlib.util, "find_spec", lambda name: None if name == "jax" else object())
    said = []

    found = libraries.load_all(["numpy", "jax", "theano"], 1, said.append)

    assert [peer.name for peer in found] == ["numpy"]
    assert "jax is not installed" in said[0]
    assert "no peer 'theano'" in said[1]
