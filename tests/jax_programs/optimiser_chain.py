"""Chained transformations of gradients as named tuples of functions: clipping, Adam, masked decay, a schedule."""

import functools
from typing import NamedTuple, Any, Callable
import jax
import jax.numpy as jnp
import numpy as np

class GradientTransformation(NamedTuple):
    init: Callable
    update: Callable

class ScaleByAdamState(NamedTuple):
    count: Any
    mu: Any
    nu: Any

class EmptyState(NamedTuple):
    pass

def scale_by_adam(b1=0.9, b2=0.999, eps=1e-8):
    def init_fn(params):
        mu = jax.tree_util.tree_map(jnp.zeros_like, params)
        nu = jax.tree_util.tree_map(jnp.zeros_like, params)
        return ScaleByAdamState(count=jnp.zeros([], jnp.int32), mu=mu, nu=nu)
    def update_fn(updates, state, params=None):
        del params
        mu = jax.tree_util.tree_map(lambda g, t: (1 - b1) * g + b1 * t, updates, state.mu)
        nu = jax.tree_util.tree_map(lambda g, t: (1 - b2) * (g ** 2) + b2 * t, updates, state.nu)
        count_inc = jnp.where(state.count < jnp.iinfo(jnp.int32).max, state.count + 1, state.count)
        mu_hat = jax.tree_util.tree_map(lambda t: t / (1 - b1 ** count_inc), mu)
        nu_hat = jax.tree_util.tree_map(lambda t: t / (1 - b2 ** count_inc), nu)
        updates = jax.tree_util.tree_map(lambda m, v: m / (jnp.sqrt(v) + eps), mu_hat, nu_hat)
        return updates, ScaleByAdamState(count=count_inc, mu=mu, nu=nu)
    return GradientTransformation(init_fn, update_fn)

def clip_by_global_norm(max_norm):
    def init_fn(_): return EmptyState()
    def update_fn(updates, state, params=None):
        g_norm = jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in jax.tree_util.tree_leaves(updates)))
        trigger = jnp.squeeze(g_norm < max_norm)
        def clip_fn(t):
            return jax.lax.select(trigger, t, (t / g_norm.astype(t.dtype)) * max_norm)
        return jax.tree_util.tree_map(clip_fn, updates), state
    return GradientTransformation(init_fn, update_fn)

def scale_by_schedule(step_size_fn):
    def init_fn(_): return jnp.zeros([], jnp.int32)
    def update_fn(updates, count, params=None):
        s = step_size_fn(count)
        return jax.tree_util.tree_map(lambda g: jnp.array(s, dtype=g.dtype) * g, updates), count + 1
    return GradientTransformation(init_fn, update_fn)

def add_decayed_weights(wd, mask):
    def init_fn(_): return EmptyState()
    def update_fn(updates, state, params):
        m = mask(params)
        return jax.tree_util.tree_map(lambda g, p, k: g + wd * p if k else g, updates, params, m), state
    return GradientTransformation(init_fn, update_fn)

def chain(*args):
    init_fns, update_fns = zip(*args)
    def init_fn(params): return tuple(fn(params) for fn in init_fns)
    def update_fn(updates, state, params=None):
        new_state = []
        for s, fn in zip(state, update_fns):
            updates, new_s = fn(updates, s, params)
            new_state.append(new_s)
        return updates, tuple(new_state)
    return GradientTransformation(init_fn, update_fn)

def warmup_cosine(peak, warm, total):
    def schedule(count):
        pct = jnp.clip(count / warm, 0, 1)
        frac = jnp.minimum(jnp.maximum(count - warm, 0), total) / total
        return -jnp.where(count < warm, peak * pct, peak * 0.5 * (1 + jnp.cos(jnp.pi * frac)))
    return schedule

def main(jit):
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    params = {"layer0": {"w": jnp.array(rng.normal(size=(3, 8)) * .5), "b": jnp.zeros(8)}, "layer1": {"w": jnp.array(rng.normal(size=(8, 1)) * .5), "b": jnp.zeros(1)}}
    x, y = jnp.array(rng.normal(size=(16, 3))), jnp.array(rng.normal(size=(16, 1)))
    tx = chain(clip_by_global_norm(0.5), scale_by_adam(), add_decayed_weights(1e-2, lambda p: jax.tree_util.tree_map(lambda x: x.ndim != 1, p)), scale_by_schedule(warmup_cosine(0.05, 3, 10)))
    opt_state = tx.init(params)
    def loss_fn(params, x, y):
        h = x
        for name in sorted(params):
            h = h @ params[name]["w"] + params[name]["b"]
            if name != "layer1":
                h = jax.nn.gelu(h)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))
    @jit
    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = jax.tree_util.tree_map(lambda p, u: jnp.asarray(p + u).astype(jnp.asarray(p).dtype), params, updates)
        return params, opt_state, loss
    losses = []
    for _ in range(6):
        params, opt_state, loss = step(params, opt_state, x, y)
        losses.append(loss)
    return jnp.stack(losses + [jnp.linalg.norm(params["layer0"]["w"])])
