"""Values and gradients against PyTorch, at ordinary points and at kinks, zeros and infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd.backward import gradients
from jitgrad.core.tensor import Tensor
from jitgrad.ops.tables import ELEMENTWISE

pytestmark = pytest.mark.peers

SAME_NAME = (
    "abs sign sqrt rsqrt reciprocal square exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh "
    "tanh asinh acosh atanh sigmoid erf erfc floor ceil round trunc relu relu6 leaky_relu elu selu celu silu mish "
    "gelu softplus softsign hardtanh hardsigmoid hardswish logsigmoid"
)
BINARY = "add subtract multiply divide pow maximum minimum atan2 hypot copysign logaddexp remainder fmod"
ORDINARY = np.random.default_rng(0).normal(0.0, 3.0, 50)
# not -3 and 3: torch's hardswish changed there between versions
EDGES = np.array([0.0, 1.0, -1.0, 6.0, 1e3, -1e3, 1e-30, np.inf])


def torch_function(name: str) -> Callable[..., Any]:
    torch: Any = pytest.importorskip("torch")

    found: Callable[..., Any] = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return found


def ours(f: Callable[..., Tensor], *arrays: Any) -> list[Any]:
    xs = [Tensor(np.array(x)).requires_grad_() for x in arrays]
    out = f(*xs)
    found = gradients([out], [Tensor(np.ones(out.shape, out.dtype))], xs)
    return [x if x is None else x.concrete("a test") for x in (out, *found)]


def theirs(f: Callable[..., Any], *arrays: Any) -> list[Any]:
    torch: Any = pytest.importorskip("torch")

    xs = [torch.tensor(x, requires_grad=True) for x in arrays]
    out = f(*xs)
    out.sum().backward()
    return [out.detach().numpy(), *(None if x.grad is None else x.grad.numpy() for x in xs)]


def assert_agree(found: list[Any], expected: list[Any]) -> None:
    """Equal values; equal gradients wherever torch has one (of hypot(0, 0) it has none, ours is 0)."""
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-5, atol=1e-6)
    for x, y in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(np.where(np.isnan(y), np.nan, x), y, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("points", [ORDINARY, EDGES], ids=["ordinary", "edges"])
@pytest.mark.parametrize("name", SAME_NAME.split())
def test_unary(name: str, points: Any) -> None:
    f = ELEMENTWISE[name]
    points = np.abs(points) + 1.0 if name == "acosh" else points  # torch gives acosh'(-2) a value, acosh(-2) is NaN

    assert_agree(ours(f, points), theirs(torch_function(name), points))


def test_gelu_tanh() -> None:
    f = torch_function("gelu")

    assert_agree(ours(lambda x: jg.gelu(x, "tanh"), ORDINARY), theirs(lambda x: f(x, approximate="tanh"), ORDINARY))


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name: str) -> None:
    x, y = ORDINARY, ORDINARY[::-1].copy()

    assert_agree(ours(ELEMENTWISE[name], x, y), theirs(torch_function(name), x, y))


@pytest.mark.parametrize("name", ["maximum", "minimum", "hypot", "atan2", "pow", "copysign"])
def test_binary_at_zeros_and_ties(name: str) -> None:
    x, y = (np.array(v) for v in ([0.0, 0.0, 1.0, 2.0], [0.0, 2.0, 1.0, 0.0]))

    assert_agree(ours(ELEMENTWISE[name], x, y), theirs(torch_function(name), x, y))


def test_clip_and_lerp() -> None:
    torch: Any = pytest.importorskip("torch")

    x, y, w = ORDINARY, ORDINARY[::-1].copy(), np.linspace(-1.0, 2.0, 50)
    edges = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])

    assert_agree(ours(jg.lerp, x, y, w), theirs(torch.lerp, x, y, w))
    assert_agree(ours(lambda x: jg.clip(x, -1.0, 1.0), edges), theirs(lambda x: torch.clamp(x, -1.0, 1.0), edges))


def test_prelu() -> None:
    torch: Any = pytest.importorskip("torch")

    x, w = ORDINARY[:48].reshape(2, 4, 6), np.array([0.1, 0.2, 0.3, 0.4])

    assert_agree(ours(jg.prelu, x, w), theirs(torch.nn.functional.prelu, x, w))
