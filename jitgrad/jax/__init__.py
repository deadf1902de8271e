"""jax's names: ``import jitgrad.jax as jax`` is all that changes in a program; imports everything below it.

Transforms, `numpy`, `lax`, `tree` and `tree_util` are those of `jitgrad`, and so is most of `scipy`; `image`, `nn`, `ops`
and `random` are written here. From this import on ``x += y`` makes a new tensor, as in JAX, in the whole process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jitgrad as _jitgrad
from jitgrad import ShapeDtypeStruct as ShapeDtypeStruct
from jitgrad import Tensor as Array
from jitgrad import checkpoint as checkpoint
from jitgrad import custom_jvp as custom_jvp
from jitgrad import custom_vjp as custom_vjp
from jitgrad import disable_jit as disable_jit
from jitgrad import flatten_util as flatten_util
from jitgrad import hessian as hessian
from jitgrad import jvp as jvp
from jitgrad import lax as lax
from jitgrad import numpy as numpy
from jitgrad import tree as tree
from jitgrad import tree_util as tree_util
from jitgrad import vjp as vjp
from jitgrad import vmap as vmap
from jitgrad.core.config import set_immutable as _set_immutable
from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.core.module_alias import ModuleAlias as _ModuleAlias
from jitgrad.func import jacfwd as jacfwd
from jitgrad.func import jacrev as jacrev
from jitgrad.jax import experimental as experimental
from jitgrad.jax import image as image
from jitgrad.jax import nn as nn
from jitgrad.jax import ops as ops
from jitgrad.jax import random as random
from jitgrad.jax import scipy as scipy
from jitgrad.jax.derivatives import grad as grad
from jitgrad.jax.derivatives import value_and_grad as value_and_grad
from jitgrad.jax.environment import block_until_ready as block_until_ready
from jitgrad.jax.environment import clear_caches as clear_caches
from jitgrad.jax.environment import config as config
from jitgrad.jax.environment import default_backend as default_backend
from jitgrad.jax.environment import device_count as device_count
from jitgrad.jax.environment import device_get as device_get
from jitgrad.jax.environment import device_put as device_put
from jitgrad.jax.environment import devices as devices
from jitgrad.jax.environment import eval_shape as eval_shape
from jitgrad.jax.environment import linearize as linearize
from jitgrad.jax.environment import local_device_count as local_device_count
from jitgrad.jax.environment import local_devices as local_devices
from jitgrad.jax.environment import named_call as named_call
from jitgrad.jax.environment import named_scope as named_scope

_ModuleAlias("jitgrad.jax", "jitgrad", ["experimental", "image", "nn", "ops", "random", "scipy", "test_util"]).install()
_set_immutable(True)
remat, jacobian = checkpoint, jacrev


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Sequence[str] = (),
) -> Any:
    """`jitgrad.jit` with jax's arguments; without a function the decorator with them.

    Raises what `jitgrad.jit` does.
    """
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums or ())
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames or ())
    numbers = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums or ())
    given = (donate_argnames,) if isinstance(donate_argnames, str) else tuple(donate_argnames or ())
    return _jitgrad.jit(fun, static_argnums=static, static_argnames=names, donate=(*numbers, *given))


__all__ = [
    "Array", "ShapeDtypeStruct", "block_until_ready", "checkpoint", "clear_caches", "config", "custom_jvp",
    "custom_vjp", "default_backend", "device_count", "device_get", "device_put", "devices", "disable_jit",
    "eval_shape", "flatten_util", "grad", "hessian", "image", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax",
    "linearize", "local_device_count", "local_devices", "named_call", "named_scope", "nn", "numpy", "ops", "random",
    "remat", "scipy", "tree", "tree_util", "value_and_grad", "vjp", "vmap",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.jax", globals())
