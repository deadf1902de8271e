"""Kernels beside their limits: measured, kept in a record, and listed on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

import jitgrad as jg
from benchmarks import report
from benchmarks.measure import Outcome, Row
from benchmarks.record import Record, load_record, save_record
from benchmarks.roofline import KernelLimit, kernel_limits, line_of

NEAR, FAR = KernelLimit("exp_1", 2_000_000, 0.93, "memory"), KernelLimit("sum_2", 4_000_000, 0.41, "arithmetic")


def record(*kernels: KernelLimit) -> Record:
    rows = [Row("swiglu", name, first=0.5, median=t, low=t, high=t, best=t) for name, t in (("jitgrad", 1.0), ("jax", 2.0))]
    outcome = Outcome("swiglu", "a title", "n=3", 1000, "torch", 1.0, rows, kernels=[*kernels])
    return Record("2026-01-01", {"cpu": "some"}, False, [outcome])


@pytest.mark.numba
def test_only_larger_kernels_have_a_limit() -> None:
    f = jg.jit(lambda x, y: (jg.exp(x) * 2.0, jg.exp(y) @ y))

    (kernel,) = kernel_limits(f, (jg.ones((512, 512)), jg.ones((4, 4))))
    assert kernel.bytes == 2 * 512 * 512 * 4 and kernel.of_limit > 0 and kernel.limit in ("memory", "arithmetic")
    assert kernel_limits(f.eager, (jg.ones((512, 512)), jg.ones((4, 4)))) == []


def test_limits_survive_a_file(tmp_path: Path) -> None:
    save_record(record(FAR, NEAR), tmp_path / "r.json")

    assert load_record(tmp_path / "r.json").outcomes[0].kernels == [FAR, NEAR]


def test_the_page_lists_kernels_far_from_their_limit() -> None:
    page = report.markdown(record(FAR, NEAR))

    assert "80% of their limit or above: 1 of 2. Farthest: `sum_2` (4 MB) 41% of arithmetic; `exp_1` (2 MB) 93%" in page
    assert "### Kernels below 80% of their limit" in page and "* swiglu: `sum_2` (4 MB) 41% of arithmetic\n" in page
    assert "### Kernels below" not in report.markdown(record(NEAR)) and line_of([]) == ""
    assert "Kernels of 1 MB" not in report.markdown(record()).split("## some")[-1]


def test_records_without_limits_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    save_record(record(NEAR), path)
    text = path.read_text(encoding="utf-8")
    start = text.index(',\n   "kernels"')
    path.write_text(text[:start] + text[text.index("]", start) + 1 :], encoding="utf-8")

    save_record(load_record(path), path)
    save_record(record(), other := tmp_path / "other.json")
    assert path.read_text(encoding="utf-8") == other.read_text(encoding="utf-8")  # NaN is null there, and equal to itself
