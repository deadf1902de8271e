"""custom_vjp and autograd.Function on the CUDA device, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

pytestmark = pytest.mark.usefixtures("cuda")

X = np.array([0.3, -1.0, 2.0], np.float32)


class Exponential(jg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = jg.exp(x)
        ctx.save_for_backward(y)
        return y, x

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * ctx.saved_tensors[0] + h * 2


def custom(x: Any) -> Any:
    f = jg.custom_vjp(jg.sin)
    f.defvjp(lambda x: (jg.sin(x), x), lambda x, g: (g * jg.cos(x),))
    return f(x)


@pytest.mark.parametrize("run", [lambda f: f, jg.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("f", "first", "second"),
    [(custom, np.cos(X), -np.sin(X)), (lambda x: Exponential.apply(x)[0], np.exp(X), np.exp(X))],
    ids=["custom_vjp", "Function"],
)
def test_first_and_second_derivatives(run: Any, f: Any, first: Any, second: Any) -> None:
    x = jg.tensor(X, device="cuda", requires_grad=True)
    for _ in range(2):
        (g,) = jg.autograd.grad(run(f)(x).sum(), [x], create_graph=True)
        assert g.device == "cuda"
        np.testing.assert_allclose(g.detach().cpu().numpy(), first, rtol=1e-5)
        np.testing.assert_allclose(jg.autograd.grad(g.sum(), [x])[0].cpu().numpy(), second, rtol=1e-5)
    both = run(jg.grad(lambda x: (f(x) * f(x)).sum()))(x.detach())
    assert both.device == "cuda"
