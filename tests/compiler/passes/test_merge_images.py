"""One product for all images of a convolution: which convolutions get it, and their values and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

R = np.random.default_rng(0)
LONG = ((3, 8, 5, 6), (4, 8, 3, 3))  # 72 elements of a window, 12 windows of an image


def tensors(*shapes: Sequence[int]) -> list[jg.Tensor]:
    return [jg.tensor(R.standard_normal(shape)) for shape in shapes]


def products(f: Any, *args: Any) -> list[tuple[int, ...]]:
    """The shapes of the matrix products of ``f``."""
    graph = f.graph(*args, stage="merge_images")
    lines = [line for line in str(graph).splitlines() if "= matmul(" in line]
    return [tuple(map(int, line.split("[")[1].split("]")[0].split(","))) for line in lines]


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def assert_like_eager(f: Any, *args: Any) -> None:
    for found, expected in zip(leaves(f(*args)), leaves(f.eager(*args)), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


def test_long_and_few_windows_are_one_product() -> None:
    """The gradient of the weights was the sum of as many matrices as there are images."""
    f = jg.jit(jg.value_and_grad(lambda w, x: jg.sum(jg.tanh(jg.conv2d(x, w))), argnums=(0, 1)))
    x, w = tensors(*LONG)

    assert sorted(products(f, w, x)) == [(1, 4, 36), (1, 4, 72), (1, 72, 36)]
    assert_like_eager(f, w, x)


@pytest.mark.parametrize(
    "shapes",
    [((3, 1, 9, 9), (4, 1, 3, 3)), ((1, 8, 5, 6), (4, 8, 3, 3)), ((3, 8, 5, 6), (4, 8, 1, 1))],
    ids=["many windows", "one image", "windows of one pixel"],
)
def test_other_convolutions_keep_a_product_for_each_image(shapes: Any) -> None:
    x, w = tensors(*shapes)
    f = jg.jit(lambda x, w: jg.conv2d(x, w))

    assert products(f, x, w) == [(x.shape[0], 1, 4, *[np.prod(f.eager(x, w).shape[2:])])]
    assert_like_eager(f, x, w)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"padding": 1},
    {"padding": 4},  # more than the kernel
    {"stride": (4, 3)},  # more than the kernel
    {"dilation": (2, 1), "padding": "same"},
    {"groups": 2},
    {"groups": 4, "stride": 2, "padding": (1, 2), "dilation": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_values_and_gradients_of_first_and_second_order(options: dict[str, Any]) -> None:
    x, w, b = tensors(LONG[0], (4, 8 // options.get("groups", 1), 3, 3), (4,))

    def loss(x: Any, w: Any, b: Any) -> Any:
        return jg.sum(jg.tanh(jg.conv2d(x, w, b, **options)) ** 2)

    def steepness(x: Any, w: Any, b: Any) -> Any:
        return sum(jg.sum(g * g) for g in jg.grad(loss, argnums=(0, 1, 2))(x, w, b))

    assert_like_eager(jg.jit(jg.value_and_grad(loss, argnums=(0, 1, 2))), x, w, b)
    assert_like_eager(jg.jit(jg.grad(steepness, argnums=(0, 1, 2))), x, w, b)


def test_a_transposed_convolution() -> None:
    x, w = tensors((3, 6, 3, 4), (6, 5, 4, 4))
    f = jg.jit(jg.value_and_grad(lambda x, w: jg.sum(jg.nn.functional.conv_transpose2d(x, w, stride=2) ** 3), argnums=(0, 1)))

    assert (1, 80, 36) in products(f, x, w)
    assert_like_eager(f, x, w)


def test_windows_that_something_else_reads_too() -> None:
    x, w = tensors((3, 8, 5, 6), (4, 72))

    def f(x: Any, w: Any) -> Any:
        columns = jg.nn.functional.unfold(x, 3)
        return jg.matmul(jg.reshape(w, (1, 4, 72)), jg.reshape(columns, (3, 1, 72, 12))), jg.sum(columns, axis=(0, 2))

    assert_like_eager(jg.jit(f), x, w)


def test_an_empty_batch_and_one_pixel() -> None:
    f = jg.jit(lambda x, w: jg.conv2d(x, w))
    _, w = tensors(*LONG)
    assert f(jg.zeros((0, 8, 5, 6), dtype=np.float64), w).shape == (0, 4, 3, 4)
    assert_like_eager(f, *tensors((5, 8, 3, 3)), w)
