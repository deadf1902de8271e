"""Rows: normalisations, softmax cross-entropy and gated units, with the gradients of all their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers import Peer
from benchmarks.workload import Arrays, Sizes, Workload, f32


def _residual_gelu(peer: Peer) -> Callable[..., Any]:
    xp = peer.xp

    def loss(x: Any, residual: Any, gamma: Any, beta: Any) -> Any:
        y = xp.gelu(xp.layer_norm(x + residual, gamma, beta))
        return xp.mean(y * y)

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1, 2, 3))


def _residual_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, d = sizes["rows"], sizes["width"]
    return f32(rng, n, d), f32(rng, n, d), 1 + f32(rng, d, scale=0.1), f32(rng, d, scale=0.1)


def _dropout_norm(peer: Peer) -> Callable[..., Any]:
    """layer_norm(residual + dropout(x + bias)) with the mask, already scaled, and the incoming gradient given."""
    xp = peer.xp

    def loss(arrays: Any, mask: Any, g: Any) -> Any:
        x, bias, residual, gamma, beta = arrays
        return xp.sum(xp.layer_norm(residual + (x + bias) * mask, gamma, beta) * g)

    assert peer.value_and_grad
    return peer.value_and_grad(loss)


def _dropout_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, d = sizes["rows"], sizes["width"]
    x, residual, gamma, beta = _residual_inputs(rng, sizes)
    mask = (rng.random((n, d), np.float32) > 0.1).astype(np.float32) / np.float32(0.9)
    return [x, f32(rng, d), residual, gamma, beta], mask, f32(rng, n, d, scale=0.1)


def _rms(peer: Peer) -> Callable[..., Any]:
    xp = peer.xp

    def loss(x: Any, weight: Any, g: Any) -> Any:
        y = x * xp.rsqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight
        return xp.sum(y * g)

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1))


def _rms_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, d = sizes["rows"], sizes["width"]
    return f32(rng, n, d), 1 + f32(rng, d, scale=0.1), f32(rng, n, d, scale=0.1)


def _batch_norm(peer: Peer) -> Callable[..., Any]:
    """Images [n, channels, h, w], standardised per channel, scaled, shifted, rectified."""
    xp = peer.xp

    def loss(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - xp.mean(x, axis=(0, 2, 3), keepdims=True)
        variance = xp.mean(centred * centred, axis=(0, 2, 3), keepdims=True)
        y = xp.relu(centred * xp.rsqrt(variance + 1e-5) * weight + bias)
        return xp.mean(y * y)

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1, 2))


def _images(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, c, s = sizes["images"], sizes["channels"], sizes["side"]
    return f32(rng, n, c, s, s), 1 + f32(rng, c, 1, 1, scale=0.1), f32(rng, c, 1, 1, scale=0.1)


def _cross_entropy(peer: Peer) -> Callable[..., Any]:
    assert peer.value_and_grad
    return peer.value_and_grad(peer.xp.cross_entropy)


def _labelled(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, d = sizes["rows"], sizes["width"]
    return f32(rng, n, d), rng.integers(0, d, n)


def _swiglu(peer: Peer) -> Callable[..., Any]:
    """silu(gate) * up, the elementwise half of the gated unit, with the incoming gradient given."""
    assert peer.value_and_grad
    return peer.value_and_grad(lambda gate, up, g: peer.xp.sum(peer.xp.silu(gate) * up * g), argnums=(0, 1))


def _three(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    return tuple(f32(rng, sizes["rows"], sizes["width"]) for _ in range(3))


ROWS = {"rows": 4096, "width": 1024}
FEW = {"rows": 8, "width": 16}

WORKLOADS = (
    Workload(
        "residual_norm_gelu",
        "residual + layer norm + erf-gelu: dx, dresidual, dgamma, dbeta",
        _residual_inputs,
        _residual_gelu,
        ROWS,
        FEW,
        limits="erf and exp; sweeps over each row, which is in cache; the sums over rows for dgamma and dbeta",
    ),
    Workload(
        "dropout_residual_norm",
        "bias + dropout (mask given) + residual + layer norm: all gradients",
        _dropout_inputs,
        _dropout_norm,
        ROWS,
        FEW,
        limits="memory: four arrays read, two written, while three sweeps work on each row in cache",
    ),
    Workload(
        "rms_norm",
        "RMSNorm: dx, dweight",
        _rms_inputs,
        _rms,
        ROWS,
        FEW,
        limits="two sweeps over each row, which is in cache; with two threads memory",
    ),
    Workload(
        "batch_norm",
        "batch norm and relu over images: dx, dweight, dbias",
        _images,
        _batch_norm,
        {"images": 32, "channels": 64, "side": 56},
        {"images": 4, "channels": 3, "side": 5},
        limits="memory: the images once; the sums of a channel, one after the other, read it from the cache",
    ),
    Workload(
        "cross_entropy",
        "softmax cross-entropy: value and gradient",
        _labelled,
        _cross_entropy,
        {"rows": 8192, "width": 1000},
        {"rows": 8, "width": 10},
        limits="memory and exp: one pass over the logits, one array written",
    ),
    Workload("swiglu", "SwiGLU gate: value, dgate, dup", _three, _swiglu, ROWS, FEW, limits="memory and exp"),
)
