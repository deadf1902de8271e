"""Ejected modules as files: their text, their tests, without jitgrad, and edited."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, EjectedMismatchError
from jitgrad.jit.ejection import Ejected
from tests.compiled import assert_same
from tests.eject.ejecting import Eject, tensor, text_of

BLOCKER = """
import runpy, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "jitgrad":
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocker())
runpy.run_path({path!r}, run_name="__main__")
assert "jitgrad" not in sys.modules
"""


def layer(x: Any, w: Any, b: Any) -> Any:
    h = jg.tanh(x @ w + b)
    return (h * 0.5).sum(), jg.softmax(h, -1)


def update(w: Any, g: Any, lr: float) -> None:
    w -= lr * g


def run_test(files: Ejected, *, compiled: bool) -> subprocess.CompletedProcess[str]:
    """The test beside the module, in a process where jitgrad cannot be imported."""
    script = BLOCKER.format(path=files.test)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0" if compiled else "1"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=Path(files.path).parent, capture_output=True, text=True, check=False
    )


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("compiled", [pytest.param(True, marks=pytest.mark.numba), False])
def test_it_runs_without_jitgrad(compiled: bool, eject: Eject) -> None:
    files, _ = eject(layer, tensor(6, 5), tensor(5, 7), tensor(7))
    result = run_test(files, compiled=compiled)
    assert result.returncode == 0, result.stderr
    assert "agrees with the recorded results" in result.stderr


@pytest.mark.usefixtures("in_python")
def test_the_test_beside_it_fails_for_another_result(eject: Eject) -> None:
    files, _ = eject(layer, tensor(6, 5), tensor(5, 7), tensor(7))
    edit(files, "* np.float32(0.5)", "* np.float32(0.6)")
    result = run_test(files, compiled=False)
    assert result.returncode == 1
    assert re.search(r"AssertionError: result\[0\]\[\] is np\.float32", result.stderr)


def edit(files: Ejected, old: str, new: str) -> None:
    text = text_of(files)
    assert old in text
    Path(files.path).write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.usefixtures("in_python")
def test_an_edit_that_keeps_the_results_is_loaded(eject: Eject) -> None:
    x, w, b = tensor(6, 5), tensor(5, 7), tensor(7)
    files, _ = eject(layer, x, w, b)
    edit(files, "x0[r * n + j]", "x0[j + n * r]")
    assert_same(jg.load_ejected(files.path)(x, w, b), layer(x, w, b), ulp=8)


@pytest.mark.usefixtures("in_python")
def test_an_edit_that_changes_a_result_is_refused(eject: Eject) -> None:
    files, _ = eject(layer, tensor(6, 5), tensor(5, 7), tensor(7))
    edit(files, "y1[r * n + j] = divide", "y1[r * n + j] = np.float32(0.9) * divide")
    expected = (
        r"computes something else than the function: result\[1\] at \[\d, \d\] is np\.float32\(.*\), and eager execution "
        r"gave np\.float32\(.*\) \(off by .*, rounding explains .*\)\n  .*ejected\.py:\d+: kernel_1_\w+ computes it\n"
        r'Correct it, eject the function again, or load it with check="off" if this is meant\.'
    )
    with pytest.raises(EjectedMismatchError, match=expected) as caught:
        jg.load_ejected(files.path)
    line = int(re.search(r"ejected\.py:(\d+)", str(caught.value))[1])  # type: ignore[index]
    assert text_of(files).splitlines()[line - 1].startswith("def kernel_1_")


@pytest.mark.usefixtures("in_python")
def test_an_edit_that_is_meant_is_loaded_unchecked(eject: Eject) -> None:
    x, w, b = tensor(6, 5), tensor(5, 7), tensor(7)
    files, _ = eject(layer, x, w, b)
    edit(files, "* np.float32(0.5)", "* np.float32(0.25)")
    total, _ = jg.load_ejected(files.path, check="off")(x, w, b)
    assert_same(total, layer(x, w, b)[0] * 0.5, rtol=1e-5)


@pytest.mark.usefixtures("in_python")
def test_a_result_of_another_shape_is_refused(eject: Eject) -> None:
    files, _ = eject(lambda x: x * 2.0, tensor(3))
    edit(files, "'result': result,", "'result': result[:2],")
    with pytest.raises(EjectedMismatchError, match=r"result is float32\[2\], not float32\[3\]"):
        jg.load_ejected(files.path)


@pytest.mark.usefixtures("in_python")
def test_a_module_without_its_parts_is_refused(eject: Eject) -> None:
    files, _ = eject(lambda x: x * 2.0, tensor(3))
    edit(files, "def example(", "def sample(")
    with pytest.raises(ArgumentError, match="defines no function 'example'; eject the function again"):
        jg.load_ejected(files.path)


def test_text_of_a_layer(tmp_path: Path, golden: Any) -> None:
    assert text_of(jg.jit(layer).eject(tmp_path / "layer.py", tensor(6, 5), tensor(5, 7), tensor(7))) == golden


def test_text_of_an_update_in_place(tmp_path: Path, golden: Any) -> None:
    assert text_of(jg.jit(update).eject(tmp_path / "update.py", tensor(3, 4), tensor(3, 4, seed=1), 0.1)) == golden
