"""Backward from some of the results of a compiled function runs as if the others did not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg


def two_results(x: Any, w: Any) -> Any:
    return jg.log(x).sum(), (x * w).sum()


def shared_work(x: Any, w: Any) -> Any:
    shared = jg.tanh(x * w)
    return (shared / x).sum(), (shared * 2.0).sum(), jg.sqrt(x).sum()


def with_slices(x: Any, w: Any) -> Any:
    y = jg.concat([x, w * x])
    return (1.0 / y[:1]).sum(), (y[1:] * y[1:]).sum(), jg.log(y[0])


FUNCTIONS = [two_results, shared_work, with_slices]
WRAPPERS: dict[str, Any] = {
    "compiled": lambda f: jg.jit(f, check="off"),
    "checked": jg.jit,
    "python": lambda f: jg.jit(f, backend="python"),
    "checkpoint": jg.checkpoint,
    "compiled checkpoint": lambda f: jg.jit(lambda *args: jg.checkpoint(f)(*args), check="off"),
}


def operands() -> tuple[Any, Any]:
    """The first element of ``x`` is zero: the derivatives of logarithm and quotient are infinite there."""
    return jg.tensor([0.0, 1.0, 2.0], requires_grad=True), jg.tensor([2.0, 0.5, 1.5], requires_grad=True)


def gradients_from(f: Any, chosen: list[int]) -> list[Any]:
    x, w = operands()
    results = f(x, w)
    sum(results[k] for k in chosen).backward()
    return [None if t.grad is None else t.grad.numpy() for t in (x, w)]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_from_each_subset_of_results_are_those_of_eager(f: Any, wrapper: str) -> None:
    wrapped, count = WRAPPERS[wrapper](f), len(f(*operands()))

    for subset in range(1, 2**count):
        chosen = [k for k in range(count) if subset >> k & 1]
        for found, expected in zip(gradients_from(wrapped, chosen), gradients_from(f, chosen), strict=True):
            assert (found is None) == (expected is None), chosen
            np.testing.assert_allclose(found, expected, rtol=1e-6) if expected is not None else None


def test_second_derivatives_from_one_result() -> None:
    compiled = jg.jit(two_results, check="off")

    def second(f: Any) -> Any:
        x, w = operands()
        (gx,) = jg.autograd.grad([f(x, w)[1]], [x], create_graph=True)
        (gw,) = jg.autograd.grad([(gx * gx).sum()], [w])
        return gw.numpy()

    np.testing.assert_allclose(second(compiled), second(two_results))
    np.testing.assert_allclose(second(compiled), [4.0, 1.0, 3.0])
