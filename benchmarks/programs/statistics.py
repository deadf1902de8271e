"""Likelihoods: Gaussian processes, mixtures, hidden Markov models, filters, and regressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program
from benchmarks.workload import Arrays, Sizes


def _log_sum_exp(xp: Any, x: Any, axis: int) -> Any:
    most = xp.max(x, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - most), axis=axis)) + xp.sum(most, axis=axis)


def _gaussian_process(xp: Any, scales: Any, x: Any, y: Any) -> Any:
    """y' K^-1 y by eight steps of conjugate gradients, K of the squared exponential kernel with a scale per feature."""
    z = x / xp.exp(scales)
    squares = xp.sum(z * z, 1)
    kernel = xp.exp(-0.5 * (squares[:, None] + squares[None, :] - 2 * xp.matmul(z, xp.permute_dims(z, (1, 0)))))
    solution, residual = 0.0 * y, y
    direction = residual
    for _ in range(8):
        image = xp.matmul(kernel, direction) + direction
        length = xp.sum(residual * residual) / xp.sum(direction * image)
        solution = solution + length * direction
        following = residual - length * image
        direction = following + xp.sum(following * following) / xp.sum(residual * residual) * direction
        residual = following
    return xp.sum(y * solution)


def _regression_data(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, k = sizes["n"], sizes["features"]
    return np.zeros(k), rng.normal(size=(n, k)), rng.normal(size=n)


def _mixture(xp: Any, logits: Any, means: Any, spreads: Any, x: Any) -> Any:
    """The log-likelihood of a mixture of Gaussians with diagonal covariances."""
    d = (x[:, None, :] - means[None, :, :]) / xp.exp(spreads)[None, :, :]
    each = -0.5 * xp.sum(d * d, 2) - xp.sum(spreads, 1)[None, :] + logits[None, :]
    return xp.mean(_log_sum_exp(xp, each, 1)) - _log_sum_exp(xp, logits[None, :], 1)[0]


def _clusters(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    k, d = sizes["components"], sizes["features"]
    return rng.normal(size=k), rng.normal(size=(k, d)), 0.1 * rng.normal(size=(k, d)), rng.normal(size=(sizes["n"], d))


def _hidden_markov(xp: Any, transitions: Any, emissions: Any) -> Any:
    """The forward algorithm in logarithms; ``emissions`` of (time, state)."""
    steps = transitions - _log_sum_exp(xp, transitions, 1)[:, None]
    alpha = emissions[0]
    for t in range(1, emissions.shape[0]):
        alpha = _log_sum_exp(xp, alpha[:, None] + steps, 0) + emissions[t]
    return _log_sum_exp(xp, alpha[None, :], 1)[0]


def _kalman(xp: Any, noise: Any, y: Any) -> Any:
    """The log-likelihood of many series by a filter of position and velocity; ``y`` of (time, series)."""
    q, r = xp.exp(noise[0]), xp.exp(noise[1])
    position, velocity = 0.0 * y[0], 0.0 * y[0]
    a, b, c = 1.0 + 0.0 * y[0], 0.0 * y[0], 1.0 + 0.0 * y[0]
    total = 0.0
    for t in range(y.shape[0]):
        position = position + velocity
        a, b, c = a + 2 * b + c + 0.25 * q, b + c + 0.5 * q, c + q
        s, error = a + r, y[t] - position
        total = total - 0.5 * (xp.log(s) + error * error / s)
        position, velocity = position + a / s * error, velocity + b / s * error
        a, b, c = a - a * a / s, b - a * b / s, c - b * b / s
    return xp.mean(total)


def _logistic(xp: Any, w: Any, x: Any, y: Any) -> Any:
    z = xp.matmul(x, w)
    positive = xp.where(z > 0, z, 0.0 * z)
    return xp.mean(positive - y * z + xp.log(1 + xp.exp(-xp.abs(z)))) + 1e-3 * xp.sum(w * w)


def _factorisation(xp: Any, u: Any, v: Any, ratings: Any) -> Any:
    error = ratings - xp.matmul(u, xp.permute_dims(v, (1, 0)))
    return xp.mean(error * error) + 0.01 * (xp.mean(u * u) + xp.mean(v * v))


def _ratings(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, k = sizes["n"], sizes["factors"]
    return 0.1 * rng.normal(size=(n, k)), 0.1 * rng.normal(size=(n, k)), rng.normal(size=(n, n))


PROGRAMS = (
    program(
        "gaussian_process", "quadratic form of a Gaussian process of 1,000 points: value, d/dscales", _regression_data,
        gradient_of(_gaussian_process), {"n": 1000, "features": 8}, {"n": 12, "features": 3},
        "exp of a matrix, and 16 products of a matrix and a vector", tolerance=1e-7,
    ),
    program(
        "mixture", "16 Gaussians in 8 dimensions, 20,000 points: value and 3 gradients", _clusters,
        gradient_of(_mixture, (0, 1, 2)), {"n": 20_000, "components": 16, "features": 8},
        {"n": 10, "components": 3, "features": 2}, "arithmetic on (points, components, features)", tolerance=1e-8,
    ),
    program(
        "hidden_markov", "forward algorithm, 32 states, 100 steps: value and gradients",
        lambda rng, sizes: (rng.normal(size=(sizes["states"],) * 2), rng.normal(size=(sizes["steps"], sizes["states"]))),
        gradient_of(_hidden_markov, (0, 1)), {"states": 32, "steps": 100}, {"states": 4, "steps": 5},
        "exp of a small matrix a step, one after the other", tolerance=1e-8,
    ),
    program(
        "kalman", "filters of 10,000 series of 50 values: value, d/dnoise",
        lambda rng, sizes: (np.array([-2.0, 0.5]), np.cumsum(rng.normal(size=(sizes["steps"], sizes["series"])), 0)),
        gradient_of(_kalman), {"series": 10_000, "steps": 50}, {"series": 4, "steps": 5},
        "arithmetic: 30 operations and 7 divisions a value, forward and back", tolerance=1e-7,
    ),
    program(
        "logistic", "logistic regression, 50,000 x 50: value and gradient",
        lambda rng, s: (0.1 * rng.normal(size=s["k"]), rng.normal(size=(s["n"], s["k"])), 1.0 * (rng.random(s["n"]) < 0.5)),
        gradient_of(_logistic), {"n": 50_000, "k": 50}, {"n": 20, "k": 3}, "memory: the data read twice", tolerance=1e-8,
    ),
    program(
        "factorisation", "factors of a matrix of 1,000 x 1,000: value and 2 gradients", _ratings,
        gradient_of(_factorisation, (0, 1)), {"n": 1000, "factors": 20}, {"n": 9, "factors": 2},
        "three products and two passes over the matrix", tolerance=1e-8,
    ),
)  # fmt: skip
