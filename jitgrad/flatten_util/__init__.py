"""jax.flatten_util: a pytree as one vector; imports autograd."""

from __future__ import annotations

from jitgrad.autograd.flattening import flatten_params as ravel_pytree

__all__ = ["ravel_pytree"]
