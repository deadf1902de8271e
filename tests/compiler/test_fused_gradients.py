"""Gradients through @jit against finite differences: every differentiable op, first and second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.jit.decorator import jit
from jitgrad.testing import check_grads, sample_operands
from jitgrad.testing.samples import DOMAINS, is_complex_op

SAMPLED = [op for op in REGISTRY.values() if op.domain and set(op.domain) <= set(DOMAINS) and not is_complex_op(op)]
DIFFERENTIABLE = [op for op in SAMPLED if op.vjp is not None]


def operands(op: OpDef) -> list[np.ndarray[Any, Any]]:
    return sample_operands(op, np.random.default_rng(0), (3, 4))


def floating(xs: Any) -> tuple[int, ...]:
    return tuple(k for k, x in enumerate(xs) if x.dtype.kind == "f")


def weighted(op: OpDef) -> Any:
    """The op's results as one number, each element with a weight of its own."""

    def loss(*xs: Any) -> Any:
        result = apply_op(op, *xs, **op.sample_attrs)
        total = 0.0
        for out in result if op.multiple else (result,):
            weights = np.cos(np.arange(out.size, dtype=np.float64)).reshape(out.shape)
            total = total + (out * weights).sum()
        return total

    return loss


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_backward_through_a_compiled_op_and_its_backward(op: OpDef) -> None:
    """check_grads runs grad of jit, and then grad of grad of jit with create_graph."""
    compiled = jit(lambda *xs: apply_op(op, *xs, **op.sample_attrs), check="off")

    check_grads(compiled, operands(op), order=2)

    assert compiled.cache_info().calls > 0


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_gradients_taken_inside(op: OpDef, same: Any) -> None:
    """jit of grad, and jit of grad of grad, against the same run eagerly."""
    xs = [jg.tensor(x) for x in operands(op)]
    wanted = floating(xs)
    first = jg.grad(weighted(op), argnums=wanted)

    def second(*xs: Any) -> Any:
        def gradient_norm(*xs: Any) -> Any:
            total = 0.0
            for g in first(*xs):
                total = total + (g * g).sum()
            return total

        return jg.grad(gradient_norm, argnums=wanted)(*xs)

    same(first, *xs, rtol=1e-12, atol=1e-12)
    same(second, *xs, rtol=1e-11, atol=1e-11)


def chain(x: Any, w: Any) -> Any:
    h = jg.tanh(x * w + 0.5)
    return (jg.softmax(h @ h.mT, -1) * h.sum()).sum() + jg.exp(h).mean()


def test_orders_of_jit_and_grad_commute(same: Any) -> None:
    rng = np.random.default_rng(3)
    x, w = jg.tensor(rng.normal(size=(3, 4))), jg.tensor(rng.normal(size=(4,)))
    expected = jg.grad(chain, argnums=(0, 1))(x, w)

    for found in (
        jit(jg.grad(chain, argnums=(0, 1)))(x, w),
        jg.grad(jit(chain), argnums=(0, 1))(x, w),
        jit(jg.grad(jit(chain), argnums=(0, 1)))(x, w),
    ):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_a_gradient_penalty_through_a_compiled_function() -> None:
    """create_graph through the compiled backward program, and a second backward through that."""
    def penalty(f: Any) -> Any:
        x = jg.tensor(np.linspace(-1.0, 1.0, 6).reshape(2, 3), requires_grad=True)
        w = jg.tensor(np.array([0.1, 0.7, -0.4]), requires_grad=True)
        f(x, w).backward(create_graph=True)
        (x.grad * x.grad).sum().backward()
        return x.grad.detach().numpy(), w.grad.detach().numpy()

    def energy(x: Any, w: Any) -> Any:
        return jg.sin(x * w).sum() * jg.exp(w).sum()

    for a, b in zip(penalty(jit(energy)), penalty(energy), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_hessian_of_a_compiled_function() -> None:
    x = jg.tensor(np.array([0.3, -0.2, 0.9]))

    def f(x: Any) -> Any:
        return (jg.tanh(x) * jg.flip(x, 0)).sum() ** 2

    np.testing.assert_allclose(jg.hessian(jit(f))(x).numpy(), jg.hessian(f)(x).numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.numba
def test_compiled_kernels_pass_gradcheck() -> None:
    rng = np.random.default_rng(5)

    check_grads(jit(lambda x, w: (jg.tanh(x * w) * w).sum(axis=0), check="off"), [rng.normal(size=(3, 4)), rng.normal(size=4)])
