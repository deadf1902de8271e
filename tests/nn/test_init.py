"""Initial values under torch's names: their distributions, in place and without a history."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, ShapeError

SHAPE = (300, 40, 2, 2)  # fan_in 160, fan_out 1200
FAN_IN, FAN_OUT = 160, 1200


@pytest.mark.parametrize(
    ("name", "options", "deviation", "bound"),
    [
        ("uniform_", {"a": -1.0, "b": 3.0}, 4 / sqrt(12), None),
        ("normal_", {"mean": 1.0, "std": 0.5}, 0.5, None),
        ("trunc_normal_", {"std": 1.0}, 0.8796, 2.0),
        ("xavier_uniform_", {"gain": 2.0}, 2 * sqrt(2 / (FAN_IN + FAN_OUT)), 2 * sqrt(6 / (FAN_IN + FAN_OUT))),
        ("xavier_normal_", {}, sqrt(2 / (FAN_IN + FAN_OUT)), None),
        ("kaiming_uniform_", {"nonlinearity": "relu"}, sqrt(2 / FAN_IN), sqrt(6 / FAN_IN)),
        ("kaiming_uniform_", {"a": sqrt(5)}, 1 / sqrt(3 * FAN_IN), 1 / sqrt(FAN_IN)),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "tanh"}, 5 / 3 / sqrt(FAN_OUT), None),
    ],
)
def test_distributions(name: str, options: dict[str, Any], deviation: float, bound: float | None):
    weight = nn.Parameter(jg.zeros(SHAPE))
    result = getattr(nn.init, name)(weight, **options, generator=jg.Generator(0))
    values = weight.detach().numpy()

    assert result is weight
    assert weight.is_leaf
    assert weight.requires_grad
    np.testing.assert_allclose(values.std(), deviation, rtol=0.02)
    if bound is not None:
        assert 0.98 * bound < np.abs(values).max() <= bound * (1 + 1e-6)


def test_constants():
    x = jg.empty(2, 3)

    assert nn.init.ones_(x).tolist() == [[1.0] * 3] * 2
    assert nn.init.constant_(x, 0.5).tolist() == [[0.5] * 3] * 2
    assert nn.init.zeros_(x).tolist() == [[0.0] * 3] * 2
    assert nn.init.eye_(x).tolist() == np.eye(2, 3).tolist()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]):
    q = nn.init.orthogonal_(jg.empty(shape, dtype=jg.float64), gain=2.0).numpy().reshape(shape[0], -1)
    product = q @ q.T if q.shape[0] < q.shape[1] else q.T @ q

    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"])
def test_gains_are_torchs(name: str):
    torch: Any = pytest.importorskip("torch")

    assert nn.init.calculate_gain(name, 0.2) == pytest.approx(torch.nn.init.calculate_gain(name, 0.2))


def test_applied_to_a_model():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

    def initialise(module: Any) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)

    model.apply(initialise)

    assert [p.abs().sum().item() == 0 for p in model.parameters()] == [False, True, False, True]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.init.eye_(jg.ones(2)), ShapeError, "expected a matrix"),
        (lambda: nn.init.orthogonal_(jg.ones(2)), ShapeError, "two axes"),
        (lambda: nn.init.xavier_normal_(jg.ones(2)), ShapeError, "two axes"),
        (lambda: nn.init.kaiming_normal_(jg.ones(2, 2), mode="both"), ArgumentError, "fan_in"),
        (lambda: nn.init.calculate_gain("sin"), ArgumentError, "sin"),
        (lambda: nn.init.trunc_normal_(jg.ones(2), a=8.0, b=9.0), ArgumentError, "hardly a number"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call()


def test_parameters_as_one_vector():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = nn.utils.parameters_to_vector(model.parameters())
    vector.sum().backward()

    assert vector.shape == (13,)
    assert all((p.grad == 1).all() for p in model.parameters())
    nn.utils.vector_to_parameters(jg.arange(13.0), model.parameters())
    assert model[0].bias.tolist() == [6.0, 7.0, 8.0]
    assert model[0].bias.requires_grad
    with pytest.raises(ShapeError, match="13 elements"):
        nn.utils.vector_to_parameters(jg.arange(12.0), model.parameters())


def test_gradients_are_clipped():
    x = jg.ones(4, requires_grad=True)
    (x * 3).sum().backward()

    assert nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True).item() == 6.0
    np.testing.assert_allclose(x.grad.numpy(), 0.5, rtol=1e-5)
    x.grad.mul_(jg.inf)
    with pytest.raises(ArgumentError, match="not finite"):
        nn.utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True)


RESETTABLE = [
    lambda: nn.Linear(4, 3), lambda: nn.Bilinear(4, 4, 3), lambda: nn.Embedding(5, 4, padding_idx=1),
    lambda: nn.Conv2d(4, 6, 3, groups=2), lambda: nn.ConvTranspose1d(4, 3, 2),
    lambda: nn.GRU(4, 3, num_layers=2, bidirectional=True), lambda: nn.LSTMCell(4, 3),
    lambda: nn.BatchNorm1d(4), lambda: nn.LayerNorm(4), lambda: nn.RMSNorm(4), lambda: nn.GroupNorm(2, 4),
]  # fmt: skip


@pytest.mark.parametrize("make", RESETTABLE)
def test_layers_start_anew(make):
    jg.manual_seed(0)
    layer = make()
    first = {name: tensor.tolist() for name, tensor in layer.state_dict().items()}
    with jg.no_grad():
        for tensor in layer.state_dict().values():
            tensor.fill_(7)
    jg.manual_seed(0)

    layer.reset_parameters()

    assert {name: tensor.tolist() for name, tensor in layer.state_dict().items()} == first


def test_a_layer_of_ones_own_may_say_how_it_starts():
    class Small(nn.Linear):
        def reset_parameters(self):
            nn.Linear.reset_parameters(self)
            nn.init.zeros_(self.bias)

    class Words(nn.Embedding):
        def reset_parameters(self):
            nn.init.ones_(self.weight)

    assert Small(3, 2).bias.tolist() == [0.0, 0.0] and abs(Small(3, 2).weight).max().item() > 0.0
    assert Words(2, 1).weight.tolist() == [[1.0], [1.0]]
