"""Rows added to a matrix at given places, as machine code: NumPy adds one element at a time, or has to sort."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from jitgrad.aval import dtype_name
from jitgrad.backends.machine import MachineCode, compile_entry
from jitgrad.errors import IndexingError
from jitgrad.op import OpDef
from jitgrad.runtime import native, team
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
    words = np.array([address_of(out), address_of(rows), address_of(places), len(rows), width], np.int64)
    code = _code(dtype_name(out.dtype))
    table = np.zeros((1, native.INSTRUCTION_WORDS), np.int64)
    table[0, :5] = native.KERNEL, code.address, address_of(words), width, max(_BAND, -(-width // 8))
    team.run(address_of(table), 1)


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


def native_meaning(op: OpDef, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Callable[..., Any] | None:
    """What computes ``op`` for operands that look like ``operands`` (Avals) instead of NumPy; None if nothing does."""
    x = operands[0] if operands else None
    if x is None or x.ndim < 2 or not x.size or dtype_name(x.dtype) not in _DTYPES:
        return None
    if op.name == "index_add" and attrs["axis"] == 0:
        return _index_add
    if op.name == "index_put_add" and tuple(attrs["axes"]) == (0,):
        return _index_put_add
    return None
