"""Gradients from outside through compiled calls that change tensors and their views in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import InPlaceError
from jitgrad.jit.decorator import jit

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")


@pytest.fixture(autouse=True, params=["python", pytest.param("cpu", marks=pytest.mark.numba)])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)


def view_of_view(t: Any) -> Any:
    part = t[1:].T
    part[0] *= 3.0
    return t


def into_a_constant(t: Any) -> Any:
    new = jg.zeros((2, 3))
    part = new[1]
    part += t[0]
    return new, part


def both(t: Any) -> Any:
    part = t[..., None]
    part /= 2.0
    return t, part


def item(t: Any) -> Any:
    t[0] += 1.0
    return t


def after_a_copy(t: Any) -> Any:
    copied = t[jg.tensor([1, 0])]
    t[0, 1:] -= t[1, 1:]
    return t, copied


def detached(t: Any) -> Any:
    t[0] = t[1].detach() * 2
    return t


CHANGES: list[Callable[[Any], Any]] = [view_of_view, into_a_constant, both, item, after_a_copy, detached]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("check", ["first", "off"])
def test_gradients_flow_through_changed_tensors_and_views(change: Callable[[Any], Any], check: str) -> None:
    def outputs(w: Any, x: Any) -> tuple[Any, ...]:
        results = change(jg.sin(w) * x)
        return results if isinstance(results, tuple) else (results,)

    gradients = []
    for f in (outputs, jit(outputs, check=check)):
        for _ in range(3):
            w = jg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
            results = f(w, jg.full((2, 3), 2.0))
            sum((r * (k + 1.5)).sum() for k, r in enumerate(results)).backward()
            gradients.append((w.grad.numpy(), [r.detach().numpy() for r in results]))

    for gradient, values in gradients[1:]:
        np.testing.assert_allclose(gradient, gradients[0][0], rtol=1e-6)
        for a, b in zip(values, gradients[0][1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_leaf_that_the_call_updates_has_its_old_value_in_the_gradient() -> None:
    def make() -> tuple[Any, Callable[[Any], Any]]:
        w = jg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        w.grad = jg.tensor([10.0, 20.0, 30.0])

        def f(x: Any) -> Any:
            with jg.no_grad():
                w.sub_(0.01 * w.grad)
            return x * w

        return w, f

    (w1, eager), (w2, f) = make(), make()
    fused = jit(f, check="off")
    for _ in range(4):
        x1, x2 = (jg.tensor([1.0, 1.0, 1.0], requires_grad=True) for _ in range(2))
        eager(x1).sum().backward()
        fused(x2).sum().backward()
        np.testing.assert_allclose(x2.grad.numpy(), x1.grad.numpy(), rtol=1e-6)
        np.testing.assert_allclose(w2.grad.numpy(), w1.grad.numpy(), rtol=1e-6)


def test_a_second_derivative_to_a_leaf_that_the_call_updates_is_refused() -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)

    @jit(check="off")
    def f(x: Any) -> Any:
        loss = (w.clone() ** 3 * x).sum()
        with jg.no_grad():
            w.sub_(0.1)
        return loss

    with pytest.raises(InPlaceError, match="second derivative of @jit function 'f'"):
        f(jg.ones(2)).backward(create_graph=True)


def test_no_gradient_flows_through_the_update_of_a_leaf() -> None:
    """The update reads a gradient that depends on the argument, and is made without history."""

    def make() -> tuple[Any, Callable[[Any], Any]]:
        w = jg.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def f(x: Any) -> Any:
            (x * w.sum() * 0.1).sum().backward()
            with jg.no_grad():
                w.sub_(0.1 * w.grad)
            return x * w

        return w, f

    (w1, eager), (w2, f) = make(), make()
    fused = jit(f, check="off")
    for _ in range(4):
        x1, x2 = (jg.tensor([1.0, 2.0, 1.0], requires_grad=True) for _ in range(2))
        eager(x1).sum().backward()
        fused(x2).sum().backward()
        np.testing.assert_allclose(x2.grad.numpy(), x1.grad.numpy(), rtol=1e-6)
        np.testing.assert_allclose(w2.grad.numpy(), w1.grad.numpy(), rtol=1e-6)


def test_a_number_that_is_replaced_as_a_whole_has_a_gradient() -> None:
    """``s[...] = v`` of a tensor without axes puts a slice in place of all of it."""

    def f(x: Any) -> Any:
        s = x.sum()
        s[...] += 0.7
        s[()] *= 2.0
        return (x * x).sum() + s * s

    x1, x2 = (jg.tensor([1.0, 2.0, 1.0], requires_grad=True) for _ in range(2))
    f(x1).backward()
    jit(f, check="off")(x2).backward()
    np.testing.assert_allclose(x2.grad.numpy(), x1.grad.numpy(), rtol=1e-6)
