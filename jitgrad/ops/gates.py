"""Activations that cut values off or gate them by others, composed of elementwise functions."""

from __future__ import annotations

from typing import Any

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops import arithmetic
from jitgrad.ops.arithmetic import add, divide, multiply, negative, sign, subtract
from jitgrad.ops.comparison import greater, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import cut
from jitgrad.ops.neural import one_hot
from jitgrad.ops.placement import beside
from jitgrad.ops.random import Generator, rand
from jitgrad.ops.reduce import argmax, softmax
from jitgrad.ops.transcendental import log, sigmoid
from jitgrad.ops.trigonometric import tanh


def threshold(x: Any, limit: Any, value: Any) -> Tensor:
    """``x`` where it is above ``limit``, else ``value``."""
    return where(greater(x, limit), x, value)


@composed
def hardshrink(x: Any, lambd: Any = 0.5) -> Tensor:
    """``x`` where its size is above ``lambd``, else 0."""
    return where(greater(arithmetic.abs(x), lambd), x, 0.0)


@composed
def softshrink(x: Any, lambd: Any = 0.5) -> Tensor:
    """``x`` moved towards 0 by ``lambd``, at most to 0."""
    return where(greater(arithmetic.abs(x), lambd), subtract(x, multiply(sign(x), lambd)), 0.0)


def tanhshrink(x: Any) -> Tensor:
    """``x - tanh(x)``."""
    return subtract(x, tanh(x))


@takes_dim()
def softmin(x: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """The softmax of ``-x``, in ``dtype`` if one is given."""
    return softmax(negative(x), axis, dtype=dtype)


@takes_dim()
@composed
def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half of ``x`` along ``axis``, times the sigmoid of the second (Y. Dauphin et al., ICML 2017).

    Raises:
        ShapeError: the axis has no two halves.
    """
    given = asarray(x)
    k = normalize_axis("glu", axis, given.ndim)
    n = given.shape[k] if given.ndim else 1
    if n % 2:
        raise ShapeError(f"glu: axis {axis} of {given.aval} does not divide into two halves")
    return multiply(cut(given, k, 0, n // 2), sigmoid(cut(given, k, n // 2, n)))


@takes_dim()
def gumbel_softmax(
    x: Any, tau: Any = 1.0, hard: bool = False, axis: int = -1, generator: Generator | None = None
) -> Tensor:
    """The softmax of ``(x + Gumbel noise) / tau``: nearly one class, drawn with the probabilities ``softmax(x)``.

    With ``hard`` exactly one, with the gradient of the soft choice. E. Jang, S. Gu, B. Poole, "Categorical
    reparameterization with Gumbel-softmax", ICLR 2017.
    """
    logits = asarray(x)
    k = normalize_axis("gumbel_softmax", axis, logits.ndim)
    with beside(logits):
        u = rand(logits.shape, dtype=logits.dtype, generator=generator)
    noise = negative(log(negative(log(add(multiply(u, 1.0 - 2e-7), 1e-7)))))  # u in (0, 1): finite logarithms
    soft = softmax(divide(add(logits, noise), tau), k)
    if not hard:
        return soft
    hot = one_hot(argmax(soft, k), logits.shape[k], dtype=logits.dtype)
    hot = hot if k == logits.ndim - 1 else hot.moveaxis(-1, k)
    return add(subtract(hot, soft.detach()), soft)
