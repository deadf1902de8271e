"""Placed terms of a sum are added up by themselves, if that makes one array of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)


def colours(x: Any) -> Any:
    """Luminance by components, and saturation by whole pixels: the gradient of a component is one of few terms."""
    y = jg.exp(x * 0.1)
    light = 0.2 * y[:, 0] + 0.7 * y[:, 1] + 0.1 * y[:, 2]
    return ((light - 0.5) ** 2).sum() + (y * y * jg.sin(y)).sum()


def _kernels(explained: Any) -> int:
    return sum(step.kind == "fused" for step in explained.steps)


def test_components_of_points(same: Any) -> None:
    x = jg.tensor(R.standard_normal((500, 3)))

    compiled = same(jg.value_and_grad(colours), x, rtol=1e-13)

    joined = compiled.graph(x, stage="insert_slices")
    assert str(joined).count("insert_slices") == 1
    apart = jit(jg.value_and_grad(colours), check="off", passes={"join_places": False}).explain(x)
    together = compiled.explain(x)
    assert _kernels(together) == 3 and together.bytes_written < 4.1 * x.nbytes
    assert _kernels(apart) > 3 and apart.bytes_written > 5 * x.nbytes


@pytest.mark.parametrize("places", [((0, 2), (1, 2)), ((0, 1), (1, 2)), ((0, 3), (2, 1)), ((1, 1), (1, 1)), ((2, 1), (0, 1))])
def test_places_that_meet_or_leave_gaps(places: Any, same: Any) -> None:
    """A place has a start and a length along three components."""

    def f(x: Any) -> Any:
        y = x * x
        return jg.tanh(y).sum() + sum((k + 2) * jg.sin(y[:, a : a + n]).sum() for k, (a, n) in enumerate(places))

    same(jg.value_and_grad(f), jg.tensor(R.standard_normal((40, 3))), rtol=1e-13, atol=1e-13)


def test_long_rows_with_gaps_stay_apart() -> None:
    """Kernels read such places at offsets, so that no zeros are written."""

    def f(x: Any) -> Any:
        y = x * x
        return jg.tanh(y).sum() + jg.sin(y[:, :40]).sum() + jg.cos(y[:, 60:]).sum()

    x = jg.tensor(R.standard_normal((30, 100)))
    compiled = jit(jg.grad(f), check="off")
    assert str(compiled.graph(x, stage="join_places")) == str(compiled.graph(x, stage="merge_pads"))


@pytest.mark.parametrize("order", [lambda x, p, q: (x + p) + q, lambda x, p, q: q + (p + x), lambda x, p, q: (p + x) + (q + x)])
def test_order_of_terms(order: Callable[..., Any], same: Any) -> None:
    def f(x: Any) -> Any:
        p, q = jg.pad(x[:, :1], ((0, 0), (0, 1))), jg.pad(jg.exp(x[:, 1:]), ((0, 0), (1, 0)))
        return order(jg.tanh(x), p, q)

    same(f, jg.tensor(R.standard_normal((20, 2))), rtol=1e-14, atol=1e-15)


def test_infinities_stay_in_their_places(same: Any) -> None:
    x = jg.tensor(np.array([[np.inf, 1.0], [2.0, -np.inf], [np.nan, 3.0]]))
    same(lambda x: jg.sin(x * 0) + jg.pad(x[:, :1], ((0, 0), (0, 1))) + jg.pad(x[:, 1:], ((0, 0), (1, 0))), x)
