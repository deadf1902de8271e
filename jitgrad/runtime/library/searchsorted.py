"""Places in a sorted array as machine code: many searches take each step together, NumPy's wait for memory one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.eager.buffer_pool import address_of, empty
from jitgrad.runtime.executor.parallel_loop import run_shared

Array = np.ndarray[Any, Any]

_DTYPES = frozenset({"f32", "f64", "i32", "i64"})
_SMALL = 1 << 11  # values: with fewer NumPy has finished before threads and tables are set up
_FEW = 16  # elements of the sorted array for each value up to which looking whether it is sorted costs little
_BLOCK = 64  # values that are searched for together: their places stay in the first-level cache

# A NaN stops nowhere, so its place is behind all elements, of which none is NaN.
_SOURCE = """
def search(y, ordered, x, length, start, stop):
    places = scratch_i64({block})
    for block in range(start, stop, {block}):
        count = min(stop - block, {block})
        for j in range(count):
            places[j] = 0
        size = length
        while size > 1:
            half = size >> 1
            for j in range(count):
                middle = places[j] + half
                places[j] = select(ordered[middle - 1] {stops} x[block + j], freeze(places[j]), middle)
            size = size - half
        for j in range(count):
            y[block + j] = places[j] + select(ordered[places[j]] {stops} x[block + j], to_i64(0), to_i64(1))
"""


@cache
def _code(dtype: str, side: str) -> CodeObject:
    text = _SOURCE.format(block=_BLOCK, stops={"left": ">=", "right": ">"}[side])
    return compile_entry(text, "search", {}, params=("i64*", f"{dtype}*", f"{dtype}*", "i64"), key="")


def _searchsorted(ordered: Array, values: Array, *, side: Any) -> Array:
    if not np.all(ordered[:-1] <= ordered[1:]) or ordered[-1] != ordered[-1]:
        return np.searchsorted(ordered, values, side=side)  # NaN, or in no order: what is found depends on how
    ordered, values = np.ascontiguousarray(ordered), np.ascontiguousarray(values)
    out = empty(values.shape, np.dtype(np.int64))
    words = [address_of(out), address_of(ordered), address_of(values), ordered.size]
    run_shared(_code(dtype_name(values.dtype), side), words, values.size, _BLOCK * max(1, values.size // (16 * _BLOCK)))
    return out


def find_searchsorted(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    ordered, values = operands
    native = ordered.dtype == values.dtype and dtype_name(values.dtype) in _DTYPES
    return _searchsorted if native and values.size >= _SMALL and 0 < ordered.size <= _FEW * values.size else None
