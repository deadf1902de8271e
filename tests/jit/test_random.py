"""Random numbers under @jit equal eager's, and the generator advances equally."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def draws(x: Any) -> Any:
    noise = jg.randn(4) + jg.rand(4)
    return jg.dropout(x, 0.5) * noise, jg.rand(3)


@pytest.mark.parametrize("check", ["first", "always", "off"])
def test_random_numbers_are_those_of_eager_and_the_generator_advances_equally(check: str) -> None:
    x = jg.ones(4)
    jg.manual_seed(3)
    expected = [draws(x) for _ in range(4)] + [jg.rand(2)]

    f = jit(draws, check=check)
    jg.manual_seed(3)
    found = [f(x) for _ in range(4)] + [jg.rand(2)]

    for a, b in zip(found[:-1], expected[:-1], strict=True):
        np.testing.assert_allclose(a[0].numpy(), b[0].numpy(), rtol=1e-6)
        np.testing.assert_array_equal(a[1].numpy(), b[1].numpy())
    np.testing.assert_array_equal(found[-1].numpy(), expected[-1].numpy())
    assert f.cache_info().traces == 1


def test_a_seed_between_calls_repeats_the_numbers() -> None:
    f = jit(lambda: jg.rand(5))
    jg.manual_seed(1)
    first = f().numpy().copy()
    second = f().numpy().copy()
    jg.manual_seed(1)

    np.testing.assert_array_equal(f().numpy(), first)
    assert (first != second).any()


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_normal_numbers_have_the_bits_of_eager(dtype: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)

    def draw() -> Any:
        return jg.randn(50_000 if backend == "cpu" else 2_000, dtype=dtype), jg.normal(1.5, 0.3, (3, 1001), dtype=dtype)

    f = jit(draw, check="off")
    jg.manual_seed(5)
    expected = draw()
    jg.manual_seed(5)
    found = f()

    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
