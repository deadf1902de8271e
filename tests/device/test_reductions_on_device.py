"""Reductions over any axes are kernels on the CUDA device, and nothing is computed for arrays without elements."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.testing.fake_driver import FakeDriver

X = np.random.default_rng(0).normal(size=(2, 3, 2, 4, 3)).astype(np.float32)
AXES = [axes for count in range(1, 6) for axes in combinations(range(5), count)]


def check(f: Callable[..., Any], *arrays: Any, host: Callable[..., Any] | None = None) -> None:
    """``f`` gives on the device what it gives on the host, op by op and compiled, where the host computes nothing."""
    expected = (host or f)(*map(jg.tensor, arrays))
    compiled, given = jg.jit(f), [jg.tensor(x, device="cuda") for x in arrays]

    assert [step.by for step in compiled.explain(*given).steps if step.by == "the host"] == []
    for found in (f(*given), compiled(*given)):
        assert (found.device, found.shape, found.dtype) == ("cuda", expected.shape, expected.dtype)
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_sums_over_any_axes(driver: FakeDriver) -> None:
    for axes in AXES:
        check(lambda x, axes=axes: x.sum(axis=axes), X)
        check(lambda x, axes=axes: (x * 2.0 - x.sum(axis=axes, keepdims=True)).sum(axis=axes), X[:, ::-1])


@pytest.mark.parametrize("name", ["max", "prod", "any", "mean"])
@pytest.mark.parametrize("dtype", ["f4", "i4", "f2"])
def test_other_reductions_around_kept_axes(name: str, dtype: str, driver: FakeDriver) -> None:
    x = (X * 3).astype(dtype)
    for axes in ((1,), (2,), (1, 3), (0, 2), (0, 2, 4)):
        if dtype == "f2" and name in ("prod", "mean"):
            check(lambda x, axes=axes: getattr(x, name)(axis=axes).astype("float32"), x[:1, :, :, :2])
        else:
            check(lambda x, axes=axes: getattr(x, name)(axis=axes), x)


@pytest.mark.parametrize("axes", [(1,), (1, 3), (0, 2, 4)])
def test_gradients_around_kept_axes(axes: tuple[int, ...], driver: FakeDriver) -> None:
    def gradient(x: Any) -> Any:
        return jg.grad(lambda x: jg.exp(x.sum(axis=axes) * 0.1).sum() + x.max(axis=axes).sum())(x)

    check(gradient, X)


EMPTY: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(axis=1),
    "sum of columns": lambda x: x.sum(axis=0),
    "prod": lambda x: x.prod(axis=0),
    "any": lambda x: x.any(),
    "all": lambda x: x.all(axis=0),
    "max": lambda x: x.max(axis=1),
    "product of nothing": lambda x: x.T @ x,
    "product without rows": lambda x: x @ jg.ones((5, 2), device=x.device),
    "sort": lambda x: jg.sort(x, axis=0),
    "cumsum": lambda x: jg.cumulative_sum(x, axis=1),
    "rows": lambda x: x[jg.zeros(0, dtype="int64", device=x.device)],
    "softmax": jg.softmax,
    "gradient": jg.grad(lambda x: (jg.sort(x, axis=0) * jg.tanh(x)).sum() + (x @ x.T).sum()),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_arrays_need_nothing_of_the_host(name: str, driver: FakeDriver) -> None:
    check(EMPTY[name], np.zeros((0, 5), np.float32))


def test_a_loss_over_an_empty_batch_changes_nothing(driver: FakeDriver) -> None:
    w = jg.ones((5, 2), device="cuda", requires_grad=True)

    @jg.jit
    def step(x: Any) -> Any:
        loss = (jg.relu(x @ w) ** 2).sum()
        loss.backward()
        return loss

    assert step(jg.zeros((0, 5), device="cuda")).item() == 0
    assert w.grad is not None and not w.grad.cpu().numpy().any()
