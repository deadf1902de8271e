"""jax.scipy.sparse: solutions of linear systems whose matrix is a function; imports core, ops, autograd, flatten_util, lax."""

from jitgrad.jax.scipy.sparse import linalg as linalg

__all__ = ["linalg"]
