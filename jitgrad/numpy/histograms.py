"""NumPy's histograms: edges, and how much lies between them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import FLOAT64, INT64, floating, tensor_of
from jitgrad.numpy.calculus import diff
from jitgrad.numpy.creation import linspace
from jitgrad.numpy.shapes import ravel
from jitgrad.ops import creation, reduce
from jitgrad.ops.arithmetic import add, astype, clip, divide, multiply, subtract
from jitgrad.ops.comparison import equal, greater_equal, less_equal, logical_and, where
from jitgrad.ops.indexed_sums import index_add
from jitgrad.ops.joining import unstack
from jitgrad.ops.movement import reshape
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.sorting import searchsorted


@beside_operands
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """The edges of ``bins`` intervals of one length between the ends of ``range``, by default the extremes of ``a``.

    A vector ``bins`` has the edges themselves. Rules that choose a number, such as "auto", are refused.
    """
    if isinstance(bins, str):
        raise ArgumentError(f"histogram: bins={bins!r} would depend on the values: pass a number, or the edges")
    given = tensor_of(bins)
    if given.ndim == 1:
        return given
    if given.ndim or given.dtype.kind not in "iu":
        raise ArgumentError(f"histogram: bins must be a number or a vector of edges, got {given.aval}")
    count = operator.index(bins)
    if count < 1:
        raise ArgumentError(f"histogram: at least one bin is needed, got {count}")
    values = ravel(a)
    low, high = _ends(values, range)
    half = where(equal(low, high), 0.5, 0.0)
    dtype = np.result_type(low.dtype, high.dtype, values.dtype)
    edges: Tensor = linspace(subtract(low, half), add(high, half), count + 1, dtype=dtype)
    return edges


def _ends(values: Tensor, span: Any) -> tuple[Tensor, Tensor]:
    if span is not None:
        low, high = span
        return floating(low), floating(high)
    if not values.size:
        return floating(0.0), floating(1.0)
    wide = astype(values, FLOAT64) if values.dtype.kind != "f" else values
    return reduce.min(wide), reduce.max(wide)


@beside_operands
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """How many elements lie in each bin, or the sum of their ``weights``, and the edges.

    A bin has its left edge, the last one both. ``density`` makes the integral 1. The gradient reaches
    ``weights``; counts have none.
    """
    values, edges = ravel(a), histogram_bin_edges(a, bins, range)
    if edges.shape[0] < 2:
        raise ShapeError(f"histogram: at least two edges are needed, got {edges.aval}")
    counts = counts_in_cells([values], [edges], _amounts(values, weights))
    if not density:
        return counts, edges
    return divide(divide(counts, astype(diff(edges), FLOAT64)), reduce.sum(counts)), edges


def _cell(values: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each of ``values``, the first or the last one for those outside, and which are inside."""
    inside = logical_and(greater_equal(values, edges[0]), less_equal(values, edges[-1]))
    number = subtract(searchsorted(edges, astype(values, edges.dtype), "right"), 1)
    return clip(number, 0, edges.shape[0] - 2), inside


def _amounts(values: Tensor, weights: Any) -> Tensor:
    if weights is None:
        return creation.full(values.shape, 1, dtype=INT64, device=values.device)
    given = ravel(weights)
    if given.shape != values.shape:
        raise ShapeError(f"histogram: a weight for each of {values.size} elements is needed, got {given.aval}")
    return multiply(given, 1)


@beside_operands
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """How many points (x, y) lie in each cell, as float64, or the sum of their ``weights``, and the edges of both axes.

    ``bins`` is a number or edges for both axes, or a list of one for each; ``range`` holds (low, high) of each axis.
    """
    first, second = ravel(x), ravel(y)
    if first.shape != second.shape:
        raise ShapeError(f"histogram2d: x and y must have the same number of elements, got {first.aval} and {second.aval}")
    per_axis = list(bins) if isinstance(bins, (list, tuple)) and len(bins) == 2 else [bins, bins]
    counts, edges = histogramdd([first, second], per_axis, range, density, weights)
    return counts, edges[0], edges[1]


@beside_operands
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """How many points lie in each cell, as float64, or the sum of their ``weights``, and the edges of each axis.

    ``sample`` is [points, axes], or a list of the coordinates along each axis. ``bins`` is a number for all axes, or a list
    of a number or edges for each; ``range`` holds None or (low, high) for each.
    """
    columns = _columns(sample)
    per_axis = list(bins) if isinstance(bins, (list, tuple)) else [bins] * len(columns)
    spans = [None] * len(columns) if range is None else list(range)
    if not len(per_axis) == len(spans) == len(columns):
        raise ArgumentError(f"histogramdd: {len(per_axis)} bins and {len(spans)} ranges for points of {len(columns)} axes")
    edges = tuple(histogram_bin_edges(v, b, r) for v, b, r in zip(columns, per_axis, spans, strict=True))
    counts = counts_in_cells(columns, edges, astype(_amounts(columns[0], weights), FLOAT64))
    return (density_of(counts, edges) if density else counts), edges


def _columns(sample: Any) -> list[Tensor]:
    if isinstance(sample, (list, tuple)):
        return [ravel(x) for x in sample]
    points = tensor_of(sample)
    if points.ndim == 1:
        return [points]
    if points.ndim != 2 or not points.shape[1]:
        raise ShapeError(f"histogramdd: expected points [n, axes], got {points.aval}")
    return list(unstack(points, 1))


def counts_in_cells(columns: Sequence[Tensor], edges: Sequence[Tensor], amount: Tensor) -> Tensor:
    """The sum of ``amount``, one for each point, in each cell between ``edges``; ``columns`` are the coordinates."""
    sizes = [e.shape[0] - 1 for e in edges]
    number, inside = _cell(columns[0], edges[0])
    for values, e, size in zip(columns[1:], edges[1:], sizes[1:], strict=True):
        along, within = _cell(values, e)
        number, inside = add(multiply(number, size), along), logical_and(inside, within)
    zeros = creation.full((math.prod(sizes),), 0, dtype=amount.dtype, device=amount.device)
    none = np.zeros((), amount.dtype)
    return reshape(index_add(zeros, 0, number, where(inside, amount, none)), tuple(sizes))


def density_of(counts: Tensor, edges: Sequence[Tensor]) -> Tensor:
    """``counts`` over their sum and the size of each cell."""
    out = divide(counts, reduce.sum(counts))
    for k, e in enumerate(edges):
        out = divide(out, reshape(astype(diff(e), out.dtype), (-1, *[1] * (len(edges) - k - 1))))
    return out
