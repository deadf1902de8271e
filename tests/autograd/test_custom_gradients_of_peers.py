"""custom_vjp and autograd.Function give what JAX and torch give, eager and compiled."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd import Function
from tests.compiled import backend  # noqa: F401 - a fixture

X = np.array([0.3, -1.0, 2.0])


@pytest.mark.peers
def test_agrees_with_jax() -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        for program in (_stable, _clipped, _tree):
            theirs = program(jax.numpy, jax.custom_vjp, jax.grad, jax.vmap)(jax.numpy.asarray(X))
            ours = program(jg, jg.custom_vjp, jg.grad, jg.vmap)
            for run in (ours, jg.jit(ours)):
                for a, b in zip(run(jg.tensor(X)), theirs, strict=True):
                    np.testing.assert_allclose(a, np.asarray(b), rtol=1e-12)


def _stable(lib: Any, custom_vjp: Any, grad: Any, vmap: Any) -> Any:
    f = custom_vjp(lambda x: lib.log(1 + lib.exp(x)))
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * (1 - 1 / (1 + lib.exp(x))),))
    first = grad(lambda x: f(x).sum())
    return lambda x: (f(x), first(x), grad(lambda x: first(x).sum())(x), vmap(grad(f))(x), vmap(grad(grad(f)))(x))


def _clipped(lib: Any, custom_vjp: Any, grad: Any, vmap: Any) -> Any:
    f = partial(custom_vjp, nondiff_argnums=(0, 1))(lambda low, high, x: x)
    f.defvjp(lambda low, high, x: (x, None), lambda low, high, _, g: (lib.clip(g, low, high),))
    return lambda x: (grad(lambda x: (f(-0.5, 1.5, x) ** 2).sum())(x), vmap(grad(lambda x: f(-0.5, 1.5, x) ** 2))(x))


def _tree(lib: Any, custom_vjp: Any, grad: Any, vmap: Any) -> Any:
    f = custom_vjp(lambda p, y: {"s": p["x"] * y, "d": (p["x"] - y,)})
    f.defvjp(lambda p, y: (f(p, y), (p, y)), lambda r, g: ({"x": g["s"] * r[1] + 7 * g["d"][0]}, g["s"] * r[0]["x"]))

    def loss(x: Any) -> Any:
        out = f({"x": x}, lib.sin(x))
        return (out["s"] * out["d"][0]).sum()

    return lambda x: (grad(loss)(x), grad(lambda x: (grad(loss)(x) ** 2).sum())(x))


def _classes(lib: Any, function: Any) -> list[Any]:
    """The same classes for torch and jitgrad."""

    class Clip(function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, bound: float) -> Any:
            ctx.bound = bound
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return lib.clip(g, -ctx.bound, ctx.bound), None

    class Tanh(function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, bound: float) -> Any:
            return lib.tanh(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y), None

    class Quantise(function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, bound: float) -> Any:
            ctx.save_for_backward(x)
            ctx.bound = bound
            return lib.round(x * 4) / 4

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (lib.abs(x) <= ctx.bound) * (1 + x), None

    return [Clip, Tanh, Quantise]


@pytest.mark.peers
def test_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")

    def derivatives(lib: Any, f: Any, x: Any) -> list[Any]:
        y = (f(x) * f(x * 2)).sum()
        (first,) = lib.autograd.grad(y, [x], create_graph=True)
        return [y.detach(), first.detach(), lib.autograd.grad((first * first).sum(), [x])[0]]

    pairs = zip(_classes(torch, torch.autograd.Function), _classes(jg, Function), strict=True)
    for theirs, ours in pairs:
        expected = derivatives(torch, lambda x, theirs=theirs: theirs.apply(x, 1.5), torch.tensor(X, requires_grad=True))
        for f in (ours.apply, jg.jit(ours.apply, check="off")):
            found = derivatives(jg, lambda x, f=f: f(x, 1.5), jg.tensor(X, requires_grad=True))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b.numpy(), rtol=1e-12)
