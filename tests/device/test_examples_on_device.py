"""The examples and the benchmarks with ``--device cuda``, on the emulated device, a few steps of small sizes."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.cli import main as benchmarks
from benchmarks.workloads import ALL
from jitgrad.backends.cuda_target.emulated_device import emulated_device

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES: dict[str, dict[str, Any]] = {
    "black_box_loss": {"spots": 4, "strikes": 3, "steps": 2},
    "burgers_pinn": {"steps": 2, "points": 20, "width": 4, "layers": 2},
    "digits": {"epochs": 1, "batch": 900, "dtypes": ("float32",)},
    "digits_vae": {"epochs": 1, "batch": 900},
    "gaussian_process": {"training": 20, "steps": 2},
    "gru_text": {"steps": 2, "unroll": 3, "batch": 2, "hidden": 8},
    "lstm_text": {"steps": 1, "window": 4, "batch": 2, "width": 8, "layers": 1},
    "n_body": {"bodies": 8, "rounds": 2},
    "option_calibration": {"strikes": 50},
    "shallow_water": {"size": 8, "steps": 2, "descents": 1},
    "small_gpt": {"steps": 2, "context": 8, "batch": 2, "width": 8, "layers": 1},
}
SLOW = {"option_calibration", "small_gpt", "lstm_text"}
NEEDS_A_GPU = {"eject_step"}  # it runs what it wrote by numba.cuda


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in SIZES])
def test_examples_run_on_a_device(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if "sklearn" in (EXAMPLES / f"{name}.py").read_text():
        pytest.importorskip("sklearn")
    if "scipy" in (EXAMPLES / f"{name}.py").read_text():
        pytest.importorskip("scipy")
    monkeypatch.syspath_prepend(str(EXAMPLES.parent))
    with emulated_device() as driver:
        importlib.import_module(f"examples.{name}").main(**SIZES[name], device="cuda")

    assert driver.counts.launches > 10


def test_every_example_takes_a_device() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*SIZES, *NEEDS_A_GPU}
    assert all('"--device"' in (EXAMPLES / f"{name}.py").read_text() for name in names)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks set variables that other libraries read; this sets them back."""
    for name in ("XLA_FLAGS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")


@pytest.mark.usefixtures("environment")
def test_benchmarks_run_on_a_device() -> None:
    arguments = ["rms_norm", "--device", "cuda", "--quick", "--scale", "2", "--peers", "jitgrad", "--threads", "1"]
    with emulated_device() as driver:
        result = CliRunner().invoke(benchmarks, arguments)

    assert result.exit_code == 0, result.output
    assert driver.counts.launches > 0
    assert re.search(r"rows=16\b", result.output), "twice the rows"


def test_workloads_grow_by_rows() -> None:
    grown = {name: w.scaled(w.sizes, 16) for name, w in ALL.items() if w.scaled(w.sizes, 16) != w.sizes}

    assert {"gelu_chain", "rms_norm", "cross_entropy", "batch_norm", "mlp_step_32", "adam_mixed"} <= set(grown)
    assert grown["rms_norm"]["rows"] == 16 * ALL["rms_norm"].sizes["rows"]
    assert grown["rms_norm"]["width"] == ALL["rms_norm"].sizes["width"]
    assert all(w.scaled(w.sizes, 1) == w.sizes for w in ALL.values())
