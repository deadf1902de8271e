"""Baum-Welch and Viterbi for a hidden Markov model in a NamedTuple, by lax.scan."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np


class HMM(NamedTuple):
    log_pi: jnp.ndarray
    log_A: jnp.ndarray
    log_B: jnp.ndarray


lse = jax.scipy.special.logsumexp


def forward(h, obs):
    def f(alpha, o):
        a = lse(alpha[:, None] + h.log_A, axis=0) + h.log_B[:, o]
        return a, a

    a0 = h.log_pi + h.log_B[:, obs[0]]
    _, rest = lax.scan(f, a0, obs[1:])
    return jnp.vstack([a0, rest])


def backward(h, obs):
    def f(beta, o):
        b = lse(h.log_A + h.log_B[:, o] + beta, axis=1)
        return b, b

    last = jnp.zeros(h.log_pi.shape[0])
    _, rest = lax.scan(f, last, obs[1:], reverse=True)
    return jnp.concatenate([rest, last[None]])


def step(h, obs):
    a, b = forward(h, obs), backward(h, obs)
    ll = lse(a[-1])
    gamma = jnp.exp(a + b - ll)
    xi = jnp.exp(a[:-1, :, None] + h.log_A + (h.log_B[:, obs[1:]].T + b[1:])[:, None, :] - ll)
    A = xi.sum(0)
    A /= A.sum(1, keepdims=True)
    B = jnp.zeros_like(h.log_B).at[:, obs].add(gamma.T)
    B = B / B.sum(1, keepdims=True)
    return HMM(jnp.log(gamma[0]), jnp.log(A), jnp.log(B)), ll


def viterbi(h, obs):
    def f(delta, o):
        s = delta[:, None] + h.log_A
        return s.max(0) + h.log_B[:, o], s.argmax(0)

    last, ptr = lax.scan(f, h.log_pi + h.log_B[:, obs[0]], obs[1:])
    end = jnp.argmax(last)

    def back(s, p):
        return p[s], s

    first, path = lax.scan(back, end, ptr, reverse=True)
    return jnp.append(first, path), last.max()


def run(jit, seed, n):
    r = np.random.default_rng(seed)
    dir = lambda *s: jnp.log(jnp.array(r.dirichlet(np.ones(s[-1]) * 2, size=s[:-1])))
    h = HMM(dir(3), dir(3, 3), dir(3, 4))
    obs = jnp.array(r.integers(0, 4, n))
    lls = []
    update = jit(step)
    for _ in range(3):
        h, ll = update(h, obs)
        lls.append(ll)
    g = jax.grad(lambda h: lse(forward(h, obs)[-1]))(h)
    return jax.tree_util.tree_map(jnp.exp, h), lls, jit(viterbi)(h, obs), g


def main(jit):
    jax.config.update("jax_enable_x64", True)
    leaves = jax.tree_util.tree_leaves(run(jit, 0, 6))
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(float) for x in leaves])
