"""Positions of the largest and smallest elements so far as machine code; NumPy takes four passes over the elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Array, Aval, dtype_name
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.runtime.executor.parallel_loop import run_parallel

_DTYPES = frozenset({"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
_COLUMNS = 256  # whose extremes stay in the first-level cache

# An element takes the place of the extreme if it is as large, or NaN: then only NaN does. An iteration is a row.
_BY_ROWS = """
def follow_rows(y, x, length, start, stop):
    for r in range(start, stop):
        row = at(x, r * length)
        to = at(y, r * length)
        best = row[0]
        place = to_i64(0)
        to[0] = place
        for i in range(1, length):
            value = row[i]
            taken = (value {order} best) | (value != value)
            best = select(taken, value, best)
            place = select(taken, to_i64(i), place)
            to[i] = place
"""

# An iteration is a column, numbered through all matrices.
_BY_COLUMNS = """
def follow_columns(y, x, length, width, start, stop):
    best = scratch_{dtype}({columns})
    for k in range(start // width, (stop - 1) // width + 1):
        left = max(start - k * width, 0)
        right = min(stop - k * width, width)
        for first in range(left, right, {columns}):
            count = min({columns}, right - first)
            place = k * length * width + first
            row = at(x, place)
            to = at(y, place)
            for j in range(count):
                best[j] = row[j]
                to[j] = to_i64(0)
            for r in range(1, length):
                known = at(y, place)
                place = place + width
                row = at(x, place)
                to = at(y, place)
                for j in range(count):
                    value = row[j]
                    taken = (value {order} best[j]) | (value != value)
                    best[j] = select(taken, value, best[j])
                    to[j] = select(taken, to_i64(r), known[j])
"""


@cache
def _code(text: str, name: str, dtype: str, order: str, sizes: int) -> CodeObject:
    source = text.format(order=order, dtype=dtype, columns=_COLUMNS)
    return compile_entry(source, name, {}, params=("i64*", f"{dtype}*", *["i64"] * sizes), key="")


def _running_position(x: Array, *, axis: int, largest: bool) -> Array:
    x = np.ascontiguousarray(x)
    length, width = x.shape[axis], prod(x.shape[axis + 1 :])
    out = empty_buffer(x.shape, np.dtype(np.int64))
    how = dtype_name(x.dtype), ">=" if largest else "<="
    if width > 1:
        code = _code(_BY_COLUMNS, "follow_columns", *how, 2)
        run_parallel(code, [out, x, length, width], x.size // length, min_block=_COLUMNS)
    else:
        run_parallel(_code(_BY_ROWS, "follow_rows", *how, 1), [out, x, length], x.size // length)
    return out


def find_running_position(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    return _running_position if dtype_name(operands[0].dtype) in _DTYPES else None
