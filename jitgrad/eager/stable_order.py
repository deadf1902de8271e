"""The order of elements, those of equals in theirs, by NumPy's vectorized sort: its stable one takes ten times as long.

Where a key and a position fit in one integer, the sort is of such integers. Else the quick order is corrected: the positions
of equal elements are sorted among themselves. Both have the one result that a stable sort has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jitgrad.core.aval import Array

_LEAST = 1 << 10  # elements; fewer are sorted as fast by NumPy's stable sort
_SHORT = 16  # elements of a line, likewise
_BITS = 63  # of a key and a position
_NAN_KEY = np.int64(0x7FFFFFFF)  # above that of infinity


def stable_argsort(x: Array, axis: int) -> Array:
    """The int64 positions that sort ``x`` along ``axis``, those of equals in order; NaN counts as largest."""
    length = x.shape[axis]
    if x.size < _LEAST or length < _SHORT or x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        return np.argsort(x, axis=axis, kind="stable")
    lines = np.moveaxis(x, axis, -1)
    bits = (length - 1).bit_length()
    keys = _keys(lines, _BITS - bits)
    positions = _corrected(lines, bits) if keys is None else _packed(keys, np.arange(length), bits)
    return np.moveaxis(positions, -1, axis)


def _packed(keys: Array, positions: Array, bits: int) -> Array:
    """``positions``, of ``bits`` each, in the order of ``keys``, then in their own; changes ``keys``."""
    keys <<= bits
    keys |= positions
    keys.sort(axis=-1)
    keys &= (1 << bits) - 1
    return keys


def _keys(lines: Array, bits: int) -> Array | None:
    """New int64s of at most ``bits`` and a sign in the order of ``lines``, equal where they are; None if there are none."""
    if lines.dtype.kind == "f":
        return _keys_of_floats(lines) if lines.dtype.itemsize <= 4 else None
    if lines.dtype.itemsize < 8:
        return lines.astype(np.int64)
    least = lines.min()
    if (int(lines.max()) - int(least)).bit_length() > bits:
        return None
    keys: Array = np.subtract(lines, least).view(np.int64)
    return keys


def _keys_of_floats(lines: Array) -> Array:
    """The bits of float32, those of negative numbers turned round; -0.0 is 0.0."""
    whole = np.ascontiguousarray(np.add(lines, np.float32(0.0), dtype=np.float32)).view(np.int32)
    whole ^= (whole >> 31) & np.int32(0x7FFFFFFF)
    keys = whole.astype(np.int64)
    missing = np.isnan(lines)
    if missing.any():
        keys[missing] = _NAN_KEY
    return keys


def _corrected(lines: Array, bits: int) -> Array:
    """The quick order, with the positions of equal elements in order."""
    order = np.argsort(lines, axis=-1)
    begins = begins_of_equals(np.take_along_axis(lines, order, -1))
    if begins.all():
        return order
    return _packed(np.cumsum(begins, -1, dtype=np.int64), order, bits)


def begins_of_equals(ordered: Array, equal_nan: bool = True) -> Array:
    """Whether an element of sorted lines is unlike the one before; all NaN are equal, unless ``equal_nan`` is false."""
    begins = np.empty(ordered.shape, np.bool_)
    begins[..., :1] = True
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=begins[..., 1:])
    if equal_nan and ordered.dtype.kind == "f" and ordered.size:
        missing = np.isnan(ordered[..., :-1])  # what follows is NaN, too
        if missing.any():
            begins[..., 1:] &= ~missing
    return begins


class Distinct(NamedTuple):
    """Of distinct elements in order: the first positions, the number of each element among them, and their counts."""

    first: Array
    inverse: Array
    counts: Array


def distinct_elements(x: Array, equal_nan: bool = True) -> Distinct:
    """What ``np.unique`` finds out about the elements of ``x``, real or bools; the inverse has the shape of ``x``."""
    flat = x.reshape(-1)
    order = stable_argsort(flat, 0)
    begins = begins_of_equals(flat[order], equal_nan)
    starts = np.flatnonzero(begins)
    inverse = np.empty(flat.size, np.int64)
    inverse[order] = np.cumsum(begins) - 1
    counts = np.empty(starts.size, np.int64)
    if starts.size:
        np.subtract(starts[1:], starts[:-1], out=counts[:-1])
        counts[-1] = flat.size - starts[-1]
    return Distinct(order[starts], inverse.reshape(x.shape), counts)
