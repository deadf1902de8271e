"""Networks: value and gradients of all parameters, without the optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.peers import Peer
from benchmarks.workload import Arrays, Sizes, Workload, f32


def layers(rng: np.random.Generator, widths: Sequence[int]) -> list[Any]:
    """Weights and biases of a dense network, in one flat list."""
    parameters = []
    for n, m in zip(widths[:-1], widths[1:], strict=True):
        parameters += [f32(rng, n, m, scale=math.sqrt(2 / n)), f32(rng, m, scale=0.01)]
    return parameters


def dense(xp: Any, parameters: Sequence[Any], x: Any, activation: Callable[[Any], Any]) -> Any:
    """A dense network; the last layer is linear."""
    pairs = list(zip(parameters[::2], parameters[1::2], strict=True))
    for w, b in pairs[:-1]:
        x = activation(xp.matmul(x, w) + b)
    return xp.matmul(x, pairs[-1][0]) + pairs[-1][1]


def _mlp(peer: Peer) -> Callable[..., Any]:
    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        return peer.xp.cross_entropy(dense(peer.xp, parameters, x, peer.xp.relu), labels)

    assert peer.value_and_grad
    return peer.value_and_grad(loss)


def mlp_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    widths = sizes["widths"]
    batch = sizes["batch"]
    return layers(rng, widths), f32(rng, batch, widths[0]), rng.integers(0, widths[-1], batch)


def _gru(peer: Peer) -> Callable[..., Any]:
    """A GRU over time, unrolled (Cho et al. 2014, in the form of cuDNN: the reset gate after the product)."""
    xp = peer.xp

    def loss(parameters: Any, x: Any) -> Any:
        wi, wh, bi, bh = parameters
        n = wh.shape[0]
        h = x[0, :, :1] * 0.0 + wh[0, :n] * 0.0
        for t in range(x.shape[0]):
            i, j = xp.matmul(x[t], wi) + bi, xp.matmul(h, wh) + bh
            r = xp.sigmoid(i[:, :n] + j[:, :n])
            z = xp.sigmoid(i[:, n : 2 * n] + j[:, n : 2 * n])
            c = xp.tanh(i[:, 2 * n :] + r * j[:, 2 * n :])
            h = c + z * (h - c)
        return xp.mean(h * h)

    assert peer.value_and_grad
    return peer.value_and_grad(loss)


def _recurrent(rng: np.random.Generator, sizes: Sizes, gates: int) -> list[Any]:
    n = sizes["hidden"]
    scale = 1 / math.sqrt(n)
    return [f32(rng, n, gates * n, scale=scale) for _ in range(2)] + [f32(rng, gates * n, scale=0.1) for _ in range(2)]


def _gru_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    return _recurrent(rng, sizes, 3), f32(rng, sizes["steps"], sizes["batch"], sizes["hidden"])


def _lstm(peer: Peer) -> Callable[..., Any]:
    """One LSTM cell (Hochreiter and Schmidhuber 1997, with a forget gate)."""
    xp = peer.xp

    def loss(parameters: Any, x: Any, h: Any, c: Any) -> Any:
        wi, wh, bi, bh = parameters
        n = h.shape[1]
        gates = xp.matmul(x, wi) + bi + xp.matmul(h, wh) + bh
        i, f = xp.sigmoid(gates[:, :n]), xp.sigmoid(gates[:, n : 2 * n])
        g, o = xp.tanh(gates[:, 2 * n : 3 * n]), xp.sigmoid(gates[:, 3 * n :])
        c = f * c + i * g
        return xp.mean(xp.square(o * xp.tanh(c))) + xp.mean(c * c)

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1, 2, 3))


def _lstm_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    return _recurrent(rng, sizes, 4), *(f32(rng, sizes["batch"], sizes["hidden"]) for _ in range(3))


def _logistic(peer: Peer) -> Callable[..., Any]:
    """Logistic regression in float64; log(1 + exp(-z)) without overflow."""
    xp = peer.xp

    def loss(w: Any, x: Any, y: Any) -> Any:
        z = xp.matmul(x, w)
        return xp.mean(xp.maximum(z, 0.0 * z) - z * y + xp.log(1 + xp.exp(-xp.maximum(z, -z))))

    assert peer.value_and_grad
    return peer.value_and_grad(loss)


def _logistic_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, d = sizes["rows"], sizes["width"]
    x = rng.standard_normal((n, d))
    return rng.standard_normal(d) * 0.1, x, (x[:, 0] > 0).astype(np.float64)


def _pinn(peer: Peer) -> Callable[..., Any]:
    """u'' = -sin(x) by a network: derivatives to the input twice, then to the parameters.

    (Raissi, Perdikaris, Karniadakis, "Physics-informed neural networks", J. Comput. Phys. 378, 2019.)
    """
    xp = peer.xp
    assert peer.value_and_grad and peer.grad
    grad = peer.grad

    def loss(parameters: Any, x: Any) -> Any:
        first = grad(lambda x: xp.sum(dense(xp, parameters, x, xp.tanh)))
        second = grad(lambda x: xp.sum(first(x)))
        return xp.mean(xp.square(second(x) + xp.sin(x)))

    return peer.value_and_grad(loss)


def _pinn_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    return layers(rng, sizes["widths"]), f32(rng, sizes["points"], 1)


def _transformer(peer: Peer) -> Callable[..., Any]:
    """A transformer block: attention and a gelu network, each after a layer norm and with a residual."""
    xp = peer.xp

    def heads(x: Any, number: int) -> Any:
        b, t, d = x.shape
        return xp.permute_dims(xp.reshape(x, (b, t, number, d // number)), (0, 2, 1, 3))

    def loss(p: Any, x: Any) -> Any:
        b, t, d = x.shape
        n = xp.layer_norm(x, p["g1"], p["b1"])
        q, k, v = (heads(xp.matmul(n, p[w]), d // 32) for w in ("wq", "wk", "wv"))
        scores = xp.softmax(xp.matmul(q, xp.permute_dims(k, (0, 1, 3, 2))) / math.sqrt(32.0))
        mixed = xp.reshape(xp.permute_dims(xp.matmul(scores, v), (0, 2, 1, 3)), (b, t, d))
        x = x + xp.matmul(mixed, p["wo"])
        n = xp.layer_norm(x, p["g2"], p["b2"])
        x = x + xp.matmul(xp.gelu(xp.matmul(n, p["w1"]) + p["c1"]), p["w2"]) + p["c2"]
        return xp.mean(x * x)

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1))


def _transformer_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    d = sizes["width"]
    p = {w: f32(rng, d, d, scale=1 / math.sqrt(d)) for w in ("wq", "wk", "wv", "wo")}
    p |= {"w1": f32(rng, d, 4 * d, scale=1 / math.sqrt(d)), "w2": f32(rng, 4 * d, d, scale=0.5 / math.sqrt(d))}
    p |= {"c1": f32(rng, 4 * d, scale=0.1), "c2": f32(rng, d, scale=0.1)}
    p |= {"g1": 1 + f32(rng, d, scale=0.1), "g2": 1 + f32(rng, d, scale=0.1)}
    p |= {"b1": f32(rng, d, scale=0.1), "b2": f32(rng, d, scale=0.1)}
    return p, f32(rng, sizes["batch"], sizes["time"], d)


def _kinematics(peer: Peer) -> Callable[..., Any]:
    """The pose at the end of a chain of joints: each is a 4 x 4 transform that depends on one number per sample."""
    xp = peer.xp

    def loss(joints: Any, angles: Any, target: Any) -> Any:
        pose = None
        for k, (fixed, turning) in enumerate(joints):
            transform = fixed + angles[:, None, None, k] * turning
            pose = transform if pose is None else xp.matmul(pose, transform)
        return xp.mean(xp.square(pose - target))

    assert peer.value_and_grad
    return peer.value_and_grad(loss, argnums=(0, 1))


def _kinematics_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    joints, batch = sizes["joints"], sizes["batch"]
    chain = [(f32(rng, 4, 4, scale=0.5), f32(rng, 4, 4, scale=0.5)) for _ in range(joints)]
    return chain, f32(rng, batch, joints), f32(rng, batch, 4, 4)


MLP = {"widths": (784, 512, 512, 10), "batch": 256}
SMALL = {"widths": (8, 6, 6, 4), "batch": 5}
CELL = "matrix products, and the call: little work for each product"

WORKLOADS = (
    Workload("mlp", "3-layer MLP: value and gradients", mlp_inputs, _mlp, MLP, SMALL, limits="matrix products"),
    Workload(
        "gru",
        "GRU, unrolled: value and gradients",
        _gru_inputs,
        _gru,
        {"steps": 120, "batch": 32, "hidden": 64},
        {"steps": 4, "batch": 3, "hidden": 5},
        slow_peers=("torch.compile", "jax"),
        limits="240 small matrix products forward, 480 backward",
    ),
    Workload(
        "lstm_cell",
        "LSTM cell: value and gradients",
        _lstm_inputs,
        _lstm,
        {"batch": 128, "hidden": 256},
        {"batch": 3, "hidden": 5},
        limits=CELL,
    ),
    Workload(
        "logistic",
        "logistic regression in float64: value and gradient",
        _logistic_inputs,
        _logistic,
        {"rows": 1_000_000, "width": 50},
        {"rows": 100, "width": 5},
        tolerance=1e-9,
        limits="memory: the matrix, read once for the product and its transpose",
    ),
    Workload(
        "pinn",
        "a network with second derivatives to its input: value and gradients",
        _pinn_inputs,
        _pinn,
        {"widths": (1, 64, 64, 1), "points": 1024},
        {"widths": (1, 6, 6, 1), "points": 7},
        tolerance=1e-3,
        limits="tanh and matrix products",
    ),
    Workload(
        "transformer",
        "transformer block: value and all gradients",
        _transformer_inputs,
        _transformer,
        {"width": 256, "time": 128, "batch": 8},
        {"width": 32, "time": 4, "batch": 2},
        limits="matrix products",
    ),
    Workload(
        "kinematics",
        "chain of 4 x 4 transforms: value and gradients",
        _kinematics_inputs,
        _kinematics,
        {"joints": 6, "batch": 4096},
        {"joints": 3, "batch": 5},
        limits="products of small matrices, one for each sample",
    ),
)
