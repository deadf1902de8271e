"""Binary search as machine code: many searches take each step together; NumPy's wait for memory one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Array, Aval, dtype_name
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.runtime.executor.parallel_loop import run_parallel

_DTYPES = frozenset({"f32", "f64", "i32", "i64"})
_MAX_PER_VALUE = 16  # elements of the sorted array for each value: checking that it is sorted then costs little
_TOGETHER = 64  # values that are searched for together: their indices stay in the first-level cache

# A NaN compares as larger than every element, and no element is NaN, so its index is the array's length.
_SOURCE = """
def search(y, ordered, x, length, start, stop):
    indices = scratch_i64({together})
    for first in range(start, stop, {together}):
        count = min(stop - first, {together})
        for j in range(count):
            indices[j] = 0
        size = length
        while size > 1:
            half = size >> 1
            for j in range(count):
                middle = indices[j] + half
                indices[j] = select(ordered[middle - 1] {stops} x[first + j], freeze(indices[j]), middle)
            size = size - half
        for j in range(count):
            y[first + j] = indices[j] + select(ordered[indices[j]] {stops} x[first + j], to_i64(0), to_i64(1))
"""


@cache
def _code(dtype: str, side: str) -> CodeObject:
    text = _SOURCE.format(together=_TOGETHER, stops={"left": ">=", "right": ">"}[side])
    return compile_entry(text, "search", {}, params=("i64*", f"{dtype}*", f"{dtype}*", "i64"), key="")


def _searchsorted(ordered: Array, values: Array, *, side: Any) -> Array:
    if not np.all(ordered[:-1] <= ordered[1:]) or ordered[-1] != ordered[-1]:
        return np.searchsorted(ordered, values, side=side)  # NaN or unsorted: the result depends on the algorithm
    ordered, values = np.ascontiguousarray(ordered), np.ascontiguousarray(values)
    out = empty_buffer(values.shape, np.dtype(np.int64))
    code = _code(dtype_name(values.dtype), side)
    run_parallel(code, [out, ordered, values, ordered.size], values.size, multiple_of=_TOGETHER)
    return out


def find_searchsorted(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    ordered, values = operands
    supported = ordered.dtype == values.dtype and dtype_name(values.dtype) in _DTYPES
    return _searchsorted if supported and 0 < ordered.size <= _MAX_PER_VALUE * values.size else None
