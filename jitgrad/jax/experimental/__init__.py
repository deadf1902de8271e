"""jax.experimental: ode; imports scipy, core."""
