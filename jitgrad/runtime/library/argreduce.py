"""Argmax and argmin as machine code; NumPy moves the axis to the end and searches row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Array, Aval, dtype_name
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.runtime.executor.parallel_loop import run_parallel, unrolled

_INDEX_TYPES = {"f32": "i32", "i32": "i32", "f64": "i64", "i64": "i64"}  # as wide as the values: same vector lengths
_MAX_SIZE = 1 << 31  # elements: from here on an index may not fit in 32 bits
_PART = 1 << 15  # elements of a part: an axis of few columns is searched in parts
_COLUMNS = 256  # searched together; their extrema so far stay in the first-level cache
_MIN_COLUMNS = 8  # vectors pay from so many columns on
_ROWS = 4  # searched together, so that a comparison need not wait for the one before
_MAX_ROW = 128  # bytes of a row up to which NumPy's work per row costs more than its vectors gain

# A NaN is better than every number, and nothing is better than a NaN. The axis is cut into ``parts`` of ``piece`` elements
# (the last may be shorter). Each part's extremum and its index go to ``top`` and ``where``, for every column.
_BY_COLUMNS = """
def find_in_columns(where, top, x, length, width, parts, piece, start, stop):
    extreme = scratch_{dtype}({columns})
    indices = scratch_{index}({columns})
    for k in range(start // width, (stop - 1) // width + 1):
        left = max(start - k * width, 0)
        right = min(stop - k * width, width)
        first = k % parts * piece
        last = min(first + piece, length)
        for edge in range(left, right, {columns}):
            count = min(right - edge, {columns})
            row = at(x, (k // parts * length + first) * width + edge)
            for j in range(count):
                extreme[j] = row[j]
                indices[j] = to_{index}(first)
            for r in range(first + 1, last):
                row = at(x, (k // parts * length + r) * width + edge)
                for j in range(count):
                    best = freeze(extreme[j])
                    better = select(row[j] {worse} best, False, best == best)
                    extreme[j] = select(better, row[j], best)
                    indices[j] = select(better, to_{index}(r), freeze(indices[j]))
            for j in range(count):
                where[k * width + edge + j] = to_i64(indices[j])
                top[k * width + edge + j] = extreme[j]
"""
_BY_ROWS = """
def find_in_rows(where, x, length, start, stop):
    for group in range(start, stop, {rows}):
        if group + {rows} <= stop:
            row_{k} = at(x, (group + {k}) * length)
            best_{k} = row_{k}[0]
            index_{k} = to_i64(0)
            for j in range(1, length):
                better_{k} = select(row_{k}[j] {worse} best_{k}, False, best_{k} == best_{k})
                best_{k} = select(better_{k}, row_{k}[j], best_{k})
                index_{k} = select(better_{k}, j, index_{k})
            where[group + {k}] = index_{k}
        else:
            for r in range(group, stop):
                row = at(x, r * length)
                best = row[0]
                index = to_i64(0)
                for j in range(1, length):
                    better = select(row[j] {worse} best, False, best == best)
                    best = select(better, row[j], best)
                    index = select(better, j, index)
                where[r] = index
"""


@cache
def _code(entry: str, dtype: str, worse: str) -> CodeObject:
    by_rows = entry == "find_in_rows"
    source = unrolled(_BY_ROWS, _ROWS) if by_rows else _BY_COLUMNS
    text = source.format(dtype=dtype, index=_INDEX_TYPES[dtype], worse=worse, columns=_COLUMNS, rows=_ROWS)
    arrays, sizes = (("i64*", f"{dtype}*"), 1) if by_rows else (("i64*", f"{dtype}*", f"{dtype}*"), 4)
    return compile_entry(text, entry, {}, params=(*arrays, *["i64"] * sizes), key="")


def _parts(columns: int, length: int, width: int) -> tuple[int, int]:
    """The number of parts of each axis and their elements; only sizes decide."""
    if columns >= 2 * _COLUMNS or length * width < 2 * _PART:
        return 1, length
    piece = _PART // width
    return -(-length // piece), piece


def _argreduce(x: Array, *, axis: int, largest: bool) -> Array:
    x = np.ascontiguousarray(x)
    length, width = x.shape[axis], prod(x.shape[axis + 1 :])
    shape, dtype, worse = x.shape[:axis] + x.shape[axis + 1 :], dtype_name(x.dtype), "<=" if largest else ">="
    if width == 1:
        out = empty_buffer(shape, np.dtype(np.int64))
        code = _code("find_in_rows", dtype, worse)
        run_parallel(code, [out, x, length], out.size, multiple_of=_ROWS)
        return out
    parts, piece = _parts(x.size // length, length, width)
    by_part = x.size // (length * width), parts, width
    where, top = empty_buffer(by_part, np.dtype(np.int64)), empty_buffer(by_part, x.dtype)
    code, args = _code("find_in_columns", dtype, worse), [where, top, x, length, width, parts, piece]
    run_parallel(code, args, where.size, min_block=min(_COLUMNS, width))
    if parts > 1:
        best = (np.argmax if largest else np.argmin)(top, axis=1, keepdims=True)
        where = np.take_along_axis(where, best, 1)
    return where.reshape(shape)


def _find(largest: bool, operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    x, axis = operands[0], attrs["axis"]
    if axis is None or dtype_name(x.dtype) not in _INDEX_TYPES or x.size >= _MAX_SIZE:
        return None
    inner = prod(x.shape[axis + 1 :])
    faster = inner >= _MIN_COLUMNS or inner == 1 and x.shape[axis] * x.dtype.itemsize <= _MAX_ROW
    return partial(_argreduce, largest=largest) if faster else None


# These two are for `jitgrad.runtime.library.registry`.
find_argmax: Callable[..., Callable[..., Array] | None] = partial(_find, True)
find_argmin: Callable[..., Callable[..., Array] | None] = partial(_find, False)
