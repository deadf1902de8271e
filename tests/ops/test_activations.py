"""Activations against torch's formulas in float64, at the kinks, for extreme values and with learnt parameters."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, expm1, inf, log1p, nan, tanh
from math import exp as exp_
from typing import Any

import numpy as np
import pytest

import jitgrad.ops.activations as act
from jitgrad.autograd.backward import gradients
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.testing import check_grads

X = np.array([-30.0, -8.0, -3.5, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 2.9, 3.0, 6.0, 6.5, 25.0])


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + exp_(-x))


REFERENCE: dict[str, tuple[Callable[..., Tensor], Callable[[float], float]]] = {
    "relu": (act.relu, lambda x: max(x, 0.0)),
    "relu6": (act.relu6, lambda x: min(max(x, 0.0), 6.0)),
    "leaky_relu": (act.leaky_relu, lambda x: x if x > 0 else 0.01 * x),
    "leaky_relu_steep": (lambda x: act.leaky_relu(x, 0.3), lambda x: x if x > 0 else 0.3 * x),
    "elu": (act.elu, lambda x: x if x > 0 else expm1(x)),
    "elu_half": (lambda x: act.elu(x, alpha=0.5), lambda x: x if x > 0 else 0.5 * expm1(x)),
    "selu": (act.selu, lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * expm1(x))),
    "celu": (lambda x: act.celu(x, 2.0), lambda x: max(x, 0.0) + min(0.0, 2.0 * expm1(x / 2.0))),
    "silu": (act.silu, lambda x: x * sigmoid(x)),
    "mish": (act.mish, lambda x: x * tanh(log1p(exp_(x)))),
    "gelu": (act.gelu, lambda x: x * 0.5 * (1.0 + erf(x / 2.0**0.5))),
    "gelu_tanh": (
        lambda x: act.gelu(x, approximate="tanh"),
        lambda x: 0.5 * x * (1.0 + tanh((2.0 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    ),
    "softplus": (act.softplus, lambda x: x if x > 20 else log1p(exp_(x))),
    "softplus_sharp": (
        lambda x: act.softplus(x, 2.0, 5.0),
        lambda x: x if 2 * x > 5 else log1p(exp_(2 * x)) / 2,
    ),
    "softsign": (act.softsign, lambda x: x / (1.0 + abs(x))),
    "hardtanh": (act.hardtanh, lambda x: min(max(x, -1.0), 1.0)),
    "hardtanh_wide": (lambda x: act.hardtanh(x, -2.5, 4.0), lambda x: min(max(x, -2.5), 4.0)),
    "hardsigmoid": (act.hardsigmoid, lambda x: min(max(x + 3.0, 0.0), 6.0) / 6.0),
    "hardswish": (act.hardswish, lambda x: x * min(max(x + 3.0, 0.0), 6.0) / 6.0),
    "logsigmoid": (act.logsigmoid, lambda x: -log1p(exp_(-x))),
}


def values(x: Any) -> np.ndarray[Any, Any]:
    assert isinstance(x, Tensor)
    return x.concrete("a test")


def slope(f: Callable[..., Tensor], x: Any) -> np.ndarray[Any, Any]:
    leaf = Tensor(np.asarray(x)).requires_grad_()
    out = f(leaf)
    return values(gradients([out], [Tensor(np.ones(out.shape, out.dtype))], [leaf])[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFERENCE)
def test_values_are_those_of_the_formula(name: str, dtype: Any) -> None:
    f, formula = REFERENCE[name]
    x = X.astype(dtype)

    found = values(f(x))

    precision = np.finfo(dtype).eps
    np.testing.assert_allclose(found, [formula(float(v)) for v in x], rtol=8 * precision, atol=8 * precision)
    assert found.dtype == dtype


@pytest.mark.parametrize("name", REFERENCE)
def test_gradients_are_those_of_the_formula(name: str) -> None:
    f, formula = REFERENCE[name]
    kinks = np.array([-3.0, -2.5, -1.0, 0.0, 1.0, 2.5, 3.0, 4.0, 6.0, 20.0])
    x = X[np.min(np.abs(X[:, None] - kinks), axis=1) > 1e-2]
    h = 1e-5

    numeric = [(formula(v + h) - formula(v - h)) / (2 * h) for v in x.tolist()]

    np.testing.assert_allclose(slope(f, x), numeric, rtol=1e-7, atol=1e-9)


SMOOTH = ["silu", "mish", "gelu", "gelu_tanh", "softplus", "logsigmoid"]


@pytest.mark.parametrize("name", SMOOTH)
def test_third_order_of_smooth_activations(name: str) -> None:
    check_grads(REFERENCE[name][0], [np.array([-2.0, -0.3, 0.0, 0.7, 3.0])], order=3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFERENCE)
def test_large_values_give_finite_gradients(name: str, dtype: Any) -> None:
    """The side of a kink that was not taken must not send NaN back: there exp overflows."""
    found = slope(REFERENCE[name][0], np.array([-1000.0, 1000.0], dtype))

    assert np.isfinite(found).all()
    assert np.max(np.abs(found)) <= 1.06 and found.dtype == dtype


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_large_values_give_finite_second_derivatives(name: str) -> None:
    f = REFERENCE[name][0]
    leaf = Tensor(np.array([1000.0, -1.0])).requires_grad_()
    seed = Tensor(np.ones(2))
    (first,) = gradients([f(leaf)], [seed], [leaf], create_graph=True)

    assert first is not None
    (second,) = gradients([first], [seed], [leaf])

    assert np.isfinite(values(second)).all() and values(second)[0] == 0.0


# torch 2: the derivative at the kink
AT_KINK = {
    "relu": (0.0, 0.0),
    "relu6": (6.0, 0.0),
    "leaky_relu": (0.0, 0.01),
    "hardtanh": (1.0, 0.0),
    "hardsigmoid": (3.0, 0.0),
    "hardswish": (3.0, 1.0),
    "elu": (0.0, 1.0),
    "softsign": (0.0, 1.0),
}


@pytest.mark.parametrize("name", AT_KINK)
def test_gradient_at_the_kink_is_torchs(name: str) -> None:
    x, expected = AT_KINK[name]

    assert slope(REFERENCE[name][0], x) == expected


@pytest.mark.parametrize("name", REFERENCE)
def test_nan_stays_nan(name: str) -> None:
    assert np.isnan(values(REFERENCE[name][0](np.array([nan], np.float32)))).all()


def test_limits_at_infinity() -> None:
    x = np.array([-inf, inf])

    np.testing.assert_array_equal(values(act.relu(x)), [0.0, inf])
    np.testing.assert_array_equal(values(act.softplus(x)), [0.0, inf])
    np.testing.assert_array_equal(values(act.logsigmoid(x)), [-inf, 0.0])
    np.testing.assert_array_equal(values(act.elu(x)), [-1.0, inf])
    np.testing.assert_array_equal(values(act.hardsigmoid(x)), [0.0, 1.0])


def test_gelu_tanh_is_accurate_in_its_left_tail() -> None:
    """There 1 + tanh would have lost all digits in float32."""
    x = np.array([-5.0], np.float32)
    u = (2.0 / np.pi) ** 0.5 * (-5.0 + 0.044715 * (-5.0) ** 3)

    np.testing.assert_allclose(values(act.gelu(x, "tanh")), -5.0 / (1.0 + np.exp(-2.0 * u)), rtol=1e-5)


def test_relu_of_integers_stays_integer() -> None:
    x = np.array([-2, 3], np.int32)

    for f in (act.relu, act.relu6, act.hardtanh):
        assert values(f(x)).dtype == np.int32


def test_parameters_are_operands_with_gradients() -> None:
    x = np.array([-1.7, -0.4, 0.3, 2.2])
    half = np.array(0.6)

    check_grads(act.leaky_relu, [x, half])
    check_grads(act.elu, [x, half])
    check_grads(act.celu, [x, half])
    check_grads(act.softplus, [x, half])
    check_grads(lambda x, beta: act.softplus(x, beta, 0.5), [x, half])
    check_grads(act.hardtanh, [x, np.array(-1.0), np.array(1.0)])


def test_prelu_takes_one_slope_or_one_for_each_channel() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    slopes = np.array([0.1, 0.2, 0.3])

    np.testing.assert_array_equal(values(act.prelu(x, slopes)), np.where(x > 0, x, slopes[:, None] * x))
    np.testing.assert_array_equal(values(act.prelu(x, np.array([0.5]))), np.where(x > 0, x, 0.5 * x))
    np.testing.assert_array_equal(values(act.prelu(x, 0.5)), np.where(x > 0, x, 0.5 * x))
    check_grads(act.prelu, [x, slopes])
    with pytest.raises(ShapeError, match="channel"):
        act.prelu(x, np.ones(4))


def test_gelu_names_its_choices() -> None:
    with pytest.raises(ArgumentError, match='"none" or "tanh"'):
        act.gelu(X, approximate="fast")  # type: ignore[arg-type]
