"""Products of the elements so far: NumPy's bits, gradients at zeros, examples side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.testing import check_grads

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
def test_products_have_the_bits_of_numpy(axis: int, dtype: Any) -> None:
    x = RNG.normal(size=(5, 7)).astype(dtype)
    assert np.array_equal(jg.cumprod(jg.tensor(x), axis).numpy(), np.cumprod(x, axis))
    assert np.array_equal(jg.jit(lambda x: jg.cumprod(x, axis), check="off")(jg.tensor(x)).numpy(), np.cumprod(x, axis))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9])
def test_gradients_are_exact_at_zeros(n: int) -> None:
    x = RNG.normal(size=(n, 2))
    x[n // 2, 0] = 0.0
    check_grads(lambda x: jg.cumprod(x, 0), (x,), order=2)


def test_examples_side_by_side() -> None:
    x = jg.tensor(RNG.normal(size=(3, 4)))
    derived = jg.grad(lambda row: (jg.cumprod(row, 0) ** 2).sum())
    assert np.allclose(jg.vmap(derived)(x).numpy(), [derived(row).numpy() for row in x])


def test_complex_products() -> None:
    x = RNG.normal(size=6) + 1j * RNG.normal(size=6)
    assert np.allclose(jg.cumprod(jg.tensor(x), 0).numpy(), np.cumprod(x))
