"""NumPy's differences, integrals, interpolation and convolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axes, normalize_axis
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.numpy.arguments import floating, tensor_of
from jitgrad.numpy.shapes import ravel
from jitgrad.ops import reduce, sorting
from jitgrad.ops.arithmetic import add, astype, clip, conjugated, divide, multiply, subtract
from jitgrad.ops.comparison import equal, greater, less, logical_and, not_equal, where
from jitgrad.ops.indexing import take
from jitgrad.ops.joining import concat, pad
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import broadcast_to, cut, flip, reshape
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.rounding import remainder, rint


@composed
@beside_operands
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The ``n``-th differences of neighbours along ``axis``."""
    given = tensor_of(a)
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}")
    k = normalize_axis("diff", axis, given.ndim)
    if n == 0:  # NumPy leaves out prepend and append, too
        return given
    parts = [_slice_like(given, x, k) for x in (prepend, given, append) if x is not None]
    out = concat(parts, k) if len(parts) > 1 else given
    for _ in range(n):
        length = out.shape[k]
        later, earlier = cut(out, k, min(1, length), length), cut(out, k, 0, max(length - 1, 0))
        out = not_equal(later, earlier) if out.dtype.kind == "b" else subtract(later, earlier)
    return out


def _slice_like(a: Tensor, x: Any, axis: int) -> Tensor:
    edge = tensor_of(x)
    return edge if edge.ndim else broadcast_to(edge, tuple(1 if k == axis else m for k, m in enumerate(a.shape)))


@beside_operands
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours of the flattened array, between ``to_begin`` and ``to_end``."""
    inner = diff(ravel(ary))
    parts = [None if x is None else astype(ravel(x), inner.dtype) for x in (to_begin, to_end)]
    return concat([x for x in (parts[0], inner, parts[1]) if x is not None], 0)


@beside_operands
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives by central differences along each axis: a tensor for one axis, else a tuple.

    ``varargs`` are distances, or coordinates, for all axes or for each.
    """
    given = floating(f)
    axes = normalize_axes("gradient", axis, given.ndim)
    spacing: list[Any] = list(varargs) or [1.0]
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing
    if len(spacing) != len(axes) or edge_order not in (1, 2):
        raise ArgumentError(f"gradient: {len(varargs)} distances for {len(axes)} axes, edge_order={edge_order} (1 or 2)")
    out = tuple(_derivative(given, k, floating(h), edge_order) for k, h in zip(axes, spacing, strict=True))
    return out[0] if len(out) == 1 else out


def _derivative(f: Tensor, axis: int, spacing: Tensor, edge_order: int) -> Tensor:
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(f"gradient: axis {axis} of {f.aval} needs at least {edge_order + 1} elements")
    lengths = tuple(-1 if k == axis else 1 for k in range(f.ndim))
    steps = diff(spacing) if spacing.ndim else broadcast_to(spacing, (n - 1,))
    if steps.shape != (n - 1,):
        raise ShapeError(f"gradient: coordinates {spacing.aval} for axis {axis} of {f.aval}")
    h = reshape(astype(steps, f.dtype), lengths)
    slopes = divide(diff(f, axis=axis), h)
    before, after = cut(h, axis, 0, n - 2), cut(h, axis, 1, n - 1)
    inside = divide(
        add(multiply(cut(slopes, axis, 0, n - 2), after), multiply(cut(slopes, axis, 1, n - 1), before)), add(before, after)
    )
    first, last = cut(slopes, axis, 0, 1), cut(slopes, axis, n - 2, n - 1)
    if edge_order == 2:  # the slope of the parabola through three points, at its end
        first = _end_slope(first, cut(slopes, axis, 1, 2), cut(h, axis, 0, 1), cut(h, axis, 1, 2))
        last = _end_slope(last, cut(slopes, axis, n - 3, n - 2), cut(h, axis, n - 2, n - 1), cut(h, axis, n - 3, n - 2))
    return concat([first, inside, last], axis)


def _end_slope(near: Tensor, far: Tensor, h_near: Tensor, h_far: Tensor) -> Tensor:
    bend = divide(subtract(near, far), add(h_near, h_far))
    return add(near, multiply(bend, h_near))


