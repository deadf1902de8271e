"""Derivatives and integrals of samples where torch's arguments are not NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy import calculus
from jitgrad.numpy.arguments import tensor_of
from jitgrad.ops.arithmetic import add, divide, multiply
from jitgrad.ops.creation import asarray
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import cut
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.reduce import cumulative_sum


@takes_dim(input="f")
@beside_operands
def gradient(f: Any, *, spacing: Any = None, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Derivatives by central differences along each axis, as a tuple.

    ``spacing`` is a distance for all axes, or a list of a distance, or of coordinates, for each.
    """
    given = asarray(f)
    axes = tuple(range(given.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    many = isinstance(spacing, (list, tuple))
    steps = list(spacing) if many else [1.0 if spacing is None else spacing] * len(axes)
    if len(steps) != len(axes):
        raise ArgumentError(f"gradient: {len(steps)} spacings for {len(axes)} axes")
    out = calculus.gradient(given, *steps, axis=axes, edge_order=edge_order) if axes else ()
    return out if isinstance(out, tuple) else (out,)


@takes_dim()
@beside_operands
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The integrals along ``axis`` up to each point but the first, by the trapezoidal rule, over coordinates ``x`` or with
    distance ``dx``."""
    values = tensor_of(y)
    k = normalize_axis("cumulative_trapezoid", axis, values.ndim)
    n = values.shape[k]
    total = add(cut(values, k, min(1, n), n), cut(values, k, 0, max(n - 1, 0)))
    width = dx if x is None else calculus.widths(x, values, k)
    return cumulative_sum(divide(multiply(width, total), 2.0), k)
