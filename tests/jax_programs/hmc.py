"""Hamiltonian Monte Carlo for a logistic regression, by lax.scan."""

import jax
import jax.numpy as jnp
import jax.scipy.stats.norm as norm
from jax import lax, random
from jax.flatten_util import ravel_pytree


def main(jit):
    jax.config.update("jax_enable_x64", True)
    x = jnp.sin(jnp.arange(24.0)).reshape(12, 2)
    y = (x[:, 0] + 0.5 * x[:, 1] > 0).astype(jnp.float64)
    start, unravel = ravel_pytree({"w": jnp.zeros(2), "b": jnp.zeros(())})

    def log_prob(flat):
        p = unravel(flat)
        logits = jnp.dot(x, p["w"]) + p["b"]
        likelihood = jnp.sum(y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits))
        return likelihood + norm.logpdf(flat, 0.0, 2.0).sum()

    def leapfrog(q, p, step, n):
        def body(carry, _):
            q, p = carry
            p = p + 0.5 * step * jax.grad(log_prob)(q)
            q = q + step * p
            p = p + 0.5 * step * jax.grad(log_prob)(q)
            return (q, p), None

        (q, p), _ = lax.scan(body, (q, p), None, length=n)
        return q, -p

    @jit
    def kernel(q, momentum, u):
        new_q, new_p = leapfrog(q, momentum, 0.3, 4)
        energy = log_prob(q) - 0.5 * jnp.sum(momentum**2)
        new_energy = log_prob(new_q) - 0.5 * jnp.sum(new_p**2)
        accept = jnp.log(u) < new_energy - energy
        return lax.select(accept, new_q, q), new_energy

    q, chain = start, []
    for k in range(6):
        momentum = jnp.cos(jnp.arange(3.0) * (k + 1))
        u = jnp.array((k * 0.37 + 0.05) % 1.0)
        q, energy = kernel(q, momentum, u)
        chain.append(jnp.concatenate([q, energy[None]]))
    keys = random.split(random.PRNGKey(0), 3)
    assert keys.shape[0] == 3
    return jnp.stack(chain)
