"""jax.experimental: ode; imports core, ops, scipy."""
