"""Full backward hooks of modules see and replace the gradients that torch's do, eager and in compiled steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError

RNG = np.random.default_rng(3)
W, X, Y = (RNG.normal(size=shape).astype(np.float32) for shape in ((3, 3), (4, 3), (4, 3)))


def run(m: Any, replace: bool, compiled: Any = None) -> tuple[list[Any], Any]:
    """What the hooks of two modules saw, one of them with two arguments and two results, and the gradients after them."""

    class Mixed(m.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, y: Any, scale: float) -> Any:
            return (x * y).sum(1, keepdim=True) * scale, x + y

    linear, mixed = m.nn.Linear(3, 3), Mixed()
    with m.no_grad():
        linear.weight.copy_(m.tensor(W))
        linear.bias.zero_()
    seen: dict[str, Any] = {}

    def hook(name: str) -> Any:
        def look(_module: Any, grad_input: Any, grad_output: Any) -> Any:
            seen[name] = (*grad_input, *grad_output)
            return tuple(None if g is None else 2 * g for g in grad_input) if replace else None

        return look

    linear.register_full_backward_hook(hook("linear"))
    mixed.register_full_backward_hook(hook("mixed"))
    linear.register_full_backward_pre_hook(lambda _module, grads: (grads[0] + 1,) if replace else None)

    def step(x: Any, y: Any) -> Any:
        y = y.clone().requires_grad_()
        linear.zero_grad()
        one, two = mixed(linear(x), y, 0.5)
        (one.sum() + (two * two).sum()).backward()
        return y.grad, linear.weight.grad

    step = step if compiled is None else compiled(step)
    results = [step(m.tensor(X), m.tensor(k * Y)) for k in (1.0, 2.0, 3.0)]
    parts = [*seen["linear"], *seen["mixed"], *results[0], *results[1]]
    return [None if g is None else g.detach().numpy() for g in parts], step


@pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")  # torch's, for linear(x)
@pytest.mark.parametrize("replace", [False, True])
def test_hooks_see_and_replace_what_torchs_do(replace: bool):
    torch = pytest.importorskip("torch")
    expected, _ = run(torch, replace)
    assert any(g is None for g in expected)
    for compiled in (None, jg.jit):
        found, step = run(jg, replace, compiled)
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert step.cache_info().traces == 1


def test_second_derivatives_pass_a_hook():
    layer, x = jg.nn.Tanh(), jg.tensor([0.5, -1.0], requires_grad=True)
    layer.register_full_backward_hook(lambda _module, grads, _outs: (3.0 * grads[0],))
    (g,) = jg.autograd.grad(layer(x).sum(), [x], create_graph=True)
    (second,) = jg.autograd.grad(g.sum(), [x])
    t = np.tanh(np.array([0.5, -1.0]))
    np.testing.assert_allclose(second.numpy(), 3 * -2 * t * (1 - t * t), rtol=1e-5)  # as in torch, called once


def test_removed_hook_is_called_no_more():
    layer, x, calls = jg.nn.ReLU(), jg.ones(2, requires_grad=True), []
    handle = layer.register_full_backward_hook(lambda *_: calls.append(1))
    layer(x).sum().backward()
    handle.remove()
    layer(x).sum().backward()
    with jg.no_grad():
        layer(x)
    assert calls == [1]


def test_what_a_hook_cannot_do_is_an_error():
    layer, x = jg.nn.ReLU(), jg.ones(2, requires_grad=True)
    layer.register_full_backward_hook(lambda _module, _grads, _outs: (x, x))
    with pytest.raises(AutogradError, match="ReLU returned 2 gradients in place of 1"):
        layer(x).sum().backward()
    with pytest.raises(AutogradError, match="belongs into the @jit function"):
        jg.jit(lambda x: layer(x))(x).sum().backward()

    class Named(jg.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"x": x}

    named = Named()
    named.register_full_backward_hook(lambda *_: None)
    with pytest.raises(ArgumentError, match="a full backward hook of Named: its forward returned"):
        named(x)
