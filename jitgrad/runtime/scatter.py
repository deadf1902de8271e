"""Rows added to a matrix at given places, as machine code: NumPy adds one element at a time, or has to sort."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from jitgrad.aval import Aval, dtype_name
from jitgrad.backends.machine import MachineCode, compile_entry
from jitgrad.errors import IndexingError
from jitgrad.runtime.parallel import run_shared
from jitgrad.runtime.pool import address_of, empty

Array = np.ndarray[Any, Any]

_DTYPES = frozenset({"f32", "f64", "i32", "i64"})
_BAND = 32  # columns that a thread takes at least: two lines of a cache

# A thread goes through all rows with its columns: every element is added to in the order of the rows, on any number of
# threads.
_SOURCE = """
def add_rows(y, x, places, rows, width, start, stop):
    for r in range(rows):
        to = at(y, places[r] * width)
        row = at(x, r * width)
        for j in range(start, stop):
            to[j] = to[j] + row[j]
"""


@cache
def _code(dtype: str) -> MachineCode:
    return compile_entry(_SOURCE, "add_rows", {}, params=(f"{dtype}*", f"{dtype}*", "i64*", "i64", "i64"), key="")


def _add_rows(out: Array, places: Array, rows: Array) -> None:
    """``out[places[r]] += rows[r]`` for all ``r`` in turn; all C-contiguous, places in range."""
    width = rows.shape[1]
    words = [address_of(out), address_of(rows), address_of(places), len(rows), width]
    run_shared(_code(dtype_name(out.dtype)), words, width, max(_BAND, -(-width // 8)))


def _added(what: str, x: Array, index: Array, rows: Array) -> Array:
    """A copy of ``x`` with ``rows`` added along its first axis, where ``index`` says.

    Raises:
        IndexingError: for an index that is out of bounds.
    """
    n, width = x.shape[0], prod(x.shape[1:])
    out = empty(x.shape, x.dtype)
    np.copyto(out, x)
    index = np.asarray(index).reshape(-1)
    if index.size and not (-n <= index.min() and index.max() < n):
        raise IndexingError(f"{what}: an index is out of bounds for axis 0 of length {n}")
    places = np.where(index < 0, index + n, index).astype(np.int64)
    _add_rows(out.reshape(n, width), places, np.ascontiguousarray(rows).reshape(len(places), width))
    return out


def _index_add(x: Array, index: Array, src: Array, *, axis: int) -> Array:
    return _added("index_add", x, index, src)


def _index_put_add(x: Array, v: Array, index: Array, *, axes: tuple[int, ...]) -> Array:
    return _added("indexing", x, index, v)


def _has_rows(x: Aval) -> bool:
    return x.ndim >= 2 and x.size > 0 and dtype_name(x.dtype) in _DTYPES


def find_index_add(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.substitutes`."""
    return _index_add if _has_rows(operands[0]) and attrs["axis"] == 0 else None


def find_index_put_add(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.substitutes`."""
    return _index_put_add if _has_rows(operands[0]) and tuple(attrs["axes"]) == (0,) else None
