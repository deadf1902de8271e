"""The command ``jitgrad``, run in this process."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import jitgrad
import jitgrad as jg
from jitgrad.backends.llvm import disk_cache
from jitgrad.cli import commands, demo
from jitgrad.cli.commands import main
from jitgrad.cli.demo_report import beside_the_users_lines
from jitgrad.core import config
from jitgrad.core.errors import CudaError

SCRIPT = """
import sys
import jitgrad as jg

@jg.jit
def scaled(x):
    return jg.tanh(x) * 2

@jg.jit
def shifted(x):
    return x + 1

print("arguments", sys.argv[1:])
scaled(jg.ones(4))
scaled(jg.ones(5))
shifted(jg.ones(3))
"""

DRIFTING = """
import jitgrad as jg
calls = []

def forward(x):
    calls.append(1)
    return x + (50.0 if len(calls) == 1 else 0.0)

drift = jg.custom_op(forward=forward, vjp=lambda g, out, x: (g,), abstract=lambda x: x)
f = jg.jit(lambda x: drift(x))
f(jg.ones(3))
"""


@pytest.fixture(autouse=True)
def settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if request.node.get_closest_marker("numba") is None:
        monkeypatch.setenv("JITGRAD_BACKEND", "python")
        monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("JITGRAD_CHECK", "JITGRAD_DISABLE"):
        monkeypatch.delenv(name, raising=False)


def jitgrad_command(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


# --- inspect -------------------------------------------------------------------------------------------------------


def test_inspect_shows_every_function_the_script_called(script: Path):
    result = jitgrad_command("inspect", script, "--", "one", "two")

    assert result.exit_code == 0, result.output
    assert "arguments ['one', 'two']" in result.output
    assert result.output.count("scaled: 2 ops -> 1 steps") == 2
    assert "shifted: 1 ops -> 1 steps" in result.output
    assert "def kernel(" in result.output


def test_inspect_can_show_one_function_without_kernels(script: Path):
    result = jitgrad_command("inspect", "--no-kernels", f"{script}:shifted")

    assert result.exit_code == 0, result.output
    assert "shifted: 1 ops" in result.output
    assert "scaled: " not in result.output and "def kernel(" not in result.output


def test_inspect_names_the_functions_there_are(script: Path):
    result = jitgrad_command("inspect", f"{script}:missing")

    assert result.exit_code == 1
    assert "no @jit function 'missing' was called; called were: scaled, shifted" in result.output


def test_inspect_writes_a_report_for_every_specialisation(script: Path, tmp_path: Path):
    assert jitgrad_command("inspect", "--report", tmp_path / "reports", script).exit_code == 0

    names = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert names == ["0_scaled.html", "1_scaled.html", "2_shifted.html"]


def test_a_folder_for_reports_that_cannot_be_made_stops_before_the_script(script: Path):
    result = jitgrad_command("inspect", "--report", script / "reports", script)

    assert result.exit_code == 2
    assert "cannot make the folder" in result.output
    assert "arguments" not in result.output


def test_a_demonstration_on_a_missing_device_says_what_it_needs(monkeypatch: pytest.MonkeyPatch):
    def missing() -> None:
        raise CudaError("no CUDA driver was found")

    monkeypatch.setattr(commands, "cuda_device", missing)
    result = jitgrad_command("demo", "--device", "cuda")

    assert result.exit_code == 2
    assert "Invalid value for --device: no CUDA driver was found" in result.output


def test_inspect_still_shows_what_a_failing_script_compiled(script: Path):
    script.write_text(SCRIPT + "\nraise RuntimeError('too late')\n", encoding="utf-8")

    result = jitgrad_command("inspect", script)

    assert result.exit_code == 1
    assert "shifted: 1 ops" in result.output
    assert "RuntimeError: too late" in result.output


def test_a_script_that_is_not_there_is_a_usage_error():
    result = jitgrad_command("inspect", "nowhere.py")

    assert result.exit_code == 2
    assert "there is no file nowhere.py" in result.output


# --- verify --------------------------------------------------------------------------------------------------------


def test_verify_counts_calls_and_restores_the_settings(script: Path):
    result = jitgrad_command("verify", script)

    assert result.exit_code == 0, result.output
    assert "every call agreed with eager" in result.output
    assert config.read("JITGRAD_CHECK") == ""


def test_verify_checks_every_call_not_only_the_first(script: Path):
    later = DRIFTING.replace("len(calls) == 1", "len(calls) == 3") + "f(jg.ones(3))\n"
    script.write_text(later, encoding="utf-8")

    result = jitgrad_command("verify", script)

    assert result.exit_code == 1
    assert "disagrees with eager" in result.output


def test_verify_fails_where_fused_and_eager_differ(script: Path):
    script.write_text(DRIFTING, encoding="utf-8")

    result = jitgrad_command("verify", script)

    assert result.exit_code == 1
    assert "disagrees with eager" in result.output and "every call agreed" not in result.output


def test_verify_of_a_script_without_jit_verifies_nothing(script: Path):
    script.write_text("print(1)", encoding="utf-8")

    result = jitgrad_command("verify", script)

    assert result.exit_code == 1
    assert "no @jit function was called" in result.output


# --- cache ---------------------------------------------------------------------------------------------------------


def test_cache_commands_show_check_and_remove_kernels():
    disk_cache.store_entry("ab12", disk_cache.Stored("def kernel(): pass", b"object code", ()))

    assert "1 kernels" in jitgrad_command("cache", "info").output
    assert "ab12" in jitgrad_command("cache", "list").output
    assert jitgrad_command("cache", "verify").output == "1 good, 0 damaged\n"
    assert jitgrad_command("cache", "clear").output == "1 kernels removed\n"
    assert jitgrad_command("cache", "list").output == ""


def test_cache_verify_finds_damage():
    disk_cache.store_entry("ab12", disk_cache.Stored("def kernel(): pass", b"object code", ()))
    (path,) = disk_cache.directory().glob("ab12*")
    path.write_bytes(path.read_bytes()[:-1])

    result = jitgrad_command("cache", "verify")

    assert result.exit_code == 1
    assert "ab12: its checksum is wrong" in result.output and "0 good, 1 damaged" in result.output


def test_cache_info_says_why_the_cache_is_not_used(tmp_path: Path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernels").write_text("a file", encoding="utf-8")

    result = jitgrad_command("cache", "info")

    assert result.exit_code == 1
    assert "not used" in result.output


# --- doctor --------------------------------------------------------------------------------------------------------


def test_doctor_runs_a_kernel_and_names_what_it_found():
    result = jitgrad_command("doctor")

    assert result.exit_code == 0, result.output
    for word in ("numpy", np.__version__, "BLAS", "threads", "kernel cache", "a kernel (python)", "GPU"):
        assert word in result.output
    assert "FAIL" not in result.output


def test_doctor_fails_where_something_is_broken(tmp_path: Path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernels").write_text("a file", encoding="utf-8")

    result = jitgrad_command("doctor")

    assert result.exit_code == 1
    assert "FAIL kernel cache" in result.output


def test_doctor_examines_the_environment_variables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JITGRAD_THREADS", "3")
    monkeypatch.setenv("JITGRAD_NUM_THREADS", "all")
    result = jitgrad_command("doctor")

    assert result.exit_code == 1
    assert "FAIL JITGRAD_THREADS    there is no such variable (did you mean 'JITGRAD_NUM_THREADS'?)" in result.output
    assert "JITGRAD_NUM_THREADS='all': expected a positive integer" in result.output


def test_doctor_prints_every_environment_variable():
    lines = jitgrad_command("doctor", "--env").output.splitlines()

    assert len(lines) == len(config.VARIABLES) + 2
    for variable in config.VARIABLES.values():
        assert any(line.startswith(f"| `{variable.name}` |") and variable.doc in line for line in lines)


# --- bench and demo ------------------------------------------------------------------------------------------------


def test_bench_without_a_checkout_says_where_the_benchmarks_are(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(jitgrad, "__file__", str(tmp_path / "site-packages" / "jitgrad" / "__init__.py"))

    result = jitgrad_command("bench")

    assert result.exit_code == 1
    assert "part of the repository, not of the installed package" in result.output


def test_bench_hands_its_arguments_to_the_benchmarks():
    assert "small_chain" in jitgrad_command("bench", "--list").output


@pytest.mark.numba
def test_demo_trains_both_ways_along_the_same_losses():
    result = jitgrad_command("demo", "--epochs", "1", "--seconds", "0.05", "--size", "20000")

    assert result.exit_code == 0, result.output
    for word in ("44 steps", "the losses differ by at most", "22 ops in 1 loop", "agrees with eager", "def kernel("):
        assert word in result.output
    assert "DISAGREES" not in result.output


def test_the_demo_shows_one_short_kernel_with_the_users_lines():
    options = [jg.rand(16) + 1.0 for _ in range(4)]
    (kernel,) = jg.jit(demo.option_prices).kernels(*options)

    text = beside_the_users_lines(kernel)

    assert len(text.splitlines()) <= 30
    for line in inspect.getsource(demo.option_prices).splitlines()[2:]:
        assert f"# {line.strip()}\n" in text


def test_without_scikit_learn_the_demo_generates_images(monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)

    found = demo.load_dataset()

    assert "generated" in found.source
    assert found.images.shape == (1797, 64) and found.images.dtype == np.float32
    assert found.images.min() >= 0 and found.images.max() <= 1
    assert set(found.labels) == set(range(10))


def test_generated_images_can_be_learned():
    run = demo.Trainer(demo.generated_dataset(), lambda step: step).train(12)

    assert run.losses[-1] < run.losses[0] / 2
    assert run.accuracy > 0.8


def test_python_minus_m_is_the_command():
    found = subprocess.run([sys.executable, "-m", "jitgrad", "--version"], capture_output=True, text=True, check=True)

    assert "jitgrad" in found.stdout
