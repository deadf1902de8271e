"""Cyclic shifts are read at offsets, in gradients too, and cheap ops follow them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Graph
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)


def tensor(*shape: int, dtype: str = "f8") -> jg.Tensor:
    return jg.tensor(R.uniform(0.5, 1.5, shape).astype(dtype))


def fused(function: Any, *args: Any) -> Graph:
    return jit(function, check="off").graph(*args, stage="fuse")


def kernels(function: Any, *args: Any) -> int:
    return sum(node.op.name == "fused" for node in fused(function, *args).nodes)


def rolls(function: Any, *args: Any) -> int:
    graph = jit(function, check="off").graph(*args, stage="recognize_rolls")
    return sum(node.op.name == "roll" for node in graph.nodes)


def slope(x: Any, axis: int) -> Any:
    return (jg.roll(x, -1, axis) - jg.roll(x, 1, axis)) / 2.0


def advected(h: Any, u: Any) -> Any:
    for _ in range(2):
        u = u - 0.1 * (u * slope(u, 1) + slope(h, 0))
        h = h - 0.1 * slope(h * u, 1)
    return (h * h).sum() + (h * u * u).sum()


def test_the_gradient_of_a_shift_is_no_kernel_of_its_own(same: Any) -> None:
    args = tensor(32, 40), tensor(32, 40)
    loss = jg.value_and_grad(advected, (0, 1))

    assert kernels(loss, *args) == 9
    same(loss, *args, rtol=1e-12)


@pytest.mark.numba
@pytest.mark.parametrize("shape", [(5, 64), (64, 5), (33, 31), (1, 50), (50, 1), (3, 4, 32)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values_and_gradients(same: Any, shape: tuple[int, ...], dtype: str) -> None:
    limit = 1e-4 if dtype == "f4" else 1e-12
    args = tensor(*shape, dtype=dtype), tensor(*shape, dtype=dtype)

    same(jg.value_and_grad(advected, (0, 1)), *args, rtol=limit, atol=limit)


def test_second_derivatives(same: Any) -> None:
    def curvature(x: Any) -> Any:
        return (jg.grad(lambda x: (slope(x, 1) ** 3 * jg.roll(x, 5, 1)).sum())(x) ** 2).sum()

    same(jg.grad(curvature), tensor(3, 40), rtol=1e-12)


def test_a_shift_that_the_user_joins(same: Any) -> None:
    def f(x: Any) -> Any:
        y = jg.exp(x)
        return jg.concat([y[:, 3:], y[:, :3]], 1) * y - jg.concat([y[-1:], y[:-1]], 0)

    assert rolls(f, tensor(30, 40)) == 2
    same(f, tensor(30, 40), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda y: jg.concat([y[:, :3], y[:, 3:]], 1),  # in order
        lambda y: jg.concat([y[:, 4:], y[:, :3]], 1),  # one column is missing
        lambda y: jg.concat([y[:, 3:], y[:, 1:4]], 1),
        lambda y: jg.concat([y[:, 3:], y[:, 2::-1]], 1),
        lambda y: jg.concat([y[:, 3:], jg.sin(y)[:, :3]], 1),
        lambda y: jg.concat([y[:, 3:], y[:, :3], y[:, :1]], 1),
        lambda y: jg.roll(y, 1, 1),  # a result is written in any case
    ],
)
def test_what_is_no_shift_of_one_value(same: Any, f: Any) -> None:
    def g(x: Any) -> Any:
        y = f(jg.exp(x))
        return y, jg.cos(y)

    assert rolls(g, tensor(30, 40)) == 0
    same(g, tensor(30, 40), rtol=1e-12, atol=1e-12)


def test_short_rows_keep_their_slices(same: Any) -> None:
    def f(x: Any) -> Any:
        return jg.exp(jg.roll(jg.sin(x), 1, 1)) + x

    assert rolls(f, tensor(500, 3)) == 0
    same(f, tensor(500, 3), rtol=1e-12, atol=1e-12)


def test_multiples_are_computed_after_the_shift() -> None:
    """Three shifts of three multiples of ``y`` read ``y``, and nothing else is written."""
    def f(x: Any) -> Any:
        y = jg.exp(x).sum(2)
        return jg.roll(-y, 1, 1) + jg.roll(0.5 * y, 2, 1) * jg.roll(y * 3.0 + 1.0, -1, 0)

    first, second = (node for node in fused(f, tensor(30, 40, 5)).nodes if node.op.name == "fused")

    assert [out.aval.shape for out in first.outs] == [(30, 40)]
    assert len(second.outs) == 1


def test_infinities_and_nan_of_shifted_values(same: Any) -> None:
    x = np.zeros((6, 40))
    x[0, 0], x[-1, -1], x[2, 39] = np.inf, np.nan, -np.inf

    same(lambda x: slope(x, 1) * slope(-x, 0) + 1.0 / jg.roll(x, 1, 1), jg.tensor(x))


def test_both_orders_of_a_sum_of_places() -> None:
    """The gradient's places come in either order."""
    x = tensor(30, 40)
    for shift in (1, -1, 13, 39):
        assert rolls(jg.grad(lambda x, by=shift: (jg.roll(jg.exp(x), by, 1) * jg.sin(x)).sum()), x) >= 1


def test_the_threshold_is_that_of_reads_at_offsets() -> None:
    assert Tuning().reads_at_offsets
    assert rolls(lambda x: jg.exp(jg.roll(jg.sin(x), 1, 0)), tensor(30, Tuning().min_offset_row - 1)) == 0
    assert rolls(lambda x: jg.exp(jg.roll(jg.sin(x), 1, 0)), tensor(30, Tuning().min_offset_row)) == 1
