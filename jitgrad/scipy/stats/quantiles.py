"""Quantiles of distributions whose distribution functions have no inverse in closed form.

They are found between the bit patterns of positive float64 numbers, which are in their order: by interpolation, with
the step beyond the crossing that lets both ends approach it (I. Oliveira and R. Takahashi, "An Enhancement of the
Bisection Method Average Performance Preserving Minmax Optimality", ACM TOMS 47, 2020), and by halving after a step that
left more than half. So they end at two neighbouring numbers, whatever the scale.
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
_OCTAVE = 2.0**52  # the numbers from one power of 2 to the next: within them a distribution function is smooth


def _between(low: float, high: float, gap: Callable[[Array], Array], count: int) -> Array:
    """The first of the numbers in [low, high], both positive, where ``gap``, which grows, is no longer negative."""
    first, last = (np.full(count, x).view(np.int64) for x in (low, high))
    gap_first, gap_last, halve = gap(first.view(np.float64)), gap(last.view(np.float64)), np.zeros(count, bool)
    while ((width := last - first) > 1).any():
        step = np.where(halve, 0.5, _crossing(gap_first, gap_last, width)) * width
        middle = first + np.clip(step.astype(np.int64), np.minimum(width, 1), np.maximum(width - 1, 0))
        found = gap(middle.view(np.float64))
        below, above = (found <= 0.0) & (width > 1), ~(found < 0.0) & (width > 1)
        first, gap_first = np.where(below, middle, first), np.where(below, found, gap_first)
        last, gap_last = np.where(above, middle, last), np.where(above, found, gap_last)
        halve = last - first > 0.5 * width
    return last.view(np.float64)


def _crossing(gap_first: Array, gap_last: Array, width: Array) -> Any:
    """Where a line between both gaps is 0, as a part of ``width``, and a little nearer to the middle."""
    known = np.isfinite(gap_first) & np.isfinite(gap_last) & (gap_first < gap_last)  # a probability may be 0
    part = np.where(known, gap_first / (gap_first - gap_last), 0.5)
    return part + np.clip(0.5 - part, -width / _OCTAVE, width / _OCTAVE)


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

        def gap(x: Array) -> Array:
            result = np.empty(x.shape)
            for part, probability, sign in ((by_cdf, cdf, 1.0), (~by_cdf, sf, -1.0)):
                if part.any():
                    result[part] = sign * np.log(probability(x[part], *[s[part] for s in parameters]) / tail[part])
            return np.sign(result) * np.log1p(np.abs(result))  # tails are steep

        with np.errstate(all="ignore"):
            found = _between(low, high, gap, flat.size)
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
