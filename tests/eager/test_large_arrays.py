"""Ops whose NumPy functions take many passes run by kernels on large arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends import eager_kernels
from jitgrad.core.errors import MismatchWarning
from jitgrad.eager.large_arrays import LARGE_ELEMENTS
from tests.wrong_kernels import wrong_functions

LARGE = np.linspace(-4, 4, LARGE_ELEMENTS + 3)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the ops that kernels compute."""
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    names: list[str] = []
    right = eager_kernels._program

    def program(op: Any, *rest: Any) -> Any:
        found = right(op, *rest)
        names.append(op.name if found is not None else f"not {op.name}")
        return found

    monkeypatch.setattr(eager_kernels, "_program", program)
    yield names
    right.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["erf", "erfc", "gelu", "sigmoid", "silu", "mish", "lgamma", "erfinv"])
def test_values_are_those_of_numpy(name: str, dtype: str, programs: list[str]) -> None:
    f, x = getattr(jg, name), jg.tensor(LARGE, dtype=dtype)
    result = f(x)
    with jg.disable_jit():
        expected = f(x)
    assert len(programs) == 1 and not programs[0].startswith("not")

    # the formula of gelu loses digits in its tail, with kernels and with NumPy
    tolerance = 16 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance if name == "gelu" else 0)


def test_layouts_broadcasting_and_numbers(programs: list[str]) -> None:
    x = jg.tensor(LARGE[: 2 * (LARGE_ELEMENTS // 2)].reshape(2, -1))
    cases = [x.T, jg.flip(x, axis=1), x[:, ::-1]]
    for case in cases:
        np.testing.assert_array_equal(jg.erf(case).numpy(), jg.erf(jg.tensor(case.numpy().copy())).numpy())
    row, column = jg.tensor(LARGE[:512]), jg.tensor(np.linspace(0, 1, 1024)[:, None])
    wide = jg.special.xlogy(jg.abs(row), column + 0.5)
    with jg.disable_jit():
        np.testing.assert_allclose(wide.numpy(), jg.special.xlogy(jg.abs(row), column + 0.5).numpy(), rtol=1e-15)
    assert "erf" in programs


def test_gradients_and_in_place_forms(programs: list[str]) -> None:
    x = jg.tensor(LARGE, requires_grad=True)
    jg.gelu(x).sum().backward()
    with jg.disable_jit():
        y = jg.tensor(LARGE, requires_grad=True)
        jg.gelu(y).sum().backward()

    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-13, atol=1e-15)
    z = jg.tensor(LARGE)
    assert z.erf_() is z
    np.testing.assert_array_equal(z.numpy(), jg.erf(jg.tensor(LARGE)).numpy())
    assert {"gelu", "erf"} <= set(programs)


def test_small_arrays_and_what_numpy_computes_itself_are_numpys(programs: list[str]) -> None:
    jg.erf(jg.tensor(LARGE[: LARGE_ELEMENTS - 1]))
    jg.exp(jg.tensor(LARGE)), jg.tensor(LARGE) * 2.0, jg.erf(jg.tensor(LARGE[:9], dtype="float16"))

    assert not programs


def test_other_backends_and_disabled_compilation_use_numpy(programs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("JITGRAD_BACKEND", "python"), ("JITGRAD_DISABLE", "1")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            jg.erf(jg.tensor(LARGE))

    assert not programs


def test_the_first_call_check_compares_with_numpy(
    programs: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Were eager execution to use the same wrong kernel, the check would see nothing."""
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))
    x = jg.tensor(LARGE, dtype="float32")
    for _ in wrong_functions(monkeypatch, {"erf": "sin"}):
        with pytest.warns(MismatchWarning):
            result = jg.jit(lambda x: jg.erf(x) * 3.0)(x)
    with jg.disable_jit():
        np.testing.assert_array_equal(result.numpy(), (jg.erf(x) * 3.0).numpy())


def test_compare_times_what_users_run(programs: list[str]) -> None:
    result = jg.compare(lambda x: jg.erf(x) * 3.0, jg.tensor(LARGE, dtype="float32"), seconds=0.01)

    assert not any(d.problem for d in result.differences) and set(programs) == {"erf"}