@beside_operands
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The integral along ``axis`` by the trapezoidal rule, over coordinates ``x`` or with distance ``dx``."""
    values = tensor_of(y)
    k = normalize_axis("trapezoid", axis, values.ndim)
    n = values.shape[k]
    width = dx if x is None else widths(x, values, k)
    total = add(cut(values, k, 1, n), cut(values, k, 0, n - 1)) if n else values
    return reduce.sum(divide(multiply(width, total), 2.0), k)


def widths(x: Any, values: Tensor, axis: int) -> Tensor:
    """The distances along ``axis`` of coordinates ``x``, a vector or one for each of ``values``, to broadcast with these."""
    coordinates = tensor_of(x)
    vector = coordinates.ndim == 1
    width = diff(coordinates, axis=-1 if vector else axis)
    return reshape(width, tuple(-1 if j == axis else 1 for j in range(values.ndim))) if vector else width


@beside_operands
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Tensor:
    """Linear interpolation between the points ``(xp, fp)``, with gradients to all three; ``xp`` must grow.

    Beyond the ends ``left`` and ``right``, by default the values there; with ``period`` the points repeat.
    """
    at, places, values = floating(x), floating(xp), floating(fp)
    if places.ndim != 1 or values.shape != places.shape or not places.size:
        raise ShapeError(f"interp: points {places.aval} and values {values.aval} must be vectors of one length")
    if period is not None:
        at, places = remainder(at, abs(period)), remainder(places, abs(period))
        order = sorting.argsort(places)
        places, values = take(places, order, 0), take(values, order, 0)
        places = concat([places[-1:] - abs(period), places, places[:1] + abs(period)], 0)
        values, left, right = concat([values[-1:], values, values[:1]], 0), None, None
    n = places.shape[0]
    if n == 1:
        inside = broadcast_to(values[0], at.shape)
    else:
        k = clip(subtract(sorting.searchsorted(places, at, "right"), 1), 0, n - 2)
        x0, y0 = take(places, k, 0), take(values, k, 0)
        slope = divide(subtract(take(values, add(k, 1), 0), y0), subtract(take(places, add(k, 1), 0), x0))
        inside = add(multiply(slope, subtract(at, x0)), y0)
    out = where(less(at, places[0]), values[0] if left is None else left, inside)
    last = values[-1]
    out = where(greater(at, places[-1]), last if right is None else right, out)
    return where(equal(at, places[-1]), last, out)


@beside_operands
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The discrete convolution of two vectors; ``mode`` is "full", "same" or "valid"."""
    x, y = tensor_of(a), tensor_of(v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ShapeError(f"convolve takes two vectors that are not empty, got {x.aval} and {y.aval}")
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"convolve: mode must be full, same or valid, got {shown(mode)}")
    x, y = (x, y) if x.size >= y.size else (y, x)
    n, m = x.size, y.size
    windows = take(pad(x, (m - 1, m - 1)), np.arange(n + m - 1)[:, None] + np.arange(m), 0)
    full = matmul(windows, flip(y))
    start, length = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    return cut(full, 0, start, start + length)


@beside_operands
def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The cross-correlation of two vectors: :func:`convolve` with the conjugate of ``v`` backwards."""
    x, y = tensor_of(a), conjugated(tensor_of(v))
    if x.size < y.size:  # NumPy exchanges them, and turns the result round
        return flip(convolve(y, flip(x), mode))
    return convolve(x, flip(y), mode)


def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """``p`` with multiples of ``period`` added, so that neighbours along ``axis`` differ by at most half of it."""
    angles = floating(p)
    k = normalize_axis("unwrap", axis, angles.ndim)
    step = diff(angles, axis=k)
    half = period / 2
    wrapped = subtract(remainder(add(step, half), period), half)
    wrapped = where(logical_and(equal(wrapped, -half), greater(step, 0)), half, wrapped)
    correction = where(less(abs(step), half if discont is None else max(discont, half)), 0.0, subtract(wrapped, step))
    turns = rint(divide(reduce.cumulative_sum(correction, k), period))
    later = add(cut(angles, k, 1, angles.shape[k]), multiply(turns, period))
    return concat([cut(angles, k, 0, 1), later], k)
