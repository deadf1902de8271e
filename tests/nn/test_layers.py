"""Layers: shapes and names as in torch, initial values, forward formulas, and torch's own numbers if installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.random import Generator, manual_seed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3)).astype(np.float32)
IMAGES = RNG.normal(size=(2, 4, 6, 5)).astype(np.float32)

# layer -> (arguments, input, shapes of its state)
LAYERS: dict[str, tuple[tuple[Any, ...], Any, dict[str, tuple[int, ...]]]] = {
    "Linear": ((3, 2), X, {"weight": (2, 3), "bias": (2,)}),
    "Embedding": ((7, 3), np.array([[1, 6], [0, 1]]), {"weight": (7, 3)}),
    "LayerNorm": ((3,), X, {"weight": (3,), "bias": (3,)}),
    "RMSNorm": ((3,), X, {"weight": (3,)}),
    "GroupNorm": ((2, 4), IMAGES, {"weight": (4,), "bias": (4,)}),
    "BatchNorm2d": (
        (4,),
        IMAGES,
        {"weight": (4,), "bias": (4,), "running_mean": (4,), "running_var": (4,), "num_batches_tracked": ()},
    ),
    "Conv2d": ((4, 6, 3, 2, 1, 1, 2), IMAGES, {"weight": (6, 2, 3, 3), "bias": (6,)}),
    "MaxPool2d": ((2,), IMAGES, {}),
    "AvgPool2d": ((3, 2, 1), IMAGES, {}),
    "PReLU": ((4,), IMAGES, {"weight": (4,)}),
    "Flatten": ((), IMAGES, {}),
    "Identity": ((), X, {}),
    **{
        name: ((), X, {})
        for name in [
            "ReLU",
            "ReLU6",
            "LeakyReLU",
            "ELU",
            "CELU",
            "SELU",
            "SiLU",
            "Mish",
            "GELU",
            "Softplus",
            "Softsign",
            "Hardtanh",
            "Hardsigmoid",
            "Hardswish",
            "Sigmoid",
            "LogSigmoid",
            "Tanh",
        ]
    },
    "Softmax": ((-1,), X, {}),
    "LogSoftmax": ((-1,), X, {}),
    "GRUCell": ((3, 4), X, {"weight_ih": (12, 3), "weight_hh": (12, 4), "bias_ih": (12,), "bias_hh": (12,)}),
    "LSTMCell": ((3, 4), X, {"weight_ih": (16, 3), "weight_hh": (16, 4), "bias_ih": (16,), "bias_hh": (16,)}),
}


def data(x: Any) -> Any:
    return [data(part) for part in x] if isinstance(x, tuple) else x.concrete("a test")


@pytest.mark.parametrize("name", LAYERS)
def test_state_has_torchs_names_and_shapes(name: str) -> None:
    arguments, x, shapes = LAYERS[name]
    layer = getattr(nn, name)(*arguments)

    assert {key: t.shape for key, t in layer.state_dict().items()} == shapes
    out = layer(Tensor(x))
    assert all(part.dtype == np.float32 for part in (out if isinstance(out, tuple) else (out,)))


@pytest.mark.peers
@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_with_torch(name: str, mode: str) -> None:
    torch = pytest.importorskip("torch")
    arguments, x, _ = LAYERS[name]
    ours, theirs = getattr(nn, name)(*arguments), getattr(torch.nn, name)(*arguments)
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    getattr(ours, mode)(), getattr(theirs, mode)()

    found, expected = ours(Tensor(x)), theirs(torch.tensor(x))

    for a, b in zip(*(part if isinstance(part, tuple) else (part,) for part in (found, expected)), strict=True):
        np.testing.assert_allclose(data(a), b.detach().numpy(), rtol=2e-5, atol=2e-6)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_gru_cell_is_its_formula() -> None:
    cell, h = nn.GRUCell(3, 4), RNG.normal(size=(5, 4)).astype(np.float32)
    w, u, b, c = (data(t) for t in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh))
    (xr, xz, xn), (hr, hz, hn) = np.split(X @ w.T + b, 3, 1), np.split(h @ u.T + c, 3, 1)
    z, n = sigmoid(xz + hz), np.tanh(xn + sigmoid(xr + hr) * hn)

    np.testing.assert_allclose(data(cell(X, h)), (1 - z) * n + z * h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(data(cell(X)), data(cell(X, np.zeros((5, 4), np.float32))), rtol=1e-6)


def test_lstm_cell_is_its_formula() -> None:
    cell, (h, c) = nn.LSTMCell(3, 4), RNG.normal(size=(2, 5, 4)).astype(np.float32)
    w, u, b, d = (data(t) for t in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh))
    i, f, g, o = np.split(X @ w.T + b + h @ u.T + d, 4, 1)
    new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)

    found = cell(X, (h, c))

    np.testing.assert_allclose(data(found[1]), new, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(data(found[0]), sigmoid(o) * np.tanh(new), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "bound"),
    [(lambda: nn.Linear(100, 400), 0.1), (lambda: nn.Conv2d(4, 64, 5), 0.1), (lambda: nn.GRUCell(30, 100), 0.1)],
    ids=["Linear", "Conv2d", "GRUCell"],
)
def test_initial_values_are_uniform_within_torchs_bound(layer: Any, bound: float) -> None:
    manual_seed(0)
    for parameter in layer().parameters():
        x = data(parameter).ravel()
        assert np.abs(x).max() <= bound
        assert abs(x.std() - bound / np.sqrt(3)) < 0.012
        assert abs(x.mean()) < 0.012


def test_embeddings_start_normal_and_seeds_decide() -> None:
    manual_seed(3)
    a = nn.Embedding(100, 50)
    manual_seed(3)
    b = nn.Embedding(100, 50)

    assert a.weight.tolist() == b.weight.tolist()
    assert abs(data(a.weight).std() - 1) < 0.05


def test_layers_without_bias_and_of_float64() -> None:
    layer = nn.Linear(3, 2, bias=False, dtype=np.float64)

    assert list(layer.state_dict()) == ["weight"]
    assert layer(X.astype(np.float64)).dtype == np.float64
    assert nn.LayerNorm(3, elementwise_affine=False).state_dict() == {}
    assert list(nn.LayerNorm(3, bias=False).state_dict()) == ["weight"]
    assert nn.BatchNorm2d(4, affine=False, track_running_stats=False).state_dict() == {}


def test_batch_norm_without_running_statistics_uses_the_batch_in_both_modes() -> None:
    layer = nn.BatchNorm2d(4, track_running_stats=False)

    np.testing.assert_array_equal(data(layer(IMAGES)), data(layer.eval()(IMAGES)))


def test_dropout_only_in_training() -> None:
    layer = nn.Dropout(0.5, generator=Generator(0))

    assert (data(layer(np.ones(100, np.float32))) == 0).any()
    np.testing.assert_array_equal(data(layer.eval()(np.ones(100, np.float32))), 1)
    with pytest.raises(ArgumentError, match="Dropout"):
        nn.Dropout(-0.1)


def test_constructors_refuse() -> None:
    with pytest.raises(ArgumentError, match="groups"):
        nn.Conv2d(4, 6, 3, groups=3)
    with pytest.raises(ArgumentError, match="device 'tpu'"):
        nn.Linear(3, 2, device="tpu")


def test_a_kernel_has_as_many_sizes_as_an_image_has_axes():
    with pytest.raises(ArgumentError, match="Conv3d: kernel_size must be an int or 3 of them"):
        nn.Conv3d(3, 4, (2, 2))
    with pytest.raises(ArgumentError, match="ConvTranspose1d: kernel_size must be an int or 1 of them"):
        nn.ConvTranspose1d(3, 4, 0)


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit(backend="python", check="off")])
def test_batch_norm_without_momentum_averages_over_all_batches(wrap: Any) -> None:
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32)
    step = wrap(lambda x: layer(x))

    for batch in batches:
        step(jg.tensor(batch))

    assert layer.running_mean is not None and layer.running_var is not None
    np.testing.assert_allclose(layer.running_mean.numpy(), batches.mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(layer.running_var.numpy(), batches.var(1, ddof=1).mean(0), rtol=1e-5)
