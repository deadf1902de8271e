"""Gradients of elementwise functions with loops: tangents carried through the loop, of every order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import OpDefinitionError

TERMS = 4


@jg.elementwise
def square_root(a, x):
    """Newton's iteration from ``x``; how often it runs depends on the data."""
    k = 0
    while abs(x * x - a) > 1e-13 and k < 60:
        x = 0.5 * (x + a / x)
        k += 1
    return x


@jg.elementwise
def branches(x, y):
    t, s = x, 1.0
    for i in range(TERMS):
        if t > 0:
            t, s = math.sin(t) * y, s + t * t / (i + 1)
        else:
            t -= math.exp(-y) ** 2
            continue
        if s > 100:
            break
    return s * t if s > 0 else max(t, 0.5)


@jg.elementwise
def polynomial(x, degree=3):
    total: float = 0.0
    power = 1.0
    for _ in range(3):
        total += power / (1 + abs(total))
        power *= x
    if total < 0:
        return -total
    return total


@jg.elementwise
def one_over_x(x):
    """Its slope divides by zero in what Python computes with its own floats."""
    t = 0.0
    for _ in range(2):
        t = 1.0 / x if x != 0 else 0.0
    return t


OPERANDS = (np.array([[2.0, 3.0, -0.5]]), np.array([[1.0], [0.7]]))
POSITIVE = (np.array([[2.0, 3.0, 0.5]]), np.array([[1.0], [0.7]]))


@pytest.mark.parametrize(
    ("function", "operands"),
    [(square_root, POSITIVE), (branches, OPERANDS), (polynomial, OPERANDS[:1]), (one_over_x, OPERANDS[:1])],
)
class TestGradients:
    def test_against_differences(self, function: Any, operands: tuple[Any, ...]) -> None:
        assert jg.gradcheck(function, operands)
        assert jg.gradgradcheck(function, operands)

    @pytest.mark.parametrize("backend", ["python", "cpu"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_compiled(self, function: Any, operands: tuple[Any, ...], backend: str, dtype: Any) -> None:
        tensors = [jg.tensor(x.astype(dtype)) for x in operands]
        gradient = jg.value_and_grad(lambda *xs: function(*xs).sum(), argnums=tuple(range(len(tensors))))
        value, grads = jg.jit(gradient, check="off", backend=backend)(*tensors)
        expected, eager = gradient(*tensors)

        tolerance = 1e-5 if dtype is np.float32 else 1e-12
        np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=tolerance)
        for ours, theirs in zip(grads, eager, strict=True):
            assert ours.dtype == dtype
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)


def test_value_and_gradients_are_one_kernel() -> None:
    step = jg.jit(jg.value_and_grad(lambda a, x: square_root(a, x).sum(), argnums=(0, 1)), check="off")
    tensors = [jg.tensor(np.full(8, v)) for v in (2.0, 1.0)]
    np.testing.assert_allclose(step(*tensors)[1][0].numpy(), np.full(8, 0.5 / math.sqrt(2.0)))

    assert [set(k.ops) for k in step.kernels(*tensors)] == [{"square_root", "square_root_da", "square_root_dx", "sum"}]


def test_third_derivative() -> None:
    slope: Any = lambda a: square_root(a, 1.0).sum()  # noqa: E731
    for _ in range(3):
        slope = jg.grad(lambda a, f=slope: f(a).sum())
    np.testing.assert_allclose(slope(jg.tensor(np.array([4.0]))).numpy(), [0.375 * 4.0**-2.5], rtol=1e-9)


def test_gradient_that_was_not_selected() -> None:
    x = jg.tensor(np.array([0.0, 2.0]))
    f = jg.grad(lambda x: jg.where(x > 1, one_over_x(jg.sqrt(x)), 0.0).sum())
    np.testing.assert_allclose(f(x).numpy(), [0.0, -0.5 * 2.0**-1.5])


def test_what_cannot_be_derived_says_so() -> None:
    @jg.elementwise
    def with_list(x):
        values = [x]
        for _ in range(2):
            values.append(x)
        return values[0]

    @jg.elementwise
    def with_lgamma(x):
        t = x
        while t > 1:
            t = math.lgamma(t) - 5
        return t

    with pytest.raises(OpDefinitionError, match=r"elementwise\(with_list\): .*"):
        jg.grad(lambda x: with_list(x).sum())(jg.ones(2))
    with pytest.raises(OpDefinitionError, match=r"elementwise\(with_lgamma\): 'math.lgamma\(t\)' is no scalar function"):
        jg.grad(lambda x: with_lgamma(x).sum())(jg.ones(2))
