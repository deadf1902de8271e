"""State that a compiled function reads and then changes: backward outside uses the values it read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")

CALLS = 5  # first call, general path, fast call made, fast calls


def noisy(x: Any) -> Any:
    return (x * jg.randn(6) + jg.exp(x) * jg.rand(6)).sum()


def dropped(x: Any) -> Any:
    return jg.dropout(x * x, 0.5).sum()


def sampled(x: Any) -> Any:
    """The reparametrised sample of a variational autoencoder."""
    return jg.tanh(x[:3] + jg.exp(0.5 * x[3:]) * jg.randn(3)).sum()


def counted() -> Callable[[Any], Any]:
    count = jg.zeros((), dtype=jg.float32)

    def f(x: Any) -> Any:
        y = (x * x * (count + 1.0)).sum()
        count.__iadd__(1.0)
        return y

    return f


def by_backward(f: Callable[[Any], Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    leaf = jg.tensor(x, requires_grad=True)
    f(leaf).backward()
    assert leaf.grad is not None
    return leaf.grad.numpy()


def by_grad(f: Callable[[Any], Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    gradient: np.ndarray[Any, Any] = jg.grad(f)(jg.tensor(x)).numpy()
    return gradient


def by_vjp(f: Callable[[Any], Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out, vjp = jg.vjp(f, jg.tensor(x))
    (gradient,) = vjp(jg.ones_like(out))
    return np.asarray(gradient)


def twice(f: Callable[[Any], Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(jg.grad(lambda x: jg.grad(f)(x).sum())(jg.tensor(x)))


@pytest.mark.parametrize("ways", [by_backward, by_grad, by_vjp, twice])
@pytest.mark.parametrize("f", [noisy, dropped, sampled, counted], ids=lambda f: f.__name__)
def test_gradients_use_the_state_that_the_call_read(f: Any, ways: Any) -> None:
    plain, compiled = (f(), jg.jit(f())) if f is counted else (f, jg.jit(f))
    x = np.linspace(-1.0, 1.0, 6).astype(np.float32)

    for call in range(CALLS):
        jg.manual_seed(call)
        found = ways(compiled, x)
        jg.manual_seed(call)
        np.testing.assert_allclose(found, ways(plain, x), rtol=1e-5, atol=1e-6, err_msg=f"call {call}")


def test_several_calls_before_their_backward() -> None:
    compiled = jg.jit(noisy)
    x = np.linspace(-1.0, 1.0, 6).astype(np.float32)

    def gradients(f: Any) -> list[np.ndarray[Any, Any]]:
        jg.manual_seed(7)
        leaves = [jg.tensor(x, requires_grad=True) for _ in range(4)]
        for loss in reversed([f(leaf) for leaf in leaves]):
            loss.backward()
        return [np.asarray(leaf.grad) for leaf in leaves]

    for _ in range(3):
        np.testing.assert_allclose(gradients(compiled), gradients(noisy), rtol=1e-5)


def test_batch_norm_outside_of_the_compiled_backward() -> None:
    layers = [nn.BatchNorm2d(2) for _ in range(2)]
    plain, compiled = layers[0], jg.jit(lambda x, layer=layers[1]: layer(x))
    random = np.random.default_rng(0)

    for _ in range(CALLS):
        x = random.normal(size=(3, 2, 4, 4)).astype(np.float32)
        weights = jg.tensor(random.normal(size=x.shape).astype(np.float32))
        eager = by_backward(lambda x, w=weights: (plain(x) * w).sum(), x)
        fused = by_backward(lambda x, w=weights: (compiled(x) * w).sum(), x)
        np.testing.assert_allclose(fused, eager, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(layers[1].running_mean.numpy(), layers[0].running_mean.numpy(), rtol=1e-6)
    np.testing.assert_allclose(layers[1].weight.grad.numpy(), layers[0].weight.grad.numpy(), rtol=1e-3)
