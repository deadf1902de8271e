"""Sums, means and largest of the embeddings of bags of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype, divide, maximum, multiply, subtract
from jitgrad.ops.comparison import equal, not_equal, where
from jitgrad.ops.creation import asarray, full, iota
from jitgrad.ops.indexed_sums import index_add
from jitgrad.ops.movement import broadcast_to, expand_dims
from jitgrad.ops.neural import embedding
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.scattering import scatter_reduce
from jitgrad.ops.sorting import searchsorted


def embedding_bag(
    x: Any,
    weight: Any,
    offsets: Any = None,
    *,
    mode: str = "mean",
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """For each bag of integers the sum, mean or largest of their rows of ``weight`` [count, dim]: [bags, dim].

    The bags are the rows of ``x`` [bags, size], or parts of a vector ``x`` that begin at ``offsets`` [bags]; an empty
    bag gives zeros. With ``include_last_offset`` the last offset is the end of the last bag. ``per_sample_weights``, in
    the shape of ``x``, are factors of a sum. Elements ``padding_idx`` do not count.

    Raises:
        ArgumentError: the mode is not known, or does not go with the other arguments.
    """
    indices = asarray(x)
    _check(indices, offsets, mode, per_sample_weights)
    rows = embedding(indices, weight, padding_idx)
    rows = rows if per_sample_weights is None else multiply(rows, expand_dims(asarray(per_sample_weights), -1))
    counted = full((*indices.shape, 1), True, dtype=np.bool_, device=rows.device)
    if padding_idx is not None:
        padding = normalize_axis("embedding_bag (padding_idx)", padding_idx, asarray(weight).shape[0])
        counted = expand_dims(not_equal(indices, padding), -1)
        rows = where(counted, rows, -np.inf if mode == "max" else 0.0)
    starts = None if offsets is None else asarray(offsets)
    if mode == "max":
        largest = max_(rows, 1) if starts is None else _largest_of_parts(rows, starts)
        total = where(equal(largest, -np.inf), 0.0, largest)
    else:
        parts = rows, astype(counted, rows.dtype)
        total, size = (sum_(v, 1) if starts is None else _sums_of_parts(v, starts) for v in parts)
        total = total if mode == "sum" else divide(total, maximum(size, 1.0))
    return total[:-1] if include_last_offset and starts is not None else total


def _check(indices: Tensor, offsets: Any, mode: str, weights: Any) -> None:
    if mode not in ("sum", "mean", "max") or (weights is not None and mode != "sum"):
        raise ArgumentError(
            f"embedding_bag: mode must be 'sum' (the only one with per_sample_weights), 'mean' or 'max', got {shown(mode)}"
        )
    if (indices.ndim, offsets is None) not in ((2, True), (1, False)):
        raise ArgumentError(f"embedding_bag: expected bags [n, size], or a vector and its offsets, got {indices.aval}")


def _sums_of_parts(values: Tensor, starts: Tensor) -> Tensor:
    """The sums of the rows from each start to the next one."""
    part = _part_of_each(values, starts)
    return index_add(values.new_zeros((starts.shape[0], values.shape[1])), 0, part, values)


def _largest_of_parts(values: Tensor, starts: Tensor) -> Tensor:
    """The largest of the rows from each start to the next one, element by element; -inf for no rows."""
    part = broadcast_to(expand_dims(_part_of_each(values, starts), 1), values.shape)
    least = values.new_full((starts.shape[0], values.shape[1]), -np.inf)
    return scatter_reduce(least, 0, part, values, "amax")


def _part_of_each(values: Tensor, starts: Tensor) -> Tensor:
    with beside(values):
        return subtract(searchsorted(starts, iota(values.shape[:1], 0), "right"), 1)
