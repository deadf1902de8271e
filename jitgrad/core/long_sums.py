"""Sums along leading axes, as exact as those along the last one.

NumPy adds in pairs along the last axes of an array only. Along others it adds one row after the other: the mean of 262,144
rows of float32 had four digits. Here rows are added 128 at a time, and then the sums of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Dtype, Shape

PAIRED_TERMS = 128  # terms that are added one after the other, as in NumPy's pairs
_LONG = 8 * PAIRED_TERMS  # with fewer terms one call is quicker, and exact enough


def is_long(shape: Shape, axes: Sequence[int], dtype: Dtype) -> bool:
    """Whether `long_sum` is more exact than NumPy's sum over ``axes``."""
    return dtype.kind in "fc" and sequential_terms(shape, axes) > _LONG


def sequential_terms(shape: Shape, axes: Sequence[int]) -> int:
    """How many terms, or sums of terms, NumPy adds one after the other."""
    count, pairwise = 1, True
    for k in reversed(range(len(shape))):
        pairwise = pairwise and k in axes
        count *= shape[k] if k in axes and not pairwise else 1
    return count


def long_sum(x: Array, axes: Sequence[int], dtype: Dtype | None = None) -> Any:
    """The sum over ``axes`` in ``dtype``, by default that of ``x``; they are not all of the last axes."""
    kept = max(k for k in range(x.ndim) if k not in axes)
    last = tuple(range(kept + 1, x.ndim))
    total = np.add.reduce(x, axis=last, dtype=dtype) if last else x
    for axis in sorted(set(axes) - set(last), reverse=True):
        total = _along(total, axis, dtype)
    return total


def _along(x: Array, axis: int, dtype: Dtype | None) -> Array:
    n, shape = x.shape[axis], x.shape
    if n <= PAIRED_TERMS:
        return np.asarray(np.add.reduce(x, axis=axis, dtype=dtype))
    whole = n // PAIRED_TERMS
    before = (slice(None),) * axis
    pieces = x[(*before, slice(whole * PAIRED_TERMS))].reshape(*shape[:axis], whole, PAIRED_TERMS, *shape[axis + 1 :])
    total = _along(np.add.reduce(pieces, axis=axis + 1, dtype=dtype), axis, dtype)
    if n > whole * PAIRED_TERMS:
        rest = np.add.reduce(x[(*before, slice(whole * PAIRED_TERMS, None))], axis=axis, dtype=dtype)
        total = np.asarray(np.add(total, rest))
    return total
