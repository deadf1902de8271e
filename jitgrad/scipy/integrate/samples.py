"""Integrals of samples: Simpson's rule, and running sums by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.numpy.calculus import widths
from jitgrad.ops import reduce
from jitgrad.ops.arithmetic import add, divide, multiply, subtract
from jitgrad.ops.creation import asarray
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import cut, moveaxis


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Tensor:
    """The integral up to each sample along ``axis`` but the first, by the trapezoidal rule; with ``initial`` of the first too."""
    values = tensor_of(y)
    k = normalize_axis("cumulative_trapezoid", axis, values.ndim)
    n = values.shape[k]
    if not n:
        raise ShapeError(f"cumulative_trapezoid: at least one sample is needed along axis {axis}, got {values.aval}")
    width = dx if x is None else widths(x, values, k)
    sums = reduce.cumulative_sum(divide(multiply(width, add(cut(values, k, 1, n), cut(values, k, 0, n - 1))), 2.0), k)
    if initial is None:
        return sums
    first = add(multiply(cut(sums if n > 1 else values, k, 0, 1), 0.0), initial)
    return concat([first, sums], k)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The integral of samples along ``axis`` by Simpson's rule, over coordinates ``x`` or with distance ``dx``.

    Of an even number of samples the last interval is that of the parabola through the last three (L. V. Cartwright,
    "Simpson's rule cumulative integration with MS Excel and irregularly-spaced data", 2017).
    """
    given = tensor_of(y)
    k = normalize_axis("simpson", axis, given.ndim)
    values = moveaxis(given, k, -1)
    n = values.shape[-1]
    if not n:
        raise ShapeError(f"simpson: at least one sample is needed along axis {axis}, got {given.aval}")
    if x is None:
        steps = multiply(np.ones(n - 1), dx)
    else:
        coordinates = tensor_of(x)
        coordinates = coordinates if coordinates.ndim == 1 else moveaxis(coordinates, k, -1)
        steps = subtract(coordinates[..., 1:], coordinates[..., :-1])
    if n < 3:
        return reduce.sum(divide(multiply(steps, add(values[..., 1:], values[..., :-1])), 2.0), -1)
    even = n - 1 - (n - 1) % 2
    total = reduce.sum(_pairs(values, asarray(steps), even), -1)
    return add(total, _last(values, asarray(steps))) if even < n - 1 else total


def _pairs(f: Tensor, h: Tensor, count: int) -> Tensor:
    """The integrals of the parabolas over two intervals each, of the first ``count`` intervals."""
    one, two = h[..., 0:count:2], h[..., 1:count:2]
    left, middle, right = f[..., 0:count:2], f[..., 1 : count + 1 : 2], f[..., 2 : count + 1 : 2]
    both = add(one, two)
    first = multiply(subtract(2.0, divide(two, one)), left)
    second = multiply(divide(multiply(both, both), multiply(one, two)), middle)
    third = multiply(subtract(2.0, divide(one, two)), right)
    return multiply(divide(both, 6.0), add(add(first, second), third))


def _last(f: Tensor, h: Tensor) -> Tensor:
    """The integral over the last interval of the parabola through the last three samples."""
    one, two = h[..., -2], h[..., -1]
    both = add(one, two)
    last = divide(multiply(two, add(multiply(2.0, two), multiply(3.0, one))), multiply(6.0, both))
    middle = divide(multiply(two, add(two, multiply(3.0, one))), multiply(6.0, one))
    first = divide(multiply(two, multiply(two, two)), multiply(multiply(6.0, one), both))
    return subtract(add(multiply(last, f[..., -1]), multiply(middle, f[..., -2])), multiply(first, f[..., -3]))
