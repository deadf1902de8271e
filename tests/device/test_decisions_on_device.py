"""Branches that values on a device decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

pytestmark = pytest.mark.numba


def clipped(x: Any, w: Any) -> Any:
    loss = (jg.tanh(x) * w).sum()
    loss.backward()
    norm = (w.grad**2).sum() ** 0.5
    if norm > 1.5:
        w.grad = w.grad / norm
    return loss, int(x.argmax())


def test_each_call_takes_its_branch(cuda: Any) -> None:
    f = jg.jit(clipped)

    for scale in (1.0, 1.0, 3.0, 3.0, 3.0, 1.0, -3.0, 1.0):
        found, expected = [], []
        row = np.linspace(-1.0, 0.9, 5) * scale
        for function, results, device in ((f, found, "cuda"), (clipped, expected, "cpu")):
            w = jg.ones(5, dtype=jg.float64).to(device).requires_grad_()
            loss, place = function(jg.tensor(row).to(device), w)
            results += [loss.item(), place, *w.grad.tolist()]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert f.cache_info().traces == 3


def test_lengths_are_those_of_each_call(cuda: Any) -> None:
    def selected(x: Any) -> Any:
        x[x > 0] *= 2.0
        return x[x > 1].sum() + jg.nonzero(x > 1)[0].sum(), jg.unique(x // 1)

    f = jg.jit(selected)
    for scale in (1.0, 2.0, -1.0, 2.0):
        row = np.linspace(-1.0, 0.9, 5) * scale
        found, expected = f(jg.tensor(row).to("cuda")), selected(jg.tensor(row))
        for a, b in zip(found, expected, strict=True):
            assert a.device == "cuda"
            np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-12)


@pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")
def test_numbers_of_the_device_do_not_decide_dtypes(cuda: Any) -> None:
    """The first-call check ran the traced ops with ``x.sum().item()`` as a float64 array, and found a result of float64."""
    def scaled(x: Any, i: Any) -> Any:
        return x * x.sum().item(), x + x.max().item() * 2, jg.where(x > x.mean().item(), x, 0.0), i * i.sum().item()

    f = jg.jit(scaled)
    row, whole = np.arange(6, dtype=np.float32), np.arange(6, dtype=np.int32)

    for scale in (1, 2):
        found = f(jg.tensor(row * scale, device="cuda"), jg.tensor(whole * scale, device="cuda"))
        for x, y in zip(found, f(jg.tensor(row * scale), jg.tensor(whole * scale)), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x.cpu().numpy(), y.numpy(), rtol=1e-6)
