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
_LOOK, _LONGEST_LOOK = 1 << 12, 1 << 16  # elements that are compared at once: first, and at most
_NAN_KEY = np.int64(0x7FFFFFFF)  # above that of infinity


def stable_argsort(x: Array, axis: int) -> Array:
    """The int64 positions that sort ``x`` along ``axis``, those of equals in order; NaN counts as largest."""
    length = x.shape[axis]
    if x.size < _LEAST or length < _SHORT or x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        return x.argsort(axis, "stable")
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


def equal_arrays(x: Array, y: Array) -> bool:
    """Whether arrays of one shape have the same elements; it looks at more and more of them, and stops at a difference."""
    if x.size <= _LOOK or not (x.flags.c_contiguous and y.flags.c_contiguous):
        return bool(np.count_nonzero(x == y) == x.size)
    x, y, start, count = x.reshape(-1), y.reshape(-1), 0, _LOOK
    while start < x.size:
        part = x[start : start + count] == y[start : start + count]
        if np.count_nonzero(part) != part.size:
            return False
        start, count = start + count, min(4 * count, _LONGEST_LOOK)
    return True


class Distinct(NamedTuple):
    """Of distinct elements in order: the first positions, the number of each element among them, and their counts."""

    first: Array
    inverse: Array
    counts: Array


class OrderOfDistinct:
    """What ``np.unique`` finds out about the elements of ``x``, real or bools, as far as it is asked for."""

    def __init__(self, x: Array, equal_nan: bool = True) -> None:
        self.shape: tuple[int, ...] = x.shape
        flat = x.reshape(-1)
        self.order: Array = stable_argsort(flat, 0)
        self.begins: Array = begins_of_equals(flat[self.order], equal_nan)
        self.starts: Array = self.begins.nonzero()[0]

    def first(self) -> Array:
        """The first positions of the distinct elements, in order of these."""
        return self.order[self.starts]

    def inverse(self) -> Array:
        """The number of each element among the distinct ones, in the shape of ``x``."""
        inverse = np.empty(self.order.size, np.int64)
        inverse[self.order] = np.cumsum(self.begins) - 1
        return inverse.reshape(self.shape)

    def counts(self) -> Array:
        """How many elements equal each of the distinct ones."""
        starts = self.starts
        counts = np.empty(starts.size, np.int64)
        if starts.size:
            np.subtract(starts[1:], starts[:-1], out=counts[:-1])
            counts[-1] = self.order.size - starts[-1]
        return counts


def distinct_elements(x: Array, equal_nan: bool = True) -> Distinct:
    """All of `OrderOfDistinct`."""
    found = OrderOfDistinct(x, equal_nan)
    return Distinct(found.first(), found.inverse(), found.counts())


def distinct_values(x: Array) -> Array:
    """The distinct elements of ``x``, real or bools, in order: of equal ones the first, of zeros of either sign as well."""
    flat = x.reshape(-1)
    ordered = np.sort(flat)
    values: Array = ordered[begins_of_equals(ordered)]
    if values.dtype.kind == "f" and values.size:
        zero = values.searchsorted(0.0)
        if zero < values.size and values[zero] == 0:
            values[zero] = flat[(flat == 0).argmax()]
        if values[-1] != values[-1]:
            values[-1] = flat[np.isnan(flat).argmax()]
    return values
