"""A neural ODE by Runge-Kutta steps, with an activation of its own derivative, trained by Adam written by hand."""

import functools

import jax
import jax.numpy as jnp
from jax import lax, nn


@jax.custom_jvp
def softplus(x):
    return jnp.logaddexp(x, 0.0)


@softplus.defjvp
def softplus_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return softplus(x), nn.sigmoid(x) * t


@jax.tree_util.register_pytree_node_class
class Layer:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def __call__(self, x):
        return x @ self.w + self.b

    def tree_flatten(self):
        return (self.w, self.b), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def field(params, y, t):
    h = softplus(params[0](jnp.append(y, t)))
    return params[1](h)


def odeint(params, y0, ts):
    def step(y, pair):
        t, dt = pair
        k1 = field(params, y, t)
        k2 = field(params, y + 0.5 * dt * k1, t + 0.5 * dt)
        k3 = field(params, y + 0.5 * dt * k2, t + 0.5 * dt)
        k4 = field(params, y + dt * k3, t + dt)
        y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return y, y

    return lax.scan(step, y0, (ts[:-1], jnp.diff(ts)))[1]


def main(jit):
    jax.config.update("jax_enable_x64", True)
    w = lambda n, m, k: jnp.cos(jnp.arange(n * m) * 1.7 + k).reshape(n, m) * 0.4
    params = [Layer(w(3, 8, 0.0), jnp.zeros(8)), Layer(w(8, 2, 1.0), jnp.zeros(2))]
    ts = jnp.linspace(0.0, 1.0, 6)
    y0 = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]])
    target = jnp.stack([y0 * jnp.exp(-t) for t in ts[1:]], axis=1)
    batched = jax.vmap(odeint, in_axes=(None, 0, None))

    def loss_fn(params):
        return jnp.mean((batched(params, y0, ts) - target) ** 2)

    @functools.partial(jit)
    def step(i, params, m, v):
        loss, grads = jax.value_and_grad(loss_fn)(params)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, v, grads)
        update = lambda p, m, v: p - 0.05 * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.99**i)) + 1e-8)
        return jax.tree.map(update, params, m, v), m, v, loss

    m = v = jax.tree.map(jnp.zeros_like, params)
    losses = []
    for i in range(1, 6):
        params, m, v, loss = step(float(i), params, m, v)
        losses.append(loss)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    assert len(paths) == 4
    curvature = jit(lambda p: jax.jvp(jax.grad(loss_fn), (p,), (p,))[1])(params)
    return jnp.concatenate([jnp.stack(losses), jax.flatten_util.ravel_pytree(curvature)[0]])
