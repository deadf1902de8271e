"""A convolutional network written with jax.lax alone: convolutions, pooled windows, a loss with masked labels."""

import jax
import jax.numpy as jnp
from jax import lax


def conv(x, w, b, stride=1):
    out = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return out + b


def max_pool(x, size=2):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, size, size, 1), "VALID")


def upsample(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def forward(params, x):
    h = jax.nn.relu(conv(x, params["w1"], params["b1"]))
    h = max_pool(h)
    h = lax.cond(h.shape[0] > 1, lambda h: jax.nn.gelu(h), lambda h: h, h)
    h = jax.nn.gelu(conv(h, params["w2"], params["b2"], stride=2))
    up = upsample(h, params["w3"])
    pooled = lax.reduce(up, 0.0, lax.add, (1, 2))
    flat = lax.dot_general(pooled, params["head"], (((1,), (0,)), ((), ())))
    return flat - lax.stop_gradient(flat.mean(axis=-1, keepdims=True))


def loss_fn(params, x, labels):
    log_probs = jax.nn.log_softmax(forward(params, x))
    valid = labels >= 0
    picked = jnp.take_along_axis(log_probs, jnp.where(valid, labels, 0)[:, None], axis=1)[:, 0]
    return -jnp.sum(jnp.where(valid, picked, 0.0)) / jnp.maximum(valid.sum(), 1)


def main(jit):
    jax.config.update("jax_enable_x64", True)
    fill = lambda shape, k: jnp.sin(jnp.arange(float(jnp.prod(jnp.array(shape)))) * 1.3 + k).reshape(shape) * 0.3
    params = {
        "w1": fill((3, 3, 2, 4), 0), "b1": jnp.zeros(4), "w2": fill((3, 3, 4, 5), 1), "b2": jnp.zeros(5),
        "w3": fill((2, 2, 5, 3), 2), "head": fill((3, 4), 3),
    }
    x = fill((5, 8, 8, 2), 4)
    labels = jnp.array([0, 3, -1, 2, 1])

    @jit
    def step(params, x, labels):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, labels)
        norm = jnp.sqrt(jax.tree_util.tree_reduce(lambda a, g: a + jnp.vdot(g, g), grads, 0.0))
        scale = jnp.minimum(1.0, 1.0 / norm)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * scale * g, params, grads), loss, norm

    out = []
    for k in range(5):
        params, loss, norm = step(params, x, jnp.roll(labels, k))
        out += [loss, norm]
    return jnp.concatenate([jnp.stack(out), forward(params, x).ravel()])
