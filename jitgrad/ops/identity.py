"""stop_gradient, the identity that stops gradients: traces record detach and no_grad as it."""

from __future__ import annotations

from jitgrad.core.aval import same_dtype
from jitgrad.core.op import define_elementwise

STOP_GRADIENT = define_elementwise(
    "stop_gradient(x)", scalar="x", eager=lambda x: x, dtypes=same_dtype, views=True, domain=("real",)
)
