"""Cheap multiples of transposed arrays are computed where they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)


def step(x: Any) -> Any:
    s = jg.tanh(x)
    return s - s.T * 0.5 + x


def antisymmetric(x: Any) -> Any:
    y = x * x
    return y - (-(y * 2.0)).T


def by_a_computed_number(x: Any) -> Any:
    s = jg.tanh(x)
    return s - (s * s.mean()).T + s.max() * s.T


def several(x: Any) -> Any:
    y = jg.exp(x)
    return y.T * 3.0, (y.T * 0.5 + y).sum(0), (y * 2.0).T @ y, y.T + 1.0 - y


def halves(x: Any) -> Any:
    y = jg.sigmoid(x)
    return (y * 0.25).T * y, (y.T > 0.5) & (y > 0.25), y.T.astype("f4") + y


@pytest.mark.numba
@pytest.mark.parametrize("program", [step, antisymmetric, by_a_computed_number, several, halves])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_values_and_gradients(program: Any, n: int, same: Any) -> None:
    x = jg.tensor(R.standard_normal((n, n)))

    same(program, x, rtol=1e-13, atol=1e-14)
    if program is not halves:
        same(jg.grad(lambda x: sum((y * y).sum() for y in _tuple(program(x)))), x, rtol=1e-12, atol=1e-12)


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("program", [step, antisymmetric])
def test_no_multiple_is_written(program: Any) -> None:
    graph = jit(program, check="off").graph(jg.ones((60, 60)), stage="fuse")

    kernels = [node for node in graph.nodes if node.op.name == "fused"]
    assert [len(node.outs) for node in kernels] == [1, 1]


def test_three_axes(same: Any) -> None:
    def program(x: Any) -> Any:
        y = jg.tanh(x)
        return y + jg.permute_dims(y * 0.5, (1, 2, 0)), y - 2.0 * jg.permute_dims(y, (0, 2, 1))

    same(program, jg.tensor(R.standard_normal((6, 6, 6))), rtol=1e-13)
