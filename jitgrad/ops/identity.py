"""Identities: stop_gradient for detach and no_grad, alias for inputs of levels, updated for leaves that were changed."""

from __future__ import annotations

import numpy as np

from jitgrad.core.aval import same_dtype
from jitgrad.core.op import define_elementwise

STOP_GRADIENT = define_elementwise(
    "stop_gradient(x)", scalar="x", eager=lambda x: x, dtypes=same_dtype, views=True, domain=("real",), takes_complex=True
)

# A tensor over the same memory with a history of its own: a fresh input of a level of differentiation.
ALIAS = define_elementwise(
    "alias(x)",
    scalar="x",
    eager=lambda x: x,
    dtypes=same_dtype,
    views=True,
    vjp=(lambda g, _out, _x: g,),
    takes_complex=True,
    register=False,
)

# A leaf after an update without history: the new numbers, with the leaf's gradient.
UPDATED = define_elementwise(
    "updated(leaf, new)",
    scalar="new",
    eager=lambda leaf, new: np.copy(new),
    dtypes=same_dtype,
    vjp=(lambda g, _out, _leaf, _new: g, None),
    takes_complex=True,
)
