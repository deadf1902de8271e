"""Cumulative sums as machine code; NumPy adds one element at a time, on one thread, along any axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Array, Aval, dtype_name
from jitgrad.core.monoid import sum_dtype
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.runtime.executor.parallel_loop import run_parallel, unrolled

_DTYPES = frozenset({"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"})
_MIN_COLUMNS = 256  # of a block: part of a long row should use most of a page of memory
_ROWS = 8  # summed together, so that an addition need not wait for the one before

# An iteration is a column, numbered through all matrices. Each column is summed in order from its first element, as NumPy
# does. ``first`` is the offset in a matrix of the row where sums start, ``step`` the distance to the next row.
_BY_COLUMNS = """
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

# An iteration is a row; eight are summed together.
_BY_ROWS = """
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
    return compile_entry(_BY_COLUMNS.format(cast=f"to_{total}"), "scan_columns", {}, params=params, key="")


@cache
def _rows(dtype: str, total: str) -> CodeObject:
    params = (f"{total}*", f"{dtype}*", "i64", "i64", "i64")
    source = unrolled(_BY_ROWS, _ROWS).format(cast=f"to_{total}", rows=_ROWS)
    return compile_entry(source, "scan_rows", {}, params=params, key="")


def _cumulative_sum(x: Array, *, axis: int, reverse: bool) -> Array:
    x = np.ascontiguousarray(x)
    length, width = x.shape[axis], prod(x.shape[axis + 1 :])
    dtype = sum_dtype(x.dtype)
    out = empty_buffer(x.shape, dtype)
    first, step = ((length - 1) * width, -width) if reverse else (0, width)
    names = dtype_name(x.dtype), dtype_name(dtype)
    lines = x.size // length
    if width > 1:
        run_parallel(_columns(*names), [out, x, length, width, first, step], lines, min_block=_MIN_COLUMNS)
    else:
        run_parallel(_rows(*names), [out, x, length, first, step], lines, multiple_of=_ROWS)
    return out


def find_cumulative_sum(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    return _cumulative_sum if dtype_name(operands[0].dtype) in _DTYPES else None
