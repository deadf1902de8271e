"""NumPy's histograms: edges, and how much lies between them."""

from __future__ import annotations

import operator
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
from jitgrad.ops.indexing import index_add
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
    n = edges.shape[0] - 1
    if n < 1:
        raise ShapeError(f"histogram: at least two edges are needed, got {edges.aval}")
    inside = logical_and(greater_equal(values, edges[0]), less_equal(values, edges[-1]))
    number = clip(subtract(searchsorted(edges, astype(values, edges.dtype), "right"), 1), 0, n - 1)
    amount = _amounts(values, weights)
    zeros = creation.full((n,), 0, dtype=amount.dtype, device=values.device)
    counts = index_add(zeros, 0, number, where(inside, amount, np.zeros((), amount.dtype)))
    if not density:
        return counts, edges
    return divide(divide(counts, astype(diff(edges), FLOAT64)), reduce.sum(counts)), edges


def _amounts(values: Tensor, weights: Any) -> Tensor:
    if weights is None:
        return creation.full(values.shape, 1, dtype=INT64, device=values.device)
    given = ravel(weights)
    if given.shape != values.shape:
        raise ShapeError(f"histogram: a weight for each of {values.size} elements is needed, got {given.aval}")
    return multiply(given, 1)
