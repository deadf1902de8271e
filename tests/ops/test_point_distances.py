"""Distances in blocks and by products: as exact as those from differences, also of points that lie close together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.ops import point_distances
from jitgrad.ops.point_distances import SQUARED_DISTANCES, WEIGHTED_DIFFERENCES, distances_in_blocks
from jitgrad.testing import check_grads

RNG = np.random.default_rng(0)


def points(count: int, d: int, dtype: Any = np.float32) -> Any:
    return RNG.normal(size=(count, d)).astype(dtype)


def exact(x: Any, y: Any) -> Any:
    return np.sqrt(((x[:, None].astype(np.longdouble) - y) ** 2).sum(-1)).astype(np.float64)


@pytest.mark.parametrize("d", [1, 3, 32, 33, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_exact(dtype: Any, d: int) -> None:
    x, y = points(230, d, dtype), points(170, d, dtype)
    y[::3] = x[:57]  # distances of 0
    y[1::3] = np.nextafter(x[:57], dtype(2))  # and of one step in each coordinate
    for shift in (0, 1000):
        a, b = x + dtype(shift), y + dtype(shift)
        out = distances_in_blocks(jg.tensor(a), jg.tensor(b))
        assert out is not None
        assert out.dtype == dtype
        np.testing.assert_allclose(out.numpy(), exact(a, b), rtol=d * np.finfo(dtype).eps)


def test_points_that_are_nearly_all_close_together() -> None:
    x = np.float32(1e3) + points(200, 3)
    assert point_distances._by_products(x, x) is not None
    near = np.float32(1e6) + points(200, 3)
    assert point_distances._by_products(near, near) is None
    np.testing.assert_allclose(jg.cdist(jg.tensor(near), jg.tensor(near)).numpy(), exact(near, near), rtol=1e-6)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e30, 1e-30])
def test_odd_numbers(odd: float) -> None:
    x, y = points(200, 4), points(200, 4)
    x[3, 1] = y[7, 1] = odd
    out = distances_in_blocks(jg.tensor(x), jg.tensor(y))
    assert out is not None
    with np.errstate(all="ignore"):
        expected = np.sqrt(((x[:, None] - y) ** 2).sum(-1))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_which_operands_are_computed_in_blocks() -> None:
    x = jg.tensor(points(200, 4))
    assert distances_in_blocks(x, x) is not None
    assert distances_in_blocks(x[:20], x[:20]) is None  # few
    assert distances_in_blocks(x, x.double()) is None
    assert distances_in_blocks(x[None], x[None]) is None
    assert distances_in_blocks(x.half(), x.half()) is None
    assert distances_in_blocks(x[:, :0], x[:, :0]) is None
    assert distances_in_blocks(x, jg.tensor(points(200, 3))) is None
    assert jg.cdist(x[:0], x).shape == (0, 200)


def test_compiled_functions_fuse_the_differences() -> None:
    x = jg.tensor(points(200, 4))
    compiled = jg.jit(lambda x: jg.grad(lambda x: (jg.cdist(x, x[:180]) ** 2).sum())(x))
    expected = jg.grad(lambda x: (jg.cdist(x, x[:180]) ** 2).sum())(x)
    np.testing.assert_allclose(compiled(x).numpy(), expected.numpy(), rtol=1e-4, atol=1e-3)
    assert SQUARED_DISTANCES.name not in str(compiled.explain(x))


def test_strided_operands() -> None:
    x, y = points(400, 8), points(8, 200)
    for a, b in ((x[::-2, ::2], y[:4].T), (x[::2, ::-2], y[::2, ::-1].T)):
        np.testing.assert_allclose(jg.cdist(jg.tensor(a), jg.tensor(b)).numpy(), exact(a, b), rtol=1e-6)


@pytest.mark.parametrize("d", [2, 40])
def test_gradients_of_the_ops(d: int) -> None:
    x, y, w = points(5, d, np.float64), points(4, d, np.float64), points(5, 4, np.float64)
    check_grads(lambda x, y: jg.ops.operand.apply(SQUARED_DISTANCES, x, y), (x, y), order=2)
    check_grads(lambda x, y, w: jg.ops.operand.apply(WEIGHTED_DIFFERENCES, x, y, w), (x, y, w), order=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_are_those_of_all_differences(dtype: Any) -> None:
    x, y = points(200, 3, dtype), points(180, 3, dtype)
    y[:50] = x[:50]
    grads = []
    for function in (jg.cdist, lambda x, y: jg.linalg.vector_norm(x[:, None] - y[None], axis=-1)):
        a, b = jg.tensor(x, requires_grad=True), jg.tensor(y, requires_grad=True)
        (function(a, b) ** 1.5).sum().backward()
        grads.append((a.grad.numpy(), b.grad.numpy()))
    for ours, expected in zip(*grads, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=2e-4 if dtype == np.float32 else 1e-10, atol=1e-4)


def test_weights_that_are_not_finite() -> None:
    x, y, w = points(20, 3), points(20, 3), points(20, 20)
    w[2, 3] = np.inf
    expected = (w[..., None] * (x[:, None] - y)).sum(1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(point_distances._weighted_differences(x, y, w), expected, rtol=1e-4, atol=1e-5)
