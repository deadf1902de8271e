"""Hooks and retain_grad() in a compiled function work if backward runs in it, and are refused if it could run later."""

from __future__ import annotations

from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import GraphFreedError, UnguardableError


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


def hooked_result(h: Any, loss: Any) -> list[Any]:
    seen: list[Any] = []
    h.register_hook(lambda g: (seen.append(g), g * 2)[1])
    loss.backward()
    return seen


def kept_graph(h: Any, loss: Any) -> list[Any]:
    h.retain_grad()
    loss.backward(retain_graph=True)
    loss.backward()
    return [h.grad]


WATCHES: dict[str, Any] = {
    "retain_grad": lambda h, loss: (h.retain_grad(), loss.backward(), h.grad)[2:],
    "hook": hooked_result,
    "both": lambda h, loss: (h.retain_grad(), (loss + h.sum()).backward(), h.grad)[2:],
    "grad": lambda h, loss: jg.autograd.grad(loss + h.sum(), [h]),
    "grads": lambda h, loss: jg.autograd.grad(loss, [loss, h]),
    "second order": lambda h, loss: jg.autograd.grad(jg.autograd.grad(loss, [h], create_graph=True)[0].sum(), [h]),
    "twice": kept_graph,
}


@pytest.mark.parametrize("watch", WATCHES)
def test_a_gradient_passes_through_another_result(watch: str) -> None:
    """As for class activation maps: features and scores come from one call."""
    f = jg.jit(both)
    for k in range(3):
        x = jg.tensor([1.0, k, 2.0])
        w, v = leaf(), leaf()
        h, loss, _ = f(x, w)
        one, expected, _ = both(x, v)
        found = [g.tolist() for g in WATCHES[watch](h, loss)]
        assert found == [g.tolist() for g in WATCHES[watch](one, expected)]
        assert (w.grad is None) == (v.grad is None)
        assert w.grad is None or w.grad.tolist() == v.grad.tolist()


def chain(x: Any, w: Any) -> Any:
    a = x * w
    b = a * a + w
    c = jg.sin(b) * a
    return a, b, c, c.sum() * w.sum(), b * 3


def hooks_of_all(results: Any, _w: Any) -> Any:
    seen = []
    for k, r in enumerate(results):
        r.register_hook(lambda g, k=k: (seen.append((k, g.tolist())), g * (k + 1))[1])
    (results[3] + results[4].sum() + results[1].sum()).backward()
    return sorted(seen)


def retained_by_all(results: Any, _w: Any) -> Any:
    for r in results:
        r.retain_grad()
    (results[3] + results[4].sum()).backward()
    return [r.grad.tolist() for r in results]


def gradients_by_all(results: Any, w: Any) -> Any:
    grads = jg.autograd.grad(results[3], [*results, w], allow_unused=True)
    return [None if g is None else g.tolist() for g in grads]


@pytest.mark.parametrize("watch", [hooks_of_all, retained_by_all, gradients_by_all])
def test_gradients_pass_through_a_chain_of_results(watch: Any) -> None:
    f = jg.jit(chain)
    for _ in range(3):
        found = []
        for function in (f, chain):
            w = leaf()
            found.append((watch(function(jg.tensor([0.3, 0.2, 0.5]), w), w), w.grad is not None and w.grad.tolist()))
        assert str(found[0]) == str(found[1])


def test_it_passes_to_a_leaf_that_the_call_has_changed() -> None:
    def step(w: Any, x: Any) -> Any:
        h = w * x
        loss = (h * h).sum()
        with jg.no_grad():
            w.sub_(x)
        return h, loss

    compiled = jg.jit(step)
    for _ in range(3):
        found = []
        for f in (compiled, step):
            w = leaf()
            h, loss = f(w, jg.ones(3))
            h.retain_grad()
            loss.backward()
            found.append([h.grad.tolist(), w.grad.tolist(), w.tolist()])
        assert found[0] == found[1]


def test_backward_through_it_a_second_time_is_an_error() -> None:
    f = jg.jit(both)
    for _ in range(3):
        h, loss, _ = f(jg.ones(3), leaf())
        h.retain_grad()
        loss.backward()
        with pytest.raises(GraphFreedError):
            loss.backward()


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
