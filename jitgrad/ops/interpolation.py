"""Linear interpolation between two numbers."""

from __future__ import annotations

import numpy as np

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.where import select_by_mask
from jitgrad.ops.arithmetic import multiply, subtract
from jitgrad.ops.operand import Operand, apply

LERP = define_elementwise(
    "lerp(x, y, weight)",
    # from the nearer end, so that weight 1 gives y exactly
    scalar="x + weight * (y - x) if abs(weight) < 0.5 else y - (y - x) * (1 - weight)",
    eager=lambda x, y, weight: select_by_mask(np.abs(weight) < 0.5, x + weight * (y - x), y - (y - x) * (1 - weight)),
    vjp=(
        lambda g, _out, _x, _y, weight: multiply(g, subtract(1.0, weight)),
        lambda g, _out, _x, _y, weight: multiply(g, weight),
        lambda g, _out, x, y, _weight: multiply(g, subtract(y, x)),
    ),
    domain=("real", "real", "real"),
    one_loop=True,
)


def lerp(x: Operand, y: Operand, weight: Operand) -> Tensor:
    """``x + weight * (y - x)``, floating, exact at both ends."""
    return apply(LERP, x, y, weight)
