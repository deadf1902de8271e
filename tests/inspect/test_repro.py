"""Repro scripts run alone, agree where the kernel is correct, and show where it is not."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.inspect.timing import backward_inputs
from jitgrad.jit.repro import write_repro
from jitgrad.testing import random_program
from tests.machine_code import needs_f16c


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


def softmax_of_a_product(x, w):
    h = jg.tanh(x @ w) + x.T[:3].sum(axis=0).reshape(4, 1)
    return jg.softmax(h, axis=-1).sum(axis=0), (h * h).mean()


def script(tmp_path: Path, f: Callable, *args: np.ndarray) -> Path:
    path = tmp_path / "repro.py"
    write_repro(str(path), jg.jit(f).lookup(*args).program, args)
    return path


def run(path: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> int:
    monkeypatch.setattr(sys, "argv", [str(path), *flags])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return int(ended.value.code or 0)


def test_the_script_checks_every_result_of_every_kernel(tmp_path, monkeypatch, capsys):
    args = array(4, 4), array(4, 4)
    path = script(tmp_path, softmax_of_a_product, *args)
    kernels = jg.jit(softmax_of_a_product).kernels(*args)

    assert run(path, monkeypatch) == 0

    lines = capsys.readouterr().out.splitlines()
    assert all(line.endswith("ok") for line in lines)
    assert len({line.split()[0] for line in lines}) == len(kernels)


def test_the_script_of_a_kernel_that_reads_at_offsets_agrees(tmp_path, monkeypatch):
    def stencil(x):
        p, q = jg.pad(x, 1), jg.pad(x, 2, mode="reflect")
        return p[2:, 1:-1] - p[:-2, :-2] + q[:-4, 4:] * jg.roll(jg.tanh(x), (1, -3), (0, 1))

    assert run(script(tmp_path, stencil, array(6, 130)), monkeypatch) == 0


@pytest.mark.parametrize("seed", range(4))
def test_scripts_of_random_programs_agree(seed: int, tmp_path, monkeypatch):
    program = random_program(seed, 14)

    assert run(script(tmp_path, program.function, *program.operands()), monkeypatch) == 0


@needs_f16c
@pytest.mark.parametrize("flags", [(), ("--native",)])
def test_the_script_of_a_float16_kernel_agrees(flags: tuple[str, ...], tmp_path, monkeypatch, capsys):
    path = script(tmp_path, lambda x, w: jg.tanh(x * 0.3 + w).sum(axis=0), array(4, 5).astype("e"), array(5).astype("e"))

    assert run(path, monkeypatch, *flags) == 0
    assert "ok" in capsys.readouterr().out


def test_a_wrong_kernel_is_named(tmp_path, monkeypatch, capsys):
    path = script(tmp_path, lambda x, w: (jg.exp(x @ w), jg.tanh(w)), array(4, 4), array(4, 4))
    text = path.read_text(encoding="utf-8")
    assert " = exp(" in text
    path.write_text(text.replace(" = exp(", " = sin("), encoding="utf-8")

    assert run(path, monkeypatch) == 1

    verdicts = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert sorted(verdicts) == ["WRONG", "ok"]


def test_nan_in_other_places_is_wrong(tmp_path, monkeypatch):
    path = script(tmp_path, lambda x: jg.sqrt(x) * 2, np.abs(array(4)))
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("sqrt(a1)", "sqrt(-a1)"), encoding="utf-8")

    assert "sqrt(-a1)" in path.read_text(encoding="utf-8")
    assert run(path, monkeypatch) == 1


def test_a_step_that_writes_over_its_input_is_recorded_before_it_does(tmp_path, monkeypatch):
    w = jg.tensor(array(5))

    def step(x):
        with jg.no_grad():
            w.sub_(x * 0.5)

    f = jg.jit(step)
    program = f.lookup(jg.tensor(array(5))).program
    path = tmp_path / "repro.py"
    inputs = [np.ones(5, "f4"), np.full(5, 2, "f4")]
    write_repro(str(path), program, inputs)

    assert run(path, monkeypatch) == 0
    np.testing.assert_array_equal(inputs[0], np.ones(5, "f4"))
    np.testing.assert_array_equal(inputs[1], np.full(5, 2, "f4"))


def test_a_users_scalar_function_has_to_be_filled_in(tmp_path, monkeypatch):
    @jg.elementwise
    def grown(x):
        while x < 10.0:
            x = x * x + 1.0
        return x

    path = script(tmp_path, lambda x: grown(x) + 1, array(4))
    monkeypatch.setattr(sys, "argv", [str(path)])
    with pytest.raises(SystemExit, match=r"test_repro\.py:\d+, and delete this line"):
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.numba
def test_the_machine_code_of_the_same_kernels_is_checked_too(tmp_path, monkeypatch, capsys):
    path = script(tmp_path, softmax_of_a_product, array(4, 4), array(4, 4))

    assert run(path, monkeypatch, "--native") == 0
    assert "ok" in capsys.readouterr().out


def test_scripts_of_steps_and_of_backward_programs_are_written(tmp_path):
    """Kernels with several results, epilogues and updates of many parameters of one structure."""
    weights = [jg.tensor(array(3, 4 + k % 2), requires_grad=True) for k in range(40)]
    optimizer = jg.optim.AdamW(weights, lr=1e-2)

    def step(x, scale):
        optimizer.zero_grad()
        loss = sum(((jg.tanh(w) * x) * scale).sum() for w in weights)
        loss.backward()
        optimizer.step()
        return loss, jg.var(x, axis=0), x.sum(axis=1), jg.softmax(x, axis=0)

    x = jg.tensor(array(3, 1), requires_grad=True)
    executable = jg.jit(step).lookup(x.detach(), 0.5)
    operands = [np.asarray(getattr(v, "_data", v)) for v in executable.operands([x.detach(), 0.5])]
    write_repro(str(tmp_path / "step.py"), executable.program, operands)

    outside = jg.jit(lambda x: (jg.softmax(x * 2, axis=0) ** 2).sum()).lookup(x)
    inputs = backward_inputs(outside, [x._data])
    write_repro(str(tmp_path / "backward.py"), outside.op.backward, inputs)

    assert {path.suffix for path in tmp_path.iterdir()} == {".py", ".npz"}
