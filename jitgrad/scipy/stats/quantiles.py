"""Quantiles of distributions whose distribution functions have no inverse in closed form, by bisection.

The bisection is that of the bit patterns of positive float64 numbers, which are in their order: 63 halvings end at two
neighbouring numbers, whatever the scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import Array
from jitgrad.core.op import OpDef, define_elementwise
from jitgrad.ops.arithmetic import divide
from jitgrad.ops.comparison import isinf, where
from jitgrad.ops.incomplete_beta import no_slope_by_shape

Probability = Callable[..., Array]  # of flat float64 arrays
_HALVINGS = 63


def _between(low: float, high: float, below: Callable[[Array], Array], count: int) -> Array:
    """The largest of the numbers in [low, high], both positive, that are ``below`` what is looked for."""
    first, last = (np.full(count, x).view(np.int64) for x in (low, high))
    for _ in range(_HALVINGS):
        middle = first + (last - first) // 2
        is_below = below(middle.view(np.float64))
        first, last = np.where(is_below, middle, first), np.where(is_below, last, middle)
    return last.view(np.float64)


def _inverted(cdf: Probability, sf: Probability, end: float, symmetric: bool) -> Callable[..., Array]:
    """The quantile of a distribution on [0, end]: by the smaller of both probabilities, which has the digits.

    Of a ``symmetric`` one, on [-end, end], by the part above 0.
    """
    low, high = np.finfo(np.float64).tiny, min(end, float(np.finfo(np.float64).max))

    def quantile(q: Array, *shapes: Array) -> Array:
        operands = np.broadcast_arrays(q, *shapes)
        flat, *parameters = [x.astype(np.float64).reshape(-1) for x in operands]
        lower, tail = flat < 0.5, np.minimum(flat, 1.0 - flat)
        by_cdf = lower & (not symmetric)

        def below(x: Array) -> Array:
            result = np.zeros(x.shape, bool)
            for part, probability, sign in ((by_cdf, cdf, 1.0), (~by_cdf, sf, -1.0)):
                if part.any():
                    result[part] = sign * probability(x[part], *[s[part] for s in parameters]) < sign * tail[part]
            return result

        with np.errstate(all="ignore"):
            found = _between(low, high, below, flat.size)
            found = np.where(tail == 0.0, np.where(by_cdf, 0.0, end), found)
            found = np.where(lower & symmetric, -found, np.where(symmetric & (flat == 0.5), 0.0, found))
            valid = np.logical_and.reduce([flat >= 0.0, flat <= 1.0, *[shape > 0.0 for shape in parameters]])
        return np.where(valid, found, np.nan).reshape(operands[0].shape).astype(q.dtype)

    return quantile


def define_quantile(
    name: str, shapes: str, cdf: Probability, sf: Probability, end: float, density: Any, *, symmetric: bool = False
) -> OpDef:
    """The op ``name(q, shapes)``, where ``cdf(x, *shapes)`` is ``q``, for a distribution on [0, end].

    ``density(x, *shapes)``, in ops, is what its gradient divides by. A ``symmetric`` one is on [-end, end].
    """

    def slope(g: Any, out: Any, _q: Any, *operands: Any) -> Any:
        inside = where(isinf(out), 1.0, out)
        return where(isinf(out), float("nan"), divide(g, density(inside, *operands)))

    count = len(shapes.split(","))
    return define_elementwise(
        f"{name}(q, {shapes})", scalar=None, eager=_inverted(cdf, sf, end, symmetric), vjp=(slope, *[no_slope_by_shape] * count)
    )  # fmt: skip
