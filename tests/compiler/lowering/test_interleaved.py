"""Operands between each other's elements, as the coordinates of points are: one array of a kernel, with eager's values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.compiler.lowering.layout import MAX_INTERLEAVED

R = np.random.default_rng(0)


def normalized(x: Any) -> Any:
    return x / jg.sqrt((x * x).sum(axis=-1, keepdims=True))


def rotated(x: Any) -> Any:
    return jg.stack([x[:, 1] * 2, x[:, 0] - x[:, 2], x[:, 2] * x[:, 1]], axis=1)


def radius_and_angle(x: Any) -> Any:
    return jg.hypot(x[:, 0], x[:, 1]), jg.atan2(x[:, 1], x[:, 0]), x[:, 1:] * x[:, :1]


def changed(x: Any) -> Any:
    """In place: the coordinates that are read are written as well."""
    y = x * 1
    y[:, 0] += y[:, 1]
    y[:, 1] *= y[:, 0] - y[:, -1]
    return y


def energy(x: Any) -> Any:
    d = x[1:] - x[:-1]
    return jg.value_and_grad(lambda y: ((y[1:] - y[:-1]) ** 2).sum(axis=-1).sum())(x), jg.softmax(d, -1).max(axis=-1)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "normalized": normalized,
    "rotated": rotated,
    "radius and angle": radius_and_angle,
    "changed": changed,
    "energy": energy,
}


def kernel(function: Any, *args: Any) -> str:
    (only,) = jg.jit(function, check="off").kernels(*args)
    return only.source


@pytest.mark.parametrize(
    ("dtype", "count", "rows", "backend"),
    [  # every pair of two values
        ("float32", 3, 16, "cpu"),
        ("float64", 4, 16, "python"),
        ("float64", 3, 37, "cpu"),
        ("float32", 4, 37, "python"),
        ("float32", 3, 200, "python"),
        ("float64", 4, 200, "cpu"),
    ],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, dtype: str, count: int, rows: int, backend: str) -> None:
    function = PROGRAMS[name]
    whole = R.standard_normal((2 * rows, count + 2)).astype(dtype)
    whole[::5, 1] = np.nan
    for array in (whole[:rows, :count].copy(), whole[::2, 1 : count + 1], whole[::-2, count::-1][:, :count]):
        x = jg.from_numpy(array) if min(array.strides) > 0 else jg.tensor(array)
        expected = optree.tree_leaves(function(x))
        compiled = jg.jit(function, backend=backend, check="off")
        for got, wanted in zip(optree.tree_leaves(compiled(x)), expected, strict=True):
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5 if dtype == "float32" else 1e-12)


def test_coordinates_of_points_are_read_and_written_by_one_pointer_each() -> None:
    source = kernel(normalized, jg.ones((100, 3)))
    assert source.startswith("def kernel(x0, y0, start, stop):")
    assert {"x0[i * 3]", "x0[i * 3 + 1]", "x0[i * 3 + 2]"} <= set(re.findall(r"x0\[.*?\]", source))
    assert {"y0[i * 3] =", "y0[i * 3 + 1] =", "y0[i * 3 + 2] ="} <= set(re.findall(r"y0\[.*?\] =", source))


def test_the_first_one_in_memory_has_the_pointer_whichever_is_read_first() -> None:
    assert "x1[i * 3 + 2]" in kernel(lambda x: x[:, 2] / x[:, 0], jg.ones((100, 3)))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x[:, 0] * x[:, MAX_INTERLEAVED], (100, MAX_INTERLEAVED + 1)),  # too far apart
        (lambda x: x[:-1, 0] * x[1:, 0], (100, 3)),  # between other elements
        (lambda x: x[0] * x[1], (2, 100)),  # rows
    ],
)
def test_others_keep_pointers_of_their_own(function: Any, shape: tuple[int, ...]) -> None:
    assert re.match(r"def kernel\(x0, x1, y0\b", kernel(function, jg.ones(shape)))


def test_memory_that_is_read_and_written_keeps_its_pointers() -> None:
    @jg.jit(check="off")
    def step(x: Any) -> Any:
        x[:, 0] = x[:, 1] * 2
        x[:, 1] = x[:, 0] + x[:, 2]
        return x.sum()

    x, y = jg.ones((50, 3)), jg.ones((50, 3))
    assert float(step(x)) == float(step.eager(y))
    np.testing.assert_array_equal(x.numpy(), y.numpy())
