"""The Ising model by Metropolis steps: lax.fori_loop over a tuple, x.at[x, y].multiply."""

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np


def make(jit):
    def energy(s):
        return -jnp.sum(s * (jnp.roll(s, 1, axis=0) + jnp.roll(s, 1, axis=1)))

    def step(i, state):
        s, us, xs, ys, beta = state
        x, y = xs[i], ys[i]
        n, m = s.shape
        nb = s[(x + 1) % n, y] + s[(x - 1) % n, y] + s[x, (y + 1) % m] + s[x, (y - 1) % m]
        dE = 2 * s[x, y] * nb
        accept = (dE <= 0) | (us[i] < jnp.exp(-beta * dE))
        s = s.at[x, y].multiply(jnp.where(accept, -1, 1))
        return s, us, xs, ys, beta

    @jit
    def sweep(s, us, xs, ys, beta):
        s, *_ = lax.fori_loop(0, us.shape[0], step, (s, us, xs, ys, beta))
        return s, energy(s), jnp.abs(s.mean())

    def run(seed, n):
        r = np.random.default_rng(seed)
        s = jnp.array(r.choice([-1, 1], size=(n, n)))
        out = []
        for k in range(3):
            us, xs, ys = r.random(30), r.integers(0, n, 30), r.integers(0, n, 30)
            s, e, m = sweep(s, jnp.array(us), jnp.array(xs), jnp.array(ys), 0.4)
            out += [s, e, m]
        return out

    return run


def main(jit):
    jax.config.update("jax_enable_x64", True)
    leaves = jax.tree_util.tree_leaves(make(jit)(0, 6))
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(float) for x in leaves])
