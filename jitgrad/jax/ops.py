"""jax.ops: reductions of the elements that belong to one segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.comparison import logical_and, where
from jitgrad.ops.creation import asarray, full

Update = Callable[[Any], Callable[[Any], Tensor]]
Start = Callable[[np.dtype[Any]], Any]


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None, **hints: Any) -> Tensor:
    """The sum of the rows of ``data`` [n, ...] in each segment: [num_segments, ...].

    Args:
        data: the rows.
        segment_ids: integers [n], the segment of each row; what is no segment is left out.
        num_segments: how many segments there are. Without it their largest number decides, which must have a value.
        hints: ``indices_are_sorted``, ``unique_indices``, ``bucket_size`` and ``mode`` of jax, which change nothing here.

    Raises:
        ShapeError: ``segment_ids`` is not of one axis, or of another length than ``data``.
    """
    return _reduced(data, segment_ids, num_segments, lambda place: place.add, lambda dtype: 0)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None, **hints: Any) -> Tensor:
    """The product of each segment's rows, 1 where there are none; as `segment_sum`."""
    return _reduced(data, segment_ids, num_segments, lambda place: place.multiply, lambda dtype: 1)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None, **hints: Any) -> Tensor:
    """The largest elements of each segment's rows, -inf or the smallest integer where there are none; as `segment_sum`."""
    return _reduced(data, segment_ids, num_segments, lambda place: place.max, lambda dtype: _least(dtype, 1))


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None, **hints: Any) -> Tensor:
    """The smallest elements of each segment's rows, inf or the largest integer where there are none; as `segment_sum`."""
    return _reduced(data, segment_ids, num_segments, lambda place: place.min, lambda dtype: _least(dtype, -1))


def _least(dtype: np.dtype[Any], sign: int) -> Any:
    """What every number is at least, or at most, as ``sign`` says."""
    if dtype.kind == "f":
        return -sign * np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if sign > 0 else limits.max)


def _reduced(data: Any, segment_ids: Any, num_segments: Any, update: Update, start: Start) -> Tensor:
    rows, ids = asarray(data), asarray(segment_ids)
    if ids.ndim != 1 or rows.shape[:1] != ids.shape:
        raise ShapeError(f"jax.ops: one segment for each row is needed, got data {rows.aval} and segment_ids {ids.aval}")
    n = (int(ids.max()) + 1 if ids.size else 0) if num_segments is None else int(num_segments)
    beyond = where(logical_and(ids >= 0, ids < n), ids, n)  # a segment more, for rows of none
    out = full((n + 1, *rows.shape[1:]), start(rows.dtype), dtype=rows.dtype)
    return update(out.at[beyond])(rows)[:n]
