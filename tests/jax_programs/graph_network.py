"""Messages on a graph, by jax.ops.segment_sum and its like."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.ops import segment_sum, segment_max, segment_min, segment_prod
import numpy as np


def make(jit):
    @partial(jit, static_argnames=("n",))
    def gnn(h, src, dst, W, n):
        m = jax.nn.relu(h[src] @ W)
        deg = segment_sum(jnp.ones(src.shape[0]), dst, num_segments=n)
        agg = segment_sum(m, dst, n) / jnp.maximum(deg, 1)[:, None]
        mx = segment_max(m, dst, n)
        mx = jnp.where(jnp.isfinite(mx), mx, 0.0)
        return agg + mx, segment_min(m[:, 0], dst, num_segments=n), segment_prod(1 + m[:, 0], dst, num_segments=n)

    @partial(jit, static_argnums=3)
    def gat(h, src, dst, n):
        e = jax.nn.leaky_relu((h[src] * h[dst]).sum(-1), 0.2)
        e = jnp.exp(e - jax.ops.segment_max(e, dst, num_segments=n)[dst])
        return jax.ops.segment_sum(e[:, None] * h[src], dst, num_segments=n) / (
            jax.ops.segment_sum(e, dst, num_segments=n)[:, None] + 1e-9
        )

    def run(seed, n):
        r = np.random.default_rng(seed)
        E = 3 * n
        h, W = jnp.array(r.normal(size=(n, 4))), jnp.array(r.normal(size=(4, 4)))
        src, dst = jnp.array(r.integers(0, n, E)), jnp.array(r.integers(0, n, E))
        g = (
            jit(jax.grad(lambda W: (gnn(h, src, dst, W, n)[0] ** 2).sum()))(W)
            if False
            else jit(jax.grad(lambda W: (gat(h @ W, src, dst, n) ** 2).sum()))(W)
        )
        g2 = jit(jax.grad(lambda h: gat(h, src, dst, n).sum()))(h)
        return gnn(h, src, dst, W, n=n), gat(h, src, dst, n), g, g2

    return run


def main(jit):
    jax.config.update("jax_enable_x64", True)
    leaves = jax.tree_util.tree_leaves(make(jit)(0, 6))
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(float) for x in leaves])
