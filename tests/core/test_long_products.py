"""Products by halves: NumPy's within rounding, of any length; exact for zeros, infinities and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.long_products import is_long_product, long_product

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(4096,), (5001,), (3, 1999), (2, 65, 64), (127, 67)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_products_are_numpys(dtype: Any, shape: tuple[int, ...]) -> None:
    x = (1 + RNG.normal(size=shape) / 100).astype(dtype)
    for axes in (tuple(range(len(shape))), (len(shape) - 1,)):
        assert is_long_product(shape, axes, x.dtype)
        expected = np.multiply.reduce(x.astype(np.longdouble), axis=axes)
        got = jg.prod(jg.tensor(x), axes)
        assert got.dtype == dtype
        assert got.shape == expected.shape
        count = np.prod([shape[k] for k in axes])  # of roundings, whatever the order; those of float16 are float32's
        np.testing.assert_allclose(got.numpy(), expected, rtol=4 * count**0.5 * np.finfo(dtype).eps)


def test_other_products_are_left_to_numpy() -> None:
    f32, i64 = np.dtype(np.float32), np.dtype(np.int64)
    assert not is_long_product((5000,), (), f32)
    assert not is_long_product((5000, 70), (0,), f32)  # along leading axes NumPy goes through rows
    assert not is_long_product((5000, 3), (1,), f32)
    assert not is_long_product((100,), (0,), f32)
    assert not is_long_product((0, 100), (1,), f32)
    assert not is_long_product((5000,), (0,), i64)


def test_strides_do_not_matter() -> None:
    x = 1 + RNG.normal(size=(90, 80)) / 100
    for view in (x.T, x[::-1, ::-1], x[:, 3:]):
        np.testing.assert_allclose(jg.prod(jg.tensor(view), 1).numpy(), view.prod(1), rtol=1e-13)
        np.testing.assert_array_equal(long_product(view, (1,)), long_product(view.copy(), (1,)))


@pytest.mark.parametrize("odd", [0.0, np.nan, np.inf, -np.inf])
def test_odd_elements(odd: float) -> None:
    x = np.full(4099, 1.001)
    for place in (0, 2049, 4098):
        x[place] = odd
        np.testing.assert_array_equal(jg.prod(jg.tensor(x)).numpy(), odd)
        x[place] = 1.001


def test_gradients_and_compiled_functions() -> None:
    x = jg.tensor(1 + RNG.normal(size=4100) / 100, requires_grad=True)
    out = x.prod()
    out.backward()
    np.testing.assert_allclose(x.grad.numpy(), out.item() / x.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(jg.jit(lambda x: x.prod())(x).item(), out.item(), rtol=1e-12)
