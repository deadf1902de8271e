"""Hooks and retain_grad() in a compiled function work if backward runs in it, and are refused if it could run later."""

from __future__ import annotations

from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import AutogradError, UnguardableError


def leaf() -> Any:
    return jg.tensor([1.0, 2.0, 3.0], requires_grad=True)


def hooked(x: Any) -> Any:
    h = x * x
    h.register_hook(lambda g: g * 2.0)
    return (h * h).sum()


def retained(x: Any) -> Any:
    h = x * x
    h.retain_grad()
    return h, (h * h).sum()


@pytest.mark.parametrize("function", [hooked, retained])
@pytest.mark.parametrize("check", ["first", "off"])
def test_a_gradient_that_backward_outside_would_owe_is_refused(function: Any, check: str) -> None:
    with pytest.raises(UnguardableError, match=r"register_hook\(\) or retain_grad\(\) of what .*test_hooks_on_results\.py"):
        jg.jit(function, check=check, backend="python")(leaf())


def test_backward_within_the_function_calls_the_hook() -> None:
    def step(x: Any) -> Any:
        loss = hooked(x)
        loss.backward()
        return loss

    x, y = leaf(), leaf()
    compiled = jg.jit(step, check="off", backend="python")
    for _ in range(3):
        assert compiled(x).item() == step(y).item()
    assert x.grad.tolist() == y.grad.tolist()


def test_without_gradients_and_with_hooks_removed_results_are_returned() -> None:
    def removed(x: Any) -> Any:
        h = x * x
        h.register_hook(lambda g: g * 2.0).remove()
        return (h * h).sum()

    x, y = leaf(), leaf()
    jg.jit(removed, check="off", backend="python")(x).backward()
    removed(y).backward()
    assert x.grad.tolist() == y.grad.tolist()
    with jg.no_grad():
        assert jg.jit(lambda x: (x * x).sum(), backend="python")(x).item() == 14.0
    assert jg.jit(lambda x: hooked(x).detach(), backend="python")(x).item() == hooked(x).item()


def test_a_hook_that_stays_at_an_argument_is_refused() -> None:
    def doubled(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        return (x * x).sum()

    with pytest.raises(UnguardableError, match=r"register_hook\(\) of argument 0 f32\[3\]"):
        jg.jit(doubled)(jg.ones(3, requires_grad=True))


def test_a_hook_at_an_argument_for_a_backward_pass_inside() -> None:
    def step(x: Any) -> Any:
        handle = x.register_hook(lambda g: g * 2)
        (x * x).sum().backward()
        handle.remove()
        return x * 1

    f = jg.jit(step)
    for _ in range(3):
        x = jg.ones(3, requires_grad=True)
        f(x)
        assert x.grad is not None and x.grad.tolist() == [4.0, 4.0, 4.0]


def both(x: Any, w: Any) -> Any:
    h = x * w
    return h, (h * h).sum(), (h.detach() * w).sum()


@pytest.mark.parametrize(
    "watch",
    [
        lambda h, loss: (h.retain_grad(), loss.backward()),
        lambda h, loss: (h.register_hook(lambda g: g * 2), loss.backward()),
        lambda h, loss: (h.retain_grad(), (loss + h.sum()).backward()),
        lambda h, loss: jg.autograd.grad(loss + h.sum(), [h]),
    ],
    ids=["retain_grad", "hook", "both", "grad"],
)
def test_a_gradient_that_would_pass_through_another_result_is_refused(watch: Any) -> None:
    f = jg.jit(both)
    f(jg.ones(3), leaf())  # is checked, and gives the results of the eager run
    for _ in range(2):
        h, loss, _ = f(jg.ones(3), leaf())
        with pytest.raises(AutogradError, match=r"result 0 f32\[3\] of @jit function 'both'"):
            watch(h, loss)


def test_gradients_past_a_watched_result_pass() -> None:
    f = jg.jit(both)
    for _ in range(3):
        w, v = leaf(), leaf()
        h, _, other = f(jg.ones(3), w)
        h.retain_grad()
        (other + (h * 3).sum()).backward()
        k, _, expected = both(jg.ones(3), v)
        k.retain_grad()
        (expected + (k * 3).sum()).backward()
        assert h.grad.tolist() == k.grad.tolist() and w.grad.tolist() == v.grad.tolist()
