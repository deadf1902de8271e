"""Running sums as machine code: NumPy takes one element at a time, on one thread, whichever way the axis lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.eager.buffer_pool import address_of, empty
from jitgrad.ops.movement import accumulator_dtype
from jitgrad.runtime.executor.parallel_loop import run_shared, side_by_side

Array = np.ndarray[Any, Any]

_DTYPES = frozenset({"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"})
_SMALL = 1 << 12  # elements: up to here NumPy has finished before threads and tables are set up
_BAND = 256  # columns of a chunk at least: of long rows, so many are worth the page that they lie in
_ROWS = 8  # rows that are summed side by side, so that an addition need not wait for the one before

# A chunk is a range of columns, counted on through all matrices; each column is summed from its first element on, in
# order, as NumPy does. ``first`` and ``step`` are the elements from a matrix to the row where sums start, and from each
# row to the next.
_COLUMNS = """
def scan_columns(y, x, length, width, first, step, start, stop):
    for k in range(start // width, (stop - 1) // width + 1):
        left = max(start - k * width, 0)
        right = min(stop - k * width, width)
        row = k * length * width + first
        to = at(y, row)
        term = at(x, row)
        for j in range(left, right):
            to[j] = {cast}(term[j])
        for r in range(1, length):
            total = at(y, row)
            row = row + step
            to = at(y, row)
            term = at(x, row)
            for j in range(left, right):
                to[j] = total[j] + {cast}(term[j])
"""

# The same for rows: each is summed on its own, eight of them at a time.
_LINES = """
def scan_rows(y, x, length, first, step, start, stop):
    for group in range(start, stop, {rows}):
        if group + {rows} <= stop:
            at_{k} = (group + {k}) * length + first
            total_{k} = {cast}(x[at_{k}])
            y[at_{k}] = total_{k}
            for _ in range(1, length):
                at_{k} = at_{k} + step
                total_{k} = total_{k} + {cast}(x[at_{k}])
                y[at_{k}] = total_{k}
        else:
            for r in range(group, stop):
                here = r * length + first
                total = {cast}(x[here])
                y[here] = total
                for _ in range(1, length):
                    here = here + step
                    total = total + {cast}(x[here])
                    y[here] = total
"""


@cache
def _columns(dtype: str, total: str) -> CodeObject:
    params = (f"{total}*", f"{dtype}*", "i64", "i64", "i64", "i64")
    return compile_entry(_COLUMNS.format(cast=f"to_{total}"), "scan_columns", {}, params=params, key="")


@cache
def _rows(dtype: str, total: str) -> CodeObject:
    params = (f"{total}*", f"{dtype}*", "i64", "i64", "i64")
    source = side_by_side(_LINES, _ROWS).format(cast=f"to_{total}", rows=_ROWS)
    return compile_entry(source, "scan_rows", {}, params=params, key="")


def _cumulative_sum(x: Array, *, axis: int, reverse: bool) -> Array:
    x = np.ascontiguousarray(x)
    length, width = x.shape[axis], prod(x.shape[axis + 1 :])
    dtype = accumulator_dtype(x.dtype)
    out = empty(x.shape, dtype)
    first, step = ((length - 1) * width, -width) if reverse else (0, width)
    names = dtype_name(x.dtype), dtype_name(dtype)
    lines = x.size // length
    if width > 1:
        words = [address_of(out), address_of(x), length, width, first, step]
        run_shared(_columns(*names), words, lines, max(_BAND, -(-lines // 8)))
    else:
        words = [address_of(out), address_of(x), length, first, step]
        run_shared(_rows(*names), words, lines, _ROWS * max(1, -(-lines // (8 * _ROWS))))
    return out


def find_cumulative_sum(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x = operands[0]
    return _cumulative_sum if x.size > _SMALL and dtype_name(x.dtype) in _DTYPES else None
