"""A bootstrap particle filter: lax.scan, lax.cond that resamples, and the gradient of its likelihood."""

import jax
import jax.numpy as jnp
from jax import lax, vmap
import numpy as np


def systematic(w, u):
    n = w.shape[0]
    pos = (jnp.arange(n) + u) / n
    return jnp.clip(jnp.searchsorted(jnp.cumsum(w), pos), 0, n - 1)


def pf(ys, noise, us, x0, params):
    def body(carry, inp):
        x, logw, ll = carry
        y, eps, u = inp
        x = params["a"] * x + 25 * x / (1 + x**2) * 0.1 + params["q"] * eps
        logw = logw - 0.5 * ((y - x**2 / 20) / params["r"]) ** 2 - jnp.log(params["r"])
        lse = jax.nn.logsumexp(logw)
        w = jnp.exp(logw - lse)
        ess = 1 / jnp.sum(w**2)

        def resample(args):
            x, w, lw = args
            idx = systematic(w, u)
            return x[idx], jnp.full_like(lw, -jnp.log(x.shape[0]))

        x, logw2 = lax.cond(ess < x.shape[0] / 2, resample, lambda a: (a[0], a[2] - lse), (x, w, logw))
        return (x, logw2, ll + lse), (jnp.sum(w * x), ess)

    n = x0.shape[0]
    (x, _, ll), (means, ess) = lax.scan(body, (x0, jnp.full(n, -jnp.log(n)), 0.0), (ys, noise, us))
    return ll, means, ess, x


def run(jit, seed, n):
    r = np.random.default_rng(seed)
    T = 6
    P = {"a": 0.5, "q": 1.0, "r": 1.5}
    a = (
        jnp.array(r.normal(size=T) ** 2),
        jnp.array(r.normal(size=(T, n))),
        jnp.array(r.random(T)),
        jnp.array(r.normal(size=n)),
    )
    out = jit(pf)(*a, P)
    g = jit(jax.grad(lambda p: pf(*a, p)[0]))({k: jnp.array(v) for k, v in P.items()})
    return out, g


def main(jit):
    jax.config.update("jax_enable_x64", True)
    leaves = jax.tree_util.tree_leaves(run(jit, 0, 6))
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(float) for x in leaves])
