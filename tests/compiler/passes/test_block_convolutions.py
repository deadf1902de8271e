"""Which convolutions have a part of their windows in memory at a time, and their values and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.convolution_ops import WEIGHT_GRADIENT

R = np.random.default_rng(0)
LONG = ((3, 8, 5, 6), (4, 8, 3, 3))  # 72 elements of a window, 12 windows of an image


def tensors(*shapes: Sequence[int]) -> list[jg.Tensor]:
    return [jg.tensor(R.standard_normal(shape)) for shape in shapes]


def convolutions(f: Any, *args: Any) -> list[str]:
    """The products of windows of ``f``, by name; "unfold" and "fold" are windows that are in memory as a whole."""
    names = {"convolve", "convolve_transposed", "weight_gradient", "unfold", "fold"}
    graph = f.graph(*args, stage="block_convolutions")
    return sorted(node.op.name for node in graph.nodes if node.op.name in names)


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def assert_like_eager(f: Any, *args: Any) -> None:
    for found, expected in zip(leaves(f(*args)), leaves(f.eager(*args)), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


ALL = ["convolve", "convolve_transposed", "weight_gradient"]


@pytest.mark.parametrize(
    "shapes",
    [LONG, ((3, 1, 9, 9), (4, 1, 3, 3)), ((1, 8, 5, 6), (4, 8, 3, 3)), ((3, 8, 5, 6), (4, 8, 1, 1))],
    ids=["long windows", "many windows", "one image", "windows of one pixel"],
)
def test_a_convolution_and_both_gradients(shapes: Any) -> None:
    f = jg.jit(jg.value_and_grad(lambda w, x: jg.sum(jg.tanh(jg.conv2d(x, w))), argnums=(0, 1)), backend="python")
    x, w = tensors(*shapes)

    assert convolutions(f, w, x) == ALL
    assert_like_eager(f, w, x)


def test_few_channels_share_the_images_among_threads() -> None:
    """The gradient of the weights is a sum of parts then."""
    f = jg.jit(jg.grad(lambda w, x: jg.sum(jg.tanh(jg.conv2d(x, w)))), backend="python")
    x, w = tensors((8, 1, 24, 24), (4, 1, 3, 3))

    (node,) = (n for n in f.graph(w, x, stage="block_convolutions").nodes if n.op is WEIGHT_GRADIENT)
    assert node.attr("parts") == 7 and node.out.aval.shape == (7, 1, 4, 9)
    assert_like_eager(f, w, x)


def test_half_precision_keeps_its_windows() -> None:
    f = jg.jit(lambda x, w: jg.conv2d(x, w), backend="python")
    x, w = (t.astype(np.float16) for t in tensors(*LONG))

    assert convolutions(f, x, w) == ["unfold"]


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

    for function in (jg.value_and_grad(loss, argnums=(0, 1, 2)), jg.grad(steepness, argnums=(0, 1, 2))):
        assert_like_eager(jg.jit(function, backend="python"), x, w, b)


def test_a_transposed_convolution() -> None:
    x, w = tensors((3, 6, 3, 4), (6, 5, 4, 4))
    f = jg.jit(jg.value_and_grad(lambda x, w: jg.sum(jg.nn.functional.conv_transpose2d(x, w, stride=2) ** 3), argnums=(0, 1)))

    assert convolutions(f, x, w) == ALL
    assert_like_eager(f, x, w)


@pytest.mark.parametrize("backend", ["python", "cpu"])
def test_images_and_weights_of_two_dtypes(backend: str) -> None:
    """The product has the wider dtype, which machine code of one dtype must not be given."""
    x, w = tensors(*LONG)
    half = x.astype(np.float32)
    for images, weights in ((half, w), (x, w.astype(np.float32))):
        f = jg.jit(jg.value_and_grad(lambda w, x: jg.sum(jg.tanh(jg.conv2d(x, w))), argnums=(0, 1)), backend=backend)
        f(weights, images)
        assert "convolve" not in convolutions(f, weights, images)
        for found, expected in zip(leaves(f(weights, images)), leaves(f.eager(weights, images)), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


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
