"""torch's histograms: like NumPy's, but counts have the dtype of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.numpy.histograms import counts_in_cells, density_of, histogram_bin_edges
from jitgrad.ops.arithmetic import add, astype, clip, divide, multiply, subtract
from jitgrad.ops.comparison import equal, greater_equal, less_equal, logical_and, where
from jitgrad.ops.creation import asarray, detached, full
from jitgrad.ops.indexed_sums import index_add
from jitgrad.ops.joining import unstack
from jitgrad.ops.movement import flatten
from jitgrad.ops.placement import beside, beside_operands
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import min as min_
from jitgrad.ops.rounding import floor


class Histogram(NamedTuple):
    """Counts, and the edges of their bins."""

    hist: Tensor
    bin_edges: Tensor


class HistogramOfPoints(NamedTuple):
    """Counts in cells, and the edges along each axis."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _floats(what: str, x: Any) -> Tensor:
    values = detached(asarray(x))
    if values.dtype.kind != "f":
        raise DtypeError(f"{what}: expected floats, got {values.aval}; numpy.histogram and bincount take integers")
    return values


@composed
@beside_operands
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of ``bins`` intervals of one length between ``min`` and ``max``.

    If both are equal, between the least and the largest element. Elements outside, and NaN, do not count.
    """
    values = flatten(_floats("histc", input))
    if bins < 1 or not min <= max:
        raise ArgumentError(f"histc: bins={bins}, min={min}, max={max}: at least one bin is needed, and min <= max")
    low, high = (min_(values), max_(values)) if min == max and values.size else (min, max)
    half = where(equal(low, high), 1.0, 0.0)
    low, high = subtract(low, half), add(high, half)
    inside = logical_and(greater_equal(values, low), less_equal(values, high))
    place = floor(multiply(divide(subtract(values, low), subtract(high, low)), float(bins)))
    number = astype(where(inside, clip(place, 0, bins - 1), 0.0), np.int64)
    with beside(values):
        zeros = full((bins,), 0, dtype=values.dtype)
    return index_add(zeros, 0, number, astype(inside, values.dtype))


@beside_operands
def histogram(
    input: Any, bins: Any, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> Histogram:
    """The number of elements in each bin, or the sum of their ``weight``, and the edges, in the dtype of ``input``.

    ``bins`` is a number of bins between the ends of ``range`` (the extremes), or a vector of edges. A bin has its left edge,
    the last one both. With ``density`` the integral is 1.
    """
    given = _floats("histogram", input)
    values = flatten(given)
    edges = _edges("histogram", values, bins, range)
    counts = counts_in_cells([values], [edges], _amount("histogram", values, given.shape, weight))
    return Histogram(density_of(counts, [edges]) if density else counts, edges)


@beside_operands
def histogramdd(
    input: Any, bins: Any, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> HistogramOfPoints:
    """The number of points in each cell, or the sum of their ``weight``; ``input`` is [..., axes].

    ``bins`` is a number for all axes, or a list of a number or a vector of edges for each; ``range`` lists the low and the
    high end of each axis.
    """
    points = _floats("histogramdd", input)
    if points.ndim < 2:
        raise ShapeError(f"histogramdd: expected points [..., axes], got {points.aval}")
    columns = [flatten(x) for x in unstack(points, -1)]
    per_axis = list(bins) if isinstance(bins, (list, tuple)) else [bins] * len(columns)
    ends = [None] * len(columns) if range is None else list(zip(range[::2], range[1::2], strict=True))
    if not len(per_axis) == len(ends) == len(columns):
        raise ArgumentError(f"histogramdd: {len(per_axis)} bins and {len(ends)} ranges for points of {len(columns)} axes")
    edges = tuple(_edges("histogramdd", *each) for each in zip(columns, per_axis, ends, strict=True))
    counts = counts_in_cells(columns, edges, _amount("histogramdd", columns[0], points.shape[:-1], weight))
    return HistogramOfPoints(density_of(counts, edges) if density else counts, edges)


def _edges(what: str, values: Tensor, bins: Any, span: Any) -> Tensor:
    edges = astype(histogram_bin_edges(values, bins, span), values.dtype)
    if edges.shape[0] < 2:
        raise ShapeError(f"{what}: at least two edges are needed, got {edges.aval}")
    return edges


def _amount(what: str, values: Tensor, shape: tuple[int, ...], weight: Any) -> Tensor:
    if weight is None:
        with beside(values):
            return full(values.shape, 1, dtype=values.dtype)
    given = asarray(weight)
    if given.shape != shape:
        raise ShapeError(f"{what}: a weight for each element or point is needed, shape {shape}, got {given.aval}")
    return astype(flatten(given), values.dtype)
