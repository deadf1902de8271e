"""stop_gradient: the identity for values, a wall for gradients; how a trace records detach and no_grad."""

from __future__ import annotations

from jitgrad.core.aval import same_dtype
from jitgrad.core.op import define_elementwise

STOP_GRADIENT = define_elementwise(
    "stop_gradient(x)", scalar="x", eager=lambda x: x, dtypes=same_dtype, views=True, domain=("real",)
)
