"""Elementwise chains: fusion itself, call overhead, and sizes from one element to a hundred million."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers import Peer
from benchmarks.workload import Arrays, Sizes, Workload, f32


def _chain(peer: Peer) -> Callable[..., Any]:
    """Value and both gradients of the sum of squares of a tanh-gelu of a product."""
    xp = peer.xp

    def loss(x: Any, w: Any) -> Any:
        h = x * w
        y = 0.5 * h * (1 + xp.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))
        return xp.sum(y * y)

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1))


def _layers(peer: Peer) -> Callable[..., Any]:
    """Six tanh and sigmoid layers, each with a bias broadcast along the rows."""
    xp = peer.xp

    def loss(x: Any, biases: Any) -> Any:
        for k, b in enumerate(biases):
            x = (xp.tanh if k % 2 == 0 else xp.sigmoid)(x + b)
        return xp.sum(x * x)

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1))


def _layer_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    return f32(rng, n, n), [f32(rng, n) for _ in range(6)]


def _pair(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    return f32(rng, sizes["n"]), f32(rng, sizes["n"])


GRADIENTS = (
    Workload(
        "gelu_chain",
        "tanh-gelu of a product, sum of squares: value, d/dx, d/dw",
        _pair,
        _chain,
        {"n": 4_000_000},
        {"n": 1000},
        tolerance=2e-5,
        limits="memory: two arrays read, two written",
    ),
    Workload(
        "bias_layers",
        "six tanh/sigmoid layers with a broadcast bias: value, d/dx, d/dbiases",
        _layer_inputs,
        _layers,
        {"n": 1024},
        {"n": 16},
        limits="tanh and exp: six of them per element, forward and again in the backward pass",
    ),
    Workload(
        "small_chain",
        "the tanh-gelu chain on 64 elements",
        _pair,
        _chain,
        {"n": 64},
        {"n": 64},
        tolerance=2e-5,
        limits="the call itself: Python, guards, wrapping results",
    ),
)


def _combine(peer: Peer) -> Callable[..., Any]:
    def f(*xs: Any) -> Any:
        total = xs[0] * 2.0 + 1.0
        for x in xs[1:]:
            total = total * x
        return total

    return f


def _arguments(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    return tuple(f32(rng, 1) for _ in range(sizes["arguments"]))


OVERHEAD = tuple(
    Workload(
        f"call_{k}",
        f"one element, {k} argument{'s' * (k > 1)}, forward only",
        _arguments,
        _combine,
        {"arguments": k},
        {"arguments": k},
        gradients=False,
        limits="the call itself",
    )
    for k in (1, 4, 16)
)


def _forward(peer: Peer) -> Callable[..., Any]:
    """A chain without gradients that NumPy runs in six passes."""
    xp = peer.xp
    return lambda x, w: xp.tanh(x * w + 0.5) * xp.sqrt(x * x + 1.0) - w


SIZES = tuple(
    Workload(
        f"size_1e{k}",
        f"a forward chain of 8 operations on 1e{k} elements",
        _pair,
        _forward,
        {"n": 10**k},
        {"n": min(10**k, 1000)},
        gradients=False,
        slow=k > 7,
        limits="the call itself" if k < 4 else "tanh" if k < 6 else "memory",
    )
    for k in range(9)
)
