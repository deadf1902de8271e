"""A ray tracer of spheres: vmap of vmap, argmin of all hits, lax.scan over bounces, gradients by the scene."""

import jax
import jax.numpy as jnp
from jax import lax, vmap, jit as J, grad
import numpy as np


def norm(v):
    return v / jnp.linalg.norm(v, axis=-1, keepdims=True)


def sphere(o, d, c, r):
    oc = o - c
    b = jnp.dot(oc, d)
    cc = jnp.dot(oc, oc) - r**2
    disc = b * b - cc
    t = -b - jnp.sqrt(jnp.where(disc > 0, disc, 1.0))
    return jnp.where((disc > 0) & (t > 1e-3), t, jnp.inf)


def nearest(o, d, scene):
    ts = vmap(lambda c, r: sphere(o, d, c, r))(scene["c"], scene["r"])
    i = jnp.argmin(ts)
    return ts[i], i


def shade(o, d, scene, depth=2):
    def bounce(carry, _):
        o, d, col, atten = carry
        t, i = nearest(o, d, scene)
        hit = jnp.isfinite(t)
        t = jnp.where(hit, t, 0.0)
        p = o + t * d
        n = norm(p - scene["c"][i])
        l = norm(scene["light"] - p)
        ts, _ = nearest(p + 1e-3 * n, l, scene)
        diff = jnp.maximum(jnp.dot(n, l), 0.0) * jnp.where(jnp.isfinite(ts), 0.0, 1.0)
        c = scene["col"][i] * (0.1 + diff)
        col = col + jnp.where(hit, atten * c, atten * jnp.array([0.5, 0.7, 1.0]) * (d[1] * 0.5 + 0.5))
        d2 = d - 2 * jnp.dot(d, n) * n
        return (p + 1e-3 * n, jnp.where(hit, d2, d), col, jnp.where(hit, atten * 0.3, 0.0)), None

    (_, _, col, _), _ = lax.scan(bounce, (o, d, jnp.zeros(3), 1.0), None, length=depth)
    return col


def render(scene, xs, ys):
    def pixel(y, x):
        return shade(jnp.array([0.0, 0.0, -3.0]), norm(jnp.array([x, y, 1.0])), scene)

    return jnp.clip(vmap(vmap(pixel, (None, 0)), (0, None))(ys, xs), 0, 1)


def run(jit, seed, n):
    r = np.random.default_rng(seed)
    scene = dict(
        c=jnp.array(r.normal(size=(3, 3)) * 0.7),
        r=jnp.array(r.random(3) * 0.3 + 0.4),
        col=jnp.array(r.random((3, 3))),
        light=jnp.array([2.0, 3.0, -3.0]),
    )
    xs, ys = jnp.linspace(-1, 1, n), jnp.linspace(-1, 1, n + 1)
    img = jit(render)(scene, xs, ys)
    g = jit(grad(lambda s: render(s, xs, ys).mean()))(scene)
    return img, g


def main(jit):
    jax.config.update("jax_enable_x64", True)
    leaves = jax.tree_util.tree_leaves(run(jit, 0, 6))
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(float) for x in leaves])
