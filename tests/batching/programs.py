"""Programs that use vmap, written once for jitgrad, JAX and torch: ``lib`` is the library, with the names they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Inputs = dict[str, np.ndarray[Any, Any]]
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], list[Any]]]] = {}


def program(draw: Callable[[np.random.Generator], list[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program with a function that draws its arguments."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = f, draw
        return f

    return register


def network(rng: np.random.Generator, *stacked: int) -> Inputs:
    return {"w": rng.normal(size=(*stacked, 3, 4)), "b": rng.normal(size=(*stacked, 4)), "v": rng.normal(size=(*stacked, 4))}


def apply(lib: Any, p: Any, x: Any) -> Any:
    return lib.tanh(x @ p["w"] + p["b"]) @ p["v"]


@program(lambda rng: [network(rng), rng.normal(size=(6, 3)), rng.normal(size=6)])
def gradients_of_each_example(lib: Any, p: Any, xs: Any, ys: Any) -> Any:
    return lib.vmap(lib.grad(lambda p, x, y: (apply(lib, p, x) - y) ** 2), (None, 0, 0))(p, xs, ys)


@program(lambda rng: [network(rng), rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 5))])
def model_agnostic_meta_learning(lib: Any, p: Any, xs: Any, ys: Any) -> Any:
    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((apply(lib, p, x) - y) ** 2).mean()

    def adapted(p: Any, x: Any, y: Any) -> Any:
        for _ in range(2):
            g = lib.grad(loss)(p, x[:3], y[:3])
            p = {name: p[name] - 0.1 * g[name] for name in p}
        return loss(p, x[3:], y[3:])

    return lib.grad(lambda p: lib.vmap(lambda x, y: adapted(p, x, y))(xs, ys).mean())(p)


@program(lambda rng: [network(rng, 5), rng.normal(size=(6, 3))])
def ensemble(lib: Any, ps: Any, xs: Any) -> Any:
    return lib.vmap(lambda p: apply(lib, p, xs))(ps).mean(0), lib.vmap(lib.grad(lambda p: apply(lib, p, xs).sum()))(ps)


@program(lambda rng: [network(rng), rng.normal(size=(6, 3))])
def jacobian_of_a_network(lib: Any, p: Any, xs: Any) -> Any:
    return lib.vmap(lib.jacobian(lambda x: lib.tanh(lib.tanh(x @ p["w"]) @ p["w"].T)))(xs)


def invertible(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.normal(size=(*shape, 3, 3)) + 4.0 * np.eye(3)


@program(lambda rng: [invertible(rng, 4), rng.normal(size=(4, 3)), invertible(rng)])
def linear_systems(lib: Any, a: Any, b: Any, shared: Any) -> Any:
    def one(a: Any, b: Any) -> Any:
        return (lib.solve(a, b[:, None]) ** 2).sum()

    of_shared = lib.grad(lambda s: lib.vmap(one, (None, 0))(s, b).sum())(shared)
    return lib.vmap(one)(a, b), lib.vmap(lib.grad(one, (0, 1)))(a, b), of_shared


@program(lambda rng: [network(rng), rng.normal(size=(6, 3)), rng.normal(size=(6, 3))])
def hessian_vector_products(lib: Any, p: Any, xs: Any, vs: Any) -> Any:
    def product(x: Any, v: Any) -> Any:
        return lib.grad(lambda x: (lib.grad(lambda x: apply(lib, p, x) ** 2)(x) * v).sum())(x)

    return lib.vmap(product)(xs, vs)


@program(lambda rng: [rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), rng.uniform(0.5, 1.5, 3)])
def kernel_matrix(lib: Any, xs: Any, ys: Any, scale: Any) -> Any:
    def k(x: Any, y: Any, s: Any) -> Any:
        return lib.exp(-(((x - y) / s) ** 2).sum() / 2)

    def gram(s: Any) -> Any:
        return lib.vmap(lambda x: lib.vmap(lambda y: k(x, y, s))(ys))(xs)

    crossed = lib.vmap(lib.vmap(lib.grad(k), (None, 0, None)), (0, None, None))(xs, ys, scale)
    return gram(scale), crossed, lib.grad(lambda s: (gram(s) ** 2).sum())(scale)


@program(lambda rng: [rng.normal(size=(5, 3)), rng.uniform(0.5, 1.5, 5)])
def bodies(lib: Any, places: Any, masses: Any) -> Any:
    def pull(place: Any, other: Any, mass: Any) -> Any:
        d = other - place
        return mass * d / ((d * d).sum() + 0.1) ** 1.5

    def energy(places: Any) -> Any:
        return lib.vmap(lambda a: lib.vmap(lambda b: 1.0 / ((a - b) ** 2 + 0.1).sum())(places).sum())(places).sum()

    forces = lib.vmap(lambda p: lib.vmap(lambda q, m: pull(p, q, m))(places, masses).sum(0))(places)
    return forces, lib.grad(energy)(places)


@program(lambda rng: [rng.normal(size=(3, 3)), rng.normal(size=(3, 5)), rng.integers(0, 5, (4, 6))])
def hidden_markov_model(lib: Any, transitions: Any, emissions: Any, sequences: Any) -> Any:
    def likelihood(transitions: Any, emissions: Any, sequence: Any) -> Any:
        state = emissions[:, sequence[0]]
        for k in range(1, 6):
            state = lib.logsumexp(state[:, None] + transitions, 0) + emissions[:, sequence[k]]
        return lib.logsumexp(state, 0)

    each = lib.vmap(likelihood, (None, None, 0))
    return each(transitions, emissions, sequences), lib.grad(lambda t: each(t, emissions, sequences).sum())(transitions)


@program(lambda rng: [rng.normal(size=(4, 7)), np.array([[1.0, 0.1], [0.0, 1.0]]), rng.uniform(0.5, 2.0, 4)])
def kalman_filter(lib: Any, series: Any, step: Any, noise: Any) -> Any:
    def one(values: Any, noise: Any) -> Any:
        mean, cov, total = lib.eye(2)[0] * 0.0, lib.eye(2), 0.0
        for k in range(7):
            mean, cov = step @ mean, step @ cov @ step.T + 0.01 * lib.eye(2)
            variance = cov[0, 0] + noise
            error, gain = values[k] - mean[0], cov[:, 0] / variance
            total = total + error**2 / variance + lib.log(variance)
            mean, cov = mean + gain * error, cov - gain[:, None] * cov[0]
        return total, mean

    return lib.vmap(one)(series, noise), lib.vmap(lib.grad(lambda v, n: one(v, n)[0], 1))(series, noise)


@program(lambda rng: [rng.normal(size=(4, 2)), rng.uniform(1.0, 2.0, (4, 2))])
def newton_steps(lib: Any, xs: Any, targets: Any) -> Any:
    def one(x: Any, t: Any) -> Any:
        def f(x: Any) -> Any:
            return (lib.exp(x) - t * x).sum() + (x[0] * x[1]) ** 2 / 10 + (x**2).sum()

        for _ in range(3):
            x = x - lib.solve(lib.hessian(f)(x), lib.grad(f)(x)[:, None])[:, 0]
        return x

    return lib.vmap(one)(xs, targets)


@program(lambda rng: [rng.normal(size=(5, 2, 4)), rng.normal(size=(6, 2, 4)), rng.normal(size=(6, 2, 3))])
def heads_of_attention(lib: Any, q: Any, k: Any, v: Any) -> Any:
    def head(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.T / 2.0
        weights = lib.exp(scores - lib.logsumexp(scores, 1)[:, None])
        return weights @ v

    return lib.vmap(head, (1, 1, 1), 1)(q, k, v), lib.vmap(head, 1, -1)(q, k, v)


@program(lambda rng: [network(rng), rng.normal(size=(6, 3))])
def gradient_penalty(lib: Any, p: Any, xs: Any) -> Any:
    def penalty(p: Any) -> Any:
        slopes = lib.vmap(lib.grad(lambda x: apply(lib, p, x)))(xs)
        return (((slopes**2).sum(1) + 1e-3) ** 0.5 - 1.0).mean()

    return penalty(p), lib.grad(penalty)(p)


@program(lambda rng: [network(rng), rng.normal(size=(6, 3))])
def laplacian(lib: Any, p: Any, xs: Any) -> Any:
    def one(x: Any) -> Any:
        g = lib.grad(lambda x: lib.exp(apply(lib, p, x)))
        return lib.vmap(lambda e: (lib.jvp(g, (x,), (e,))[1] * e).sum())(lib.eye(3)).sum()

    return lib.vmap(one)(xs)


@program(lambda rng: [rng.uniform(0.5, 1.5, (4, 2)), rng.uniform(0.5, 2.0, (4, 6)), rng.uniform(0.1, 1.0, 6)])
def least_squares_fits(lib: Any, starts: Any, data: Any, times: Any) -> Any:
    def fit(p: Any, y: Any) -> Any:
        def residual(p: Any) -> Any:
            return p[0] * lib.exp(-p[1] * times) - y

        for _ in range(3):
            j = lib.jacobian(residual)(p)
            p = p - lib.solve(j.T @ j + 0.1 * lib.eye(2), (j.T @ residual(p))[:, None])[:, 0]
        return p

    return lib.vmap(fit)(starts, data)


@program(lambda rng: [rng.normal(size=(7, 3)), rng.integers(0, 7, (4, 5)), rng.integers(0, 5, 4)])
def word_vectors(lib: Any, table: Any, sentences: Any, chosen: Any) -> Any:
    def score(table: Any, sentence: Any, k: Any) -> Any:
        words = table[sentence]
        scores = words @ words.mean(0)
        return scores[k] - lib.logsumexp(scores, 0)

    each = lib.vmap(score, (None, 0, 0))
    return each(table, sentences, chosen), lib.grad(lambda t: each(t, sentences, chosen).sum())(table)
