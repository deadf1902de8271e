"""Without numba all works but users' functions with branches or loops in kernels, backend="numba" and ejected modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import jitgrad as jg
from jitgrad.core.errors import BackendError

pytestmark = pytest.mark.numba


@jg.elementwise
def halvings(x):
    """How often x can be halved until it is at most 1."""
    count = 0.0
    while x > 1.0:
        x = x / 2.0
        count += 1.0
    return count


@pytest.fixture(autouse=True)
def without_numba(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))  # no kernel of an earlier process


def test_kernels_need_no_numba():
    f = jg.jit(jg.value_and_grad(lambda x: (jg.tanh(x @ x.T) * 2.0).sum()))

    value, gradient = f(jg.rand(8, 8))

    assert value.shape == () and gradient.shape == (8, 8)
    assert f.cache_info().kernels_compiled > 0


def test_functions_of_users_run_eagerly_and_say_what_their_kernels_need():
    x = jg.tensor([0.5, 8.0])

    assert halvings(x).tolist() == [0.0, 3.0]
    with pytest.raises(BackendError, match=r"halvings.* needs numba, which is not installed: pip install 'jitgrad\[numba\]'"):
        jg.jit(lambda x: halvings(x) + 1.0)(x)


def test_the_backend_numba_says_what_it_needs():
    with pytest.raises(BackendError, match=r'^backend="numba" needs numba'):
        jg.jit(lambda x: x + 1.0, backend="numba")(jg.ones(3))


def test_ejected_modules_are_written_and_say_what_they_need(tmp_path: Path):
    files = jg.jit(lambda x: jg.tanh(x) * 2.0).eject(tmp_path / "kernels.py", jg.ones(3))

    with pytest.raises(BackendError, match=r"load_ejected: .*kernels\.py needs numba"):
        jg.load_ejected(files.path)
