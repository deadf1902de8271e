"""jax.experimental: ode; imports batching, core, scipy."""
