"""autograd.misc.optimizers: loops over ``gradient(x, iteration)`` from pytrees to pytrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.autograd.flattening import flatten_params
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, sqrt, subtract
from jitgrad.ops.creation import ones_like, zeros_like

Gradient = Callable[[Any, int], Any]
_Callback = Callable[[Any, int, Any], Any] | None
_Step = Callable[[Tensor, Tensor, int], Tensor]


def _run(grad: Gradient, x0: Any, callback: _Callback, num_iters: int, step: _Step) -> Any:
    """The pytree after ``num_iters`` steps ``x, g, i -> x``."""
    x, unflatten = flatten_params(x0)
    for i in range(num_iters):
        g = flatten_params(grad(unflatten(x), i))[0]
        if callback:
            callback(unflatten(x), i, unflatten(g))
        x = step(x, g, i)
    return unflatten(x)


def sgd(
    grad: Gradient, x0: Any, callback: _Callback = None, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9
) -> Any:
    """Gradient descent with momentum; ``callback(x, i, g)`` before each step."""
    velocity: Any = 0.0

    def step(x: Tensor, g: Tensor, _i: int) -> Tensor:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return add(x, step_size * velocity)

    return _run(grad, x0, callback, num_iters, step)


def rmsprop(
    grad: Gradient, x0: Any, callback: _Callback = None, num_iters: int = 100, step_size: float = 0.1, gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:  # fmt: skip
    """Steps divided by the root of the running mean of squares (T. Tieleman, G. Hinton, 2012)."""
    average: Any = None

    def step(x: Tensor, g: Tensor, _i: int) -> Tensor:
        nonlocal average
        average = (ones_like(x) if average is None else average) * gamma + g**2 * (1 - gamma)
        return subtract(x, step_size * g / (sqrt(average) + eps))

    return _run(grad, x0, callback, num_iters, step)


def adam(
    grad: Gradient, x0: Any, callback: _Callback = None, num_iters: int = 100, step_size: float = 0.001, b1: float = 0.9,
    b2: float = 0.999, eps: float = 1e-8,
) -> Any:  # fmt: skip
    """D. P. Kingma, J. Ba, "Adam: A method for stochastic optimization", 2015."""
    moments: list[Any] = []

    def step(x: Tensor, g: Tensor, i: int) -> Tensor:
        m, v = moments or (zeros_like(x), zeros_like(x))
        moments[:] = (1 - b1) * g + b1 * m, (1 - b2) * (g**2) + b2 * v
        m_hat, v_hat = moments[0] / (1 - b1 ** (i + 1)), moments[1] / (1 - b2 ** (i + 1))
        return subtract(x, step_size * m_hat / (sqrt(v_hat) + eps))

    return _run(grad, x0, callback, num_iters, step)
