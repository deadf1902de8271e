"""Normalisation, embedding, convolution and pooling against direct formulas; gradients of both orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd.backward import backward
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.jit.decorator import jit
from jitgrad.ops.convolution import conv2d
from jitgrad.ops.neural import batch_norm, embedding, group_norm, layer_norm, one_hot, rms_norm
from jitgrad.ops.pooling import avg_pool2d, max_pool2d
from jitgrad.ops.reduce import sum as sum_
from jitgrad.testing import check_grads

RNG = np.random.default_rng(0)
ROWS = RNG.normal(1.0, 2.0, size=(3, 5, 4))
IMAGES = RNG.normal(size=(2, 6, 5, 4))


def standardized(x: Any, axis: Any, eps: float = 1e-5) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)


def channels(v: Any) -> Any:
    return np.asarray(v)[:, None, None]


def test_layer_norm_over_one_and_two_axes() -> None:
    w, b = RNG.normal(size=(2, 5, 4))

    np.testing.assert_allclose(layer_norm(ROWS, 4).numpy(), standardized(ROWS, -1))
    np.testing.assert_allclose(layer_norm(ROWS, (5, 4), w, b, 0.1).numpy(), standardized(ROWS, (1, 2), 0.1) * w + b)
    check_grads(lambda x, w, b: layer_norm(x, (5, 4), w, b), [ROWS, w, b], order=2, rtol=1e-5)


def test_layer_norm_far_from_zero_keeps_its_digits() -> None:
    x = (ROWS + 1e4).astype(np.float32)

    np.testing.assert_allclose(layer_norm(x, 4).numpy(), standardized(x.astype(np.float64), -1), atol=2e-3)


def test_rms_norm() -> None:
    w = RNG.normal(size=4)
    root = np.sqrt((ROWS**2).mean(-1, keepdims=True) + np.finfo(np.float64).eps)

    np.testing.assert_allclose(rms_norm(ROWS, 4, w).numpy(), ROWS / root * w)
    check_grads(lambda x, w: rms_norm(x, 4, w), [ROWS, w], order=2, rtol=1e-5)


def test_group_norm() -> None:
    w, b = RNG.normal(size=(2, 6))
    groups = standardized(IMAGES.reshape(2, 3, -1), -1).reshape(IMAGES.shape)

    np.testing.assert_allclose(group_norm(IMAGES, 3, w, b).numpy(), groups * channels(w) + channels(b))
    check_grads(lambda x, w, b: group_norm(x, 3, w, b), [IMAGES, w, b], order=2, rtol=1e-5)
    with pytest.raises(ShapeError, match="4 groups"):
        group_norm(IMAGES, 4)


def test_batch_norm_in_training_moves_the_running_statistics() -> None:
    w, b = RNG.normal(size=(2, 6))
    mean, var = Tensor(np.ones(6)), Tensor(np.full(6, 2.0))

    found = batch_norm(IMAGES, mean, var, w, b, training=True, momentum=0.25)

    np.testing.assert_allclose(found.numpy(), standardized(IMAGES, (0, 2, 3)) * channels(w) + channels(b))
    np.testing.assert_allclose(mean.numpy(), 0.75 + 0.25 * IMAGES.mean((0, 2, 3)))
    np.testing.assert_allclose(var.numpy(), 1.5 + 0.25 * IMAGES.var((0, 2, 3), ddof=1))


def test_batch_norm_outside_training_uses_and_keeps_the_running_statistics() -> None:
    mean, var = Tensor(np.arange(6.0)), Tensor(np.arange(1.0, 7.0))

    found = batch_norm(IMAGES, mean, var).numpy()

    np.testing.assert_allclose(
        found, (IMAGES - channels(np.arange(6.0))) / np.sqrt(channels(np.arange(1.0, 7.0)) + 1e-5)
    )
    np.testing.assert_array_equal(mean.numpy(), np.arange(6.0))


def test_batch_norm_has_no_history_in_its_statistics() -> None:
    x = Tensor(IMAGES.copy()).requires_grad_()
    mean = Tensor(np.zeros(6))

    backward(sum_(batch_norm(x, mean, None, training=True)))

    assert not mean.requires_grad
    check_grads(lambda x: batch_norm(x, None, None, training=True), [IMAGES[:, :2]], order=2, rtol=1e-5)


def test_batch_norm_refuses() -> None:
    with pytest.raises(ArgumentError, match="running_mean"):
        batch_norm(IMAGES, None, None)
    with pytest.raises(ArgumentError, match="at least two"):
        batch_norm(IMAGES[:1, :, :1, :1], None, None, training=True)


def test_norms_refuse_other_shapes() -> None:
    with pytest.raises(ShapeError, match="normalized_shape"):
        layer_norm(ROWS, 5)
    with pytest.raises(ShapeError, match="weight"):
        layer_norm(ROWS, 4, np.ones(3))


# --- embedding ---------------------------------------------------------------------------------------------------


def test_one_hot() -> None:
    x = np.array([[0, 2], [1, 0]])

    np.testing.assert_array_equal(one_hot(x, 3).numpy(), np.eye(3, dtype=np.int64)[x])
    assert one_hot(x, 3, dtype=np.float32).dtype == np.float32


def test_embedding_adds_up_the_gradients_of_repeated_rows() -> None:
    table = Tensor(RNG.normal(size=(4, 3))).requires_grad_()
    index = np.array([[1, 1], [3, 1]])
    rows = embedding(index, table)

    backward(sum_(rows))

    np.testing.assert_array_equal(rows.concrete("a test"), table.concrete("a test")[index])
    assert table.grad is not None
    np.testing.assert_array_equal(table.grad.numpy()[:, 0], [0, 3, 0, 1])


@pytest.mark.parametrize("index", [-1, 4])
def test_indices_out_of_range_are_errors(index: int) -> None:
    with pytest.raises(IndexError, match=rf"index {index} is not in \[0, 4\)"):
        embedding(np.array([0, index]), np.zeros((4, 3)))
    with pytest.raises(IndexError, match="one_hot"):
        one_hot(np.array([index]), 4)
    with pytest.raises(DtypeError, match="integers"):
        embedding(np.array([0.5]), np.zeros((4, 3)))


# --- convolution and pooling -------------------------------------------------------------------------------------


def convolved(x: Any, w: Any, stride: Any, padding: Any, *, dilation: Any, groups: int) -> Any:
    """Convolution as its definition says: one sum per output element."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    (n, _, h, width), (outs, inner, kh, kw) = x.shape, w.shape
    rows = (h - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, outs, rows, columns))
    for o in range(outs):
        first = o // (outs // groups) * inner
        for i in range(rows):
            for j in range(columns):
                top, left = i * stride[0], j * stride[1]
                window = x[:, first : first + inner, top:, left:]
                window = window[
                    :, :, : dilation[0] * (kh - 1) + 1 : dilation[0], : dilation[1] * (kw - 1) + 1 : dilation[1]
                ]
                out[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    return out


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [
        ((1, 1), (0, 0), (1, 1), 1),
        ((2, 1), (1, 2), (1, 1), 1),
        ((1, 2), (2, 1), (2, 1), 2),
        ((1, 1), (1, 1), (1, 1), 6),
    ],
)
def test_conv2d_is_its_definition(stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    w, b = RNG.normal(size=(6, 6 // groups, 3, 2)), RNG.normal(size=6)

    found = conv2d(IMAGES, w, b, stride, padding, dilation, groups).numpy()

    np.testing.assert_allclose(
        found, convolved(IMAGES, w, stride, padding, dilation=dilation, groups=groups) + channels(b), atol=1e-12
    )
    check_grads(lambda x, w, b: conv2d(x, w, b, stride, padding, dilation, groups), [IMAGES, w, b], order=2)


def test_conv2d_with_padding_by_name_and_without_a_batch() -> None:
    w = RNG.normal(size=(2, 6, 3, 3))

    same = conv2d(IMAGES, w, padding="same")

    assert same.shape == (2, 2, 5, 4)
    np.testing.assert_allclose(conv2d(IMAGES[0], w, padding="same").numpy(), same.numpy()[0])
    np.testing.assert_allclose(conv2d(IMAGES, w, padding="valid").numpy(), same.numpy()[:, :, 1:-1, 1:-1])


def test_conv2d_refuses() -> None:
    with pytest.raises(ShapeError, match="do not fit together"):
        conv2d(IMAGES, np.zeros((2, 5, 3, 3)))
    with pytest.raises(ShapeError, match="smaller than the window"):
        conv2d(IMAGES, np.zeros((2, 6, 7, 3)))
    with pytest.raises(ArgumentError, match="stride"):
        conv2d(IMAGES, np.zeros((2, 6, 3, 3)), stride=0)
    with pytest.raises(ArgumentError, match="same"):
        conv2d(IMAGES, np.zeros((2, 6, 3, 3)), stride=2, padding="same")


def windows(x: Any, size: int, stride: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]


@pytest.mark.parametrize(("size", "stride", "padding"), [(2, None, 0), (3, 1, 1), (2, 3, 1)])
def test_pooling_is_over_windows(size: int, stride: int | None, padding: int) -> None:
    steps = stride or size
    border = ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2)
    largest = windows(np.pad(IMAGES, border, constant_values=-np.inf), size, steps).max((-2, -1))
    mean = windows(np.pad(IMAGES, border), size, steps).mean((-2, -1))
    inside = windows(np.pad(np.ones_like(IMAGES), border), size, steps).mean((-2, -1))

    np.testing.assert_array_equal(max_pool2d(IMAGES, size, stride, padding).numpy(), largest)
    np.testing.assert_allclose(avg_pool2d(IMAGES, size, stride, padding).numpy(), mean)
    np.testing.assert_allclose(
        avg_pool2d(IMAGES, size, stride, padding, count_include_pad=False).numpy(), mean / inside
    )
    check_grads(lambda x: max_pool2d(x, size, stride, padding), [IMAGES], order=2)
    check_grads(lambda x: avg_pool2d(x, size, stride, padding, count_include_pad=False), [IMAGES], order=2)


@pytest.mark.peers
def test_convolution_and_norms_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    w, b = RNG.normal(size=(4, 3, 3, 2)), RNG.normal(size=4)
    x, t = Tensor(IMAGES.copy()).requires_grad_(), torch.tensor(IMAGES, requires_grad=True)
    ours = max_pool2d(conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 2), 2, 1, 1)
    theirs = F.max_pool2d(F.conv2d(t, torch.tensor(w), torch.tensor(b), (2, 1), (1, 2), (1, 2), 2), 2, 1, 1)

    backward(sum_(ours))
    theirs.sum().backward()

    np.testing.assert_allclose(ours.concrete("a test"), theirs.detach().numpy(), atol=1e-12)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(group_norm(IMAGES, 2).numpy(), F.group_norm(torch.tensor(IMAGES), 2).numpy())
    np.testing.assert_allclose(rms_norm(ROWS, 4).numpy(), F.rms_norm(torch.tensor(ROWS), (4,)).numpy())


@pytest.mark.parametrize("backend", ["python", "cpu"])
@pytest.mark.parametrize("wrong", [4, -1])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_indices_of_later_calls_are_checked_too(dtype: str, wrong: int, backend: str) -> None:
    """Kernels would give zeros and the last row; a failing step changes no state."""
    table, steps = jg.randn(4, 3), jg.tensor(0)
    right = np.array([0, 3, 1], dtype)
    if wrong < 0 and dtype == "uint8":
        wrong = 255

    @jit(backend=backend)
    def classes(x: Any) -> Any:
        steps.__iadd__(1)
        return jg.one_hot(x, 4) * 2

    @jit(backend=backend)
    def rows(x: Any) -> Any:
        steps.__iadd__(1)
        return jg.embedding(x, table) * 2.0

    for f in (classes, rows):
        for _ in range(3):
            f(jg.tensor(right))
        before = steps.item()
        with pytest.raises(IndexError, match=r"one_hot: index .* is not in \[0, 4\)|out of bounds .* size 4"):
            f(jg.tensor(np.array([0, wrong, 1]).astype(dtype)))
        assert steps.item() == before
