"""Losses of networks with the gradients of all parameters, in float32, as their users write them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program
from benchmarks.workload import Arrays, Sizes, f32

Weights = Mapping[str, np.ndarray[Any, Any]]


def _dense(rng: np.random.Generator, name: str, *widths: int) -> dict[str, np.ndarray[Any, Any]]:
    """Weights and biases of layers of these widths."""
    found = {}
    for k, (n, m) in enumerate(zip(widths, widths[1:], strict=False)):
        found[f"{name}_w{k}"], found[f"{name}_b{k}"] = f32(rng, n, m, scale=1 / math.sqrt(n)), f32(rng, m, scale=0.01)
    return found


def _burgers_network(xp: Any, p: Any, t: Any, x: Any) -> Any:
    """The mean square of u_t + u u_x - 0.01 u_xx for a network u(t, x), whose derivatives are carried along.

    M. Raissi, P. Perdikaris and G. Karniadakis, "Physics-informed neural networks", J. Comput. Phys. 2019.
    """
    t_row, x_row = p["w0"][0][None, :], p["w0"][1][None, :]
    u = t[:, None] * t_row + x[:, None] * x_row + p["b0"]
    u_t, u_x, u_xx = 0.0 * u + t_row, 0.0 * u + x_row, 0.0 * u
    for k in (1, 2, 3):
        y = xp.tanh(u)
        slope = 1 - y * y
        u_t, u_xx, u_x = slope * u_t, slope * (u_xx - 2 * y * u_x * u_x), slope * u_x
        u = xp.matmul(y, p[f"w{k}"]) + p[f"b{k}"]
        u_t, u_x, u_xx = (xp.matmul(d, p[f"w{k}"]) for d in (u_t, u_x, u_xx))
    residual = u_t + u * u_x - 0.01 * u_xx
    return xp.mean(residual * residual)


def _collocation_points(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    layers = _dense(rng, "", 2, sizes["width"], sizes["width"], sizes["width"], 1)
    points = rng.random((2, sizes["n"]), np.float32)
    return {name[1:]: w for name, w in layers.items()}, points[0], 2 * points[1] - 1


def _autoencoder(xp: Any, p: Any, x: Any, noise: Any) -> Any:
    """Minus the evidence lower bound of a variational autoencoder of binary pictures.

    D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", ICLR 2014.
    """
    h = xp.relu(xp.matmul(x, p["in_w0"]) + p["in_b0"])
    means, logs = (xp.matmul(h, p[f"{name}_w0"]) + p[f"{name}_b0"] for name in ("mean", "log"))
    z = means + xp.exp(0.5 * logs) * noise
    h = xp.relu(xp.matmul(z, p["out_w0"]) + p["out_b0"])
    logits = xp.matmul(h, p["out_w1"]) + p["out_b1"]
    losses = xp.relu(logits) - logits * x + xp.log(1 + xp.exp(-xp.abs(logits)))
    divergence = -0.5 * xp.sum(1 + logs - means * means - xp.exp(logs), axis=1)
    return xp.mean(xp.sum(losses, axis=1) + divergence)


def _pictures(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, h, z, pixels = sizes["n"], sizes["hidden"], sizes["latent"], sizes["pixels"]
    p = _dense(rng, "in", pixels, h) | _dense(rng, "mean", h, z) | _dense(rng, "log", h, z) | _dense(rng, "out", z, h, pixels)
    return p, (rng.random((n, pixels)) < 0.2).astype(np.float32), f32(rng, n, z)


def _lstm_language_model(xp: Any, p: Any, text: Any) -> Any:
    """The cross entropy of the next characters; ``text`` of (time, example).

    S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 1997.
    """
    width = p["h"].shape[0]
    h = c = 0.0 * p["embedding"][text[0]]
    states = []
    for t in range(text.shape[0] - 1):
        gates = xp.matmul(p["embedding"][text[t]], p["x"]) + xp.matmul(h, p["h"]) + p["b"]
        i, f, g, o = (gates[:, k * width : (k + 1) * width] for k in range(4))
        c = xp.sigmoid(f) * c + xp.sigmoid(i) * xp.tanh(g)
        h = xp.sigmoid(o) * xp.tanh(c)
        states.append(h)
    logits = xp.matmul(xp.reshape(xp.stack(states), (-1, width)), p["out"])
    return xp.cross_entropy(logits, xp.reshape(text[1:], (-1,)))


def _characters(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, width, letters = sizes["n"], sizes["width"], sizes["letters"]
    shapes = {"embedding": (letters, width), "x": (width, 4 * width), "h": (width, 4 * width), "out": (width, letters)}
    p = {name: f32(rng, *shape, scale=1 / math.sqrt(width)) for name, shape in shapes.items()}
    return {**p, "b": np.zeros(4 * width, np.float32)}, rng.integers(0, letters, (sizes["steps"] + 1, n))


def _gpt(xp: Any, p: Any, text: Any, positions: Any, future: Any) -> Any:
    """The cross entropy of the next characters by a transformer; ``text`` of (example, time).

    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.
    """
    width, batch, time = p["embedding"].shape[1], text.shape[0], text.shape[1] - 1
    heads = 4
    x = p["embedding"][text[:, :-1]] + positions
    for k in range(2):
        y = xp.layer_norm(x, p[f"scale{k}"], p[f"shift{k}"])
        q, key, v = (
            xp.permute_dims(xp.reshape(xp.matmul(y, p[f"{name}{k}"]), (batch, time, heads, width // heads)), (0, 2, 1, 3))
            for name in "qkv"
        )
        scores = xp.matmul(q, xp.permute_dims(key, (0, 1, 3, 2))) * (heads / width) ** 0.5 + future
        mixed = xp.matmul(xp.softmax(scores), v)
        x = x + xp.matmul(xp.reshape(xp.permute_dims(mixed, (0, 2, 1, 3)), (batch, time, width)), p[f"o{k}"])
        y = xp.layer_norm(x, p[f"scale{k}b"], p[f"shift{k}b"])
        x = x + xp.matmul(xp.gelu(xp.matmul(y, p[f"up{k}"])), p[f"down{k}"])
    logits = xp.matmul(xp.reshape(x, (batch * time, width)), p["out"])
    return xp.cross_entropy(logits, xp.reshape(text[:, 1:], (-1,)))


def _sentences(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, width, letters, time = sizes["n"], sizes["width"], sizes["letters"], sizes["steps"]
    shapes: dict[str, tuple[int, int]] = {"embedding": (letters, width), "out": (width, letters)}
    for k in range(2):
        shapes |= {f"{name}{k}": (width, width) for name in "qkvo"}
        shapes |= {f"up{k}": (width, 4 * width), f"down{k}": (4 * width, width)}
    p = {name: f32(rng, *shape, scale=1 / math.sqrt(shape[0])) for name, shape in shapes.items()}
    for name in ("0", "0b", "1", "1b"):
        p[f"scale{name}"], p[f"shift{name}"] = np.ones(width, np.float32), np.zeros(width, np.float32)
    future = np.triu(np.full((time, time), -1e9, np.float32), 1)
    return p, rng.integers(0, letters, (n, time + 1)), f32(rng, time, width, scale=0.1), future


def _convnet(xp: Any, p: Any, x: Any, labels: Any) -> Any:
    """The cross entropy of two convolutions with maxima of 2 x 2, and two dense layers.

    Y. LeCun et al., "Gradient-based learning applied to document recognition", Proc. IEEE 1998.
    """
    for k in (1, 2):
        x = xp.relu(xp.conv2d(x, p[f"kernel{k}"]) + p[f"bias{k}"][:, None, None])
        n, c, h, w = x.shape
        x = xp.max(xp.max(xp.reshape(x, (n, c, h // 2, 2, w // 2, 2)), 5), 3)
    x = xp.relu(xp.matmul(xp.reshape(x, (x.shape[0], -1)), p["dense_w0"]) + p["dense_b0"])
    return xp.cross_entropy(xp.matmul(x, p["dense_w1"]) + p["dense_b1"], labels)


def _digits(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, a, b, side = sizes["n"], *sizes["channels"], sizes["side"]
    after = ((side - 4) // 2 - 4) // 2
    p = _dense(rng, "dense", b * after * after, sizes["hidden"], 10)
    p |= {"kernel1": f32(rng, a, 1, 5, 5, scale=0.2), "kernel2": f32(rng, b, a, 5, 5, scale=0.2 / math.sqrt(a))}
    p |= {"bias1": np.zeros(a, np.float32), "bias2": np.zeros(b, np.float32)}
    return p, rng.random((n, 1, side, side), np.float32), rng.integers(0, 10, n)


PROGRAMS = (
    program(
        "burgers_network", "network for Burgers' equation, 3 layers of 64, 10,000 points: value and gradients",
        _collocation_points, gradient_of(_burgers_network), {"n": 10_000, "width": 64}, {"n": 5, "width": 3},
        "tanh, products of tall matrices, and elementwise work between them",
    ),
    program(
        "autoencoder", "variational autoencoder, 784-400-20, batch of 128: value and gradients", _pictures,
        gradient_of(_autoencoder), {"n": 128, "hidden": 400, "latent": 20, "pixels": 784},
        {"n": 3, "hidden": 5, "latent": 2, "pixels": 7}, "matrix products, and exp and log of the pictures",
    ),
    program(
        "lstm", "LSTM language model, width 128, 32 steps of 32 texts: value and gradients", _characters,
        gradient_of(_lstm_language_model), {"n": 32, "width": 128, "letters": 80, "steps": 32},
        {"n": 2, "width": 3, "letters": 5, "steps": 3}, "small matrix products, one after the other",
    ),
    program(
        "gpt", "transformer of 2 layers, width 128, 16 texts of 64: value and gradients", _sentences, gradient_of(_gpt),
        {"n": 16, "width": 128, "letters": 80, "steps": 64}, {"n": 2, "width": 8, "letters": 5, "steps": 3},
        "matrix products, softmax, layer norms and gelu",
    ),
    program(
        "convnet", "two convolutions of 5 x 5 and dense layers, 64 digits: value and gradients", _digits,
        gradient_of(_convnet), {"n": 64, "channels": (16, 32), "side": 28, "hidden": 128},
        {"n": 2, "channels": (2, 3), "side": 16, "hidden": 4}, "convolutions", tolerance=2e-4,
    ),
)  # fmt: skip
