"""Positions of largest and smallest elements as machine code: NumPy moves an axis to the end, and goes row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.eager.buffer_pool import address_of, empty
from jitgrad.runtime.executor.parallel_loop import run_shared, side_by_side

Array = np.ndarray[Any, Any]

_PLACES = {"f32": "i32", "i32": "i32", "f64": "i64", "i64": "i64"}  # as wide as the values: lanes then fit together
_SMALL = 1 << 14  # elements: with fewer NumPy has finished before threads and tables are set up
_LARGE = 1 << 31  # elements: from here on a position may not fit in 32 bits
_PART = 1 << 15  # elements of what is searched at once: an axis of few columns is searched in parts
_BAND = 256  # columns that are searched side by side; what is known of them stays in the first-level cache
_NARROW = 8  # columns side by side from which on vectors pay
_SIDE_BY_SIDE = 4  # rows: no comparison waits for the one before
_SHORT = 128  # bytes of a row up to which NumPy's work per row costs more than its vectors gain

# A NaN is better than every number, and nothing is better than a NaN. This goes through parts ``k`` of ``piece`` elements
# of an axis (the last part may be shorter), and writes the extremum of each column and its position in the axis.
_COLUMNS = """
def find_in_columns(where, top, x, length, width, parts, piece, start, stop):
    extreme = scratch_{dtype}({band})
    places = scratch_{place}({band})
    for k in range(start // width, (stop - 1) // width + 1):
        left = max(start - k * width, 0)
        right = min(stop - k * width, width)
        first = k % parts * piece
        last = min(first + piece, length)
        for edge in range(left, right, {band}):
            count = min(right - edge, {band})
            row = at(x, (k // parts * length + first) * width + edge)
            for j in range(count):
                extreme[j] = row[j]
                places[j] = to_{place}(first)
            for r in range(first + 1, last):
                row = at(x, (k // parts * length + r) * width + edge)
                for j in range(count):
                    best = freeze(extreme[j])
                    better = select(row[j] {worse} best, False, best == best)
                    extreme[j] = select(better, row[j], best)
                    places[j] = select(better, to_{place}(r), freeze(places[j]))
            for j in range(count):
                where[k * width + edge + j] = to_i64(places[j])
                top[k * width + edge + j] = extreme[j]
"""
_ROWS = """
def find_in_rows(where, x, length, start, stop):
    for group in range(start, stop, {rows}):
        if group + {rows} <= stop:
            row_{k} = at(x, (group + {k}) * length)
            best_{k} = row_{k}[0]
            found_{k} = to_i64(0)
            for j in range(1, length):
                better_{k} = select(row_{k}[j] {worse} best_{k}, False, best_{k} == best_{k})
                best_{k} = select(better_{k}, row_{k}[j], best_{k})
                found_{k} = select(better_{k}, j, found_{k})
            where[group + {k}] = found_{k}
        else:
            for r in range(group, stop):
                row = at(x, r * length)
                best = row[0]
                found = to_i64(0)
                for j in range(1, length):
                    better = select(row[j] {worse} best, False, best == best)
                    best = select(better, row[j], best)
                    found = select(better, j, found)
                where[r] = found
"""


@cache
def _code(entry: str, dtype: str, worse: str) -> CodeObject:
    rows = entry == "find_in_rows"
    source = side_by_side(_ROWS, _SIDE_BY_SIDE) if rows else _COLUMNS
    text = source.format(dtype=dtype, place=_PLACES[dtype], worse=worse, band=_BAND, rows=_SIDE_BY_SIDE)
    arrays, sizes = (("i64*", f"{dtype}*"), 1) if rows else (("i64*", f"{dtype}*", f"{dtype}*"), 4)
    return compile_entry(text, entry, {}, params=(*arrays, *["i64"] * sizes), key="")


def _pieces(columns: int, length: int, width: int) -> tuple[int, int]:
    """In how many parts each axis is searched, and of how many elements; it follows from sizes alone."""
    if columns >= 2 * _BAND or length * width < 2 * _PART:
        return 1, length
    piece = _PART // width
    return -(-length // piece), piece


def _position(x: Array, *, axis: int, largest: bool) -> Array:
    x = np.ascontiguousarray(x)
    length, width = x.shape[axis], prod(x.shape[axis + 1 :])
    shape, dtype, worse = x.shape[:axis] + x.shape[axis + 1 :], dtype_name(x.dtype), "<=" if largest else ">="
    if width == 1:
        out = empty(shape, np.dtype(np.int64))
        code = _code("find_in_rows", dtype, worse)
        run_shared(code, [address_of(out), address_of(x), length], out.size, _SIDE_BY_SIDE * max(1, out.size // 64))
        return out
    parts, piece = _pieces(x.size // length, length, width)
    found = x.size // (length * width), parts, width
    where, top = empty(found, np.dtype(np.int64)), empty(found, x.dtype)
    words = [address_of(where), address_of(top), address_of(x), length, width, parts, piece]
    run_shared(_code("find_in_columns", dtype, worse), words, where.size, max(min(_BAND, width), -(-where.size // 8)))
    if parts > 1:
        best = (np.argmax if largest else np.argmin)(top, axis=1, keepdims=True)
        where = np.take_along_axis(where, best, 1)
    return where.reshape(shape)


def _find(largest: bool, operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    x, axis = operands[0], attrs["axis"]
    if axis is None or dtype_name(x.dtype) not in _PLACES or not _SMALL <= x.size < _LARGE:
        return None
    inner = prod(x.shape[axis + 1 :])
    worth = inner >= _NARROW or inner == 1 and x.shape[axis] * x.dtype.itemsize <= _SHORT
    return partial(_position, largest=largest) if worth else None


find_argmax = partial(_find, True)  # these two are for `jitgrad.runtime.library.registry`
find_argmin = partial(_find, False)
