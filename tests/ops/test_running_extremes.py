"""Positions of running extremes are those of a loop: the last of equals, and NaN stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import AxisError

RNG = np.random.default_rng(0)


def looped(line: Any, largest: bool) -> list[int]:
    """The positions by torch's rule."""
    best, positions = 0, []
    for k, x in enumerate(line):
        better = x >= line[best] if largest else x <= line[best]
        if x != x or (line[best] == line[best] and better):
            best = k
        positions.append(best)
    return positions


@pytest.mark.parametrize("length", [1, 2, 9, 3000])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_positions(dtype: str, length: int) -> None:
    x = RNG.integers(0, 2 if dtype == "bool" else 100, length).astype(dtype)
    lines = [x, x[::-1]]
    if dtype.startswith("float") and length > 2:
        late = x.copy()
        late[[length // 2, length - 2]] = np.nan
        lines += [late, np.where(np.arange(length) == 0, np.nan, x).astype(dtype)]
    for line in lines:
        for function, largest in ((jg.cummax, True), (jg.cummin, False)):
            values, indices = function(jg.tensor(line), 0)
            expected = looped(line.tolist(), largest)
            assert indices.dtype == np.int64
            np.testing.assert_array_equal(indices.numpy(), expected)
            np.testing.assert_array_equal(values.numpy(), line[expected])


def test_axes_and_empty_arrays() -> None:
    x = RNG.integers(0, 5, (4, 5, 6)).astype(float)
    for axis in (0, 1, -1):
        expected = np.apply_along_axis(lambda line: looped(line, True), axis, x)
        np.testing.assert_array_equal(jg.cummax(jg.tensor(x), axis).indices.numpy(), expected)
    assert jg.cummax(jg.zeros((0, 3)), 0).indices.shape == (0, 3)
    assert jg.cummax(jg.zeros(0), 0).values.shape == (0,)
    with pytest.raises(AxisError):
        jg.cummax(jg.tensor(2.0), 0)


def test_gradients_compiled_functions_and_examples_side_by_side() -> None:
    x = jg.tensor(RNG.normal(size=(3, 7)), requires_grad=True)
    jg.cummin(x, 1).values.sum().backward()
    expected = [np.bincount(looped(line, False), minlength=7) for line in x.detach().numpy()]
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    by_rows = jg.vmap(lambda row: jg.cummin(row, 0).indices)(x.detach())
    np.testing.assert_array_equal(by_rows.numpy(), jg.cummin(x, 1).indices.numpy())
    compiled = jg.jit(lambda x: jg.cummin(x, 1).indices)(x)
    np.testing.assert_array_equal(compiled.numpy(), by_rows.numpy())
