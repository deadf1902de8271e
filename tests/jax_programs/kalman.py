"""A Kalman filter and smoother by lax.scan, its likelihood maximised, and a linear recurrence by associative_scan."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import tree_map


class Gaussian(NamedTuple):
    mean: jax.Array
    cov: jax.Array


def kalman(params, ys):
    A, C = params["A"], params["C"]
    Q, R = jnp.exp(params["q"]) * jnp.eye(2), jnp.exp(params["r"]) * jnp.eye(1)

    def forward(carry, y):
        state, ll = carry
        m, P = A @ state.mean, A @ state.cov @ A.T + Q
        S = C @ P @ C.T + R
        K = jax.scipy.linalg.solve(S, C @ P, assume_a="pos").T
        r = y - C @ m
        ll = ll - 0.5 * (r @ jnp.linalg.solve(S, r) + jnp.linalg.slogdet(S)[1] + jnp.log(2 * jnp.pi))
        new = Gaussian(m + K @ r, P - K @ S @ K.T)
        return (new, ll), (new, Gaussian(m, P))

    (_, ll), (filtered, predicted) = lax.scan(forward, (Gaussian(jnp.zeros(2), jnp.eye(2)), 0.0), ys)

    def backward(nxt, inputs):
        f, p = inputs
        G = jnp.linalg.solve(p.cov, A @ f.cov).T
        s = Gaussian(f.mean + G @ (nxt.mean - p.mean), f.cov + G @ (nxt.cov - p.cov) @ G.T)
        return s, s

    last = tree_map(lambda v: v[-1], filtered)
    shifted = tree_map(lambda v: v[1:], predicted), tree_map(lambda v: v[:-1], filtered)
    _, smoothed = lax.scan(backward, last, (shifted[1], shifted[0]), reverse=True)
    return ll, smoothed


def main(jit):
    jax.config.update("jax_enable_x64", True)
    ys = jnp.sin(jnp.arange(9.0) * 0.7)[:, None]
    params = {"A": jnp.array([[0.9, 0.2], [-0.2, 0.9]]), "C": jnp.array([[1.0, 0.3]]), "q": jnp.array(-1.0), "r": jnp.array(-0.5)}

    @jit
    def step(params):
        loss, grads = jax.value_and_grad(lambda p: -kalman(p, ys)[0])(params)
        return tree_map(lambda p, g: p - 0.02 * g, params, grads), loss

    losses = []
    for _ in range(4):
        params, loss = step(params)
        losses.append(loss)
    smoothed = jit(lambda p: kalman(p, ys)[1])(params)

    def combine(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    decay = jnp.full((9, 1), 0.8)
    recurrence = jit(lambda d, u: lax.associative_scan(combine, (d, u))[1])(decay, ys)
    return jnp.concatenate([jnp.stack(losses), smoothed.mean.ravel(), recurrence.ravel()])
