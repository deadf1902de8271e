"""lax.gather and lax.scatter with dimension numbers."""

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np


def make(jit):
    @jit
    def g(x, idx):
        dn = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        rows = lax.gather(x, idx[:, None], dn, slice_sizes=(1, x.shape[1]))
        dn2 = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,))
        wins = lax.gather(x, idx[:, None], dn2, slice_sizes=(2, x.shape[1]), mode="clip")
        sd = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
        s = lax.scatter_add(x, idx[:, None], rows * 2, sd)
        t = lax.scatter(x, idx[:1, None], rows[:1] * 0, sd)
        return rows, wins, s, t

    def run(seed, n):
        r = np.random.default_rng(seed)
        x, idx = jnp.array(r.normal(size=(n, 3))), jnp.array(r.integers(0, n, 4))
        return g(x, idx), jit(jax.grad(lambda x: (g(x, idx)[2] ** 2).sum() + (g(x, idx)[1] ** 3).sum()))(x)

    return run


def main(jit):
    jax.config.update("jax_enable_x64", True)
    leaves = jax.tree_util.tree_leaves(make(jit)(0, 6))
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(float) for x in leaves])
