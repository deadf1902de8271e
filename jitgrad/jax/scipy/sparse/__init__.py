"""jax.scipy.sparse: solutions of linear systems of functions; imports core, ops, autograd, numpy, flatten_util, lax."""

from jitgrad.jax.scipy.sparse import linalg as linalg

__all__ = ["linalg"]
