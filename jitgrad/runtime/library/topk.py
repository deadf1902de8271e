"""Top-k indices as machine code: counting finds the smallest of the k elements, and only they are sorted."""

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

# An element's key is an i32 that is larger for larger elements: the same for 0.0 and -0.0, and the largest for any NaN.
_KEYS = {
    "i32": ("row[{step}]", "value"),
    "f32": (
        "as_i32(row[{step}] + to_f32(0.0))",
        "select(row[{step}] != row[{step}], to_i32(2147483647), to_i32(value ^ ((value >> 31) & 2147483647)))",
    ),
}
_SHORT = 32  # elements of a row up to which comparing all pairs is the least work
_PIECE = 1 << 12  # elements that are read repeatedly: their keys stay in the first-level cache
_MAX_SHARE = 4  # for more than a quarter of a row, or of a piece, sorting all of it is as fast
_BLOCK = 64  # keys that are compared at once
_SHIFT = 32  # bits of an index: the key takes the other half of a word
_NOTHING = np.iinfo(np.int64).max  # sorts after every candidate

# Finds bit by bit the largest key that at least ``count`` keys of a piece reach, by counting them: no branch depends on a
# single element. The first of equal elements win. A candidate is one word of its inverted key and its index: smaller is
# better, and no two are equal. Keys after the last element are the smallest, so they are never candidates.
_SOURCE = """
def find_largest(y, x, length, width, count, parts, piece, start, stop):
    keys = scratch_i32({piece})
    for k in range(start, stop):
        matrix = k // (parts * width)
        part = k // width % parts
        column = k % width
        first = part * piece
        size = min(piece, length - first)
        padded = (size + {block} - 1) // {block} * {block}
        wanted = min(count, size)
        row = at(x, (matrix * length + first) * width + column)
        for j in range(size):
            value = {bits}
            keys[j] = {key}
        for j in range(size, padded):
            keys[j] = to_i32(-2147483648)
        least = to_i32(-2147483648)
        above = padded
        bit = to_i64(31)
        while bit >= 0 and above != wanted:
            trial = to_i32(to_i64(least) + (1 << bit))
            hits = to_i32(0)
            for j in range(padded):
                hits = to_i32(hits + to_i32(keys[j] >= trial))
            if hits >= wanted:
                least = trial
                above = to_i64(hits)
            bit = bit - 1
        spare = to_i64(0)
        for j in range(padded):
            spare = spare + to_i64(keys[j] == least)
        spare = spare - above + wanted
        front = ((matrix * width + column) * parts + part) * count
        behind = front + count
        for block in range(0, padded, {block}):
            hits = to_i32(0)
            for j in range(block, block + {block}):
                hits = to_i32(hits + to_i32(keys[j] >= least))
            if hits > 0:
                for j in range(block, block + {block}):
                    if keys[j] > least or (keys[j] == least and spare > 0):
                        y[front] = (~to_i64(keys[j]) << {shift}) | (first + j)
                        front = front + 1
                        spare = spare - to_i64(keys[j] == least)
        for j in range(front, behind):
            y[j] = to_i64({nothing})
"""

# An element's rank is the number of larger elements and of equal ones before it.
_RANKS = """
def rank(y, x, length, width, count, start, stop):
    keys = scratch_i32({short})
    ranks = scratch_i32({short})
    order = scratch_i64({short})
    for j in range({short}):
        keys[j] = to_i32(0)
    for k in range(start, stop):
        row = at(x, k // width * length * width + k % width)
        for j in range(length):
            value = {bits}
            keys[j] = {key}
        for j in range({short}):
            ranks[j] = to_i32(0)
        for i in range(length):
            other = keys[i]
            for j in range({short}):
                before = (other > keys[j]) | ((other == keys[j]) & (to_i32(i) < to_i32(j)))
                ranks[j] = to_i32(ranks[j] + to_i32(before))
        for j in range(length):
            order[ranks[j]] = j
        for j in range(count):
            y[k * count + j] = order[j]
"""


@cache
def _code(entry: str, dtype: str, step: str) -> CodeObject:
    bits, key = [text.format(step=step) for text in _KEYS[dtype]]
    source, sizes = {"find_largest": (_SOURCE, 5), "rank": (_RANKS, 3)}[entry]
    sizes_of = {"piece": _PIECE, "block": _BLOCK, "shift": _SHIFT, "nothing": _NOTHING, "short": _SHORT}
    text = source.format(bits=bits, key=key, **sizes_of)
    return compile_entry(text, entry, {}, params=("i64*", f"{dtype}*", *["i64"] * sizes), key="")


def _argtopk(x: Array, *, axis: int, count: int) -> Array:
    x = np.ascontiguousarray(x)
    length, width = x.shape[axis], prod(x.shape[axis + 1 :])
    types = dtype_name(x.dtype), "j" if width == 1 else "j * width"
    lines, parts = x.size // length, -(-length // _PIECE)
    best = empty_buffer((lines, parts * count), np.dtype(np.int64))
    args = [best, x, length, width, count]
    if length <= _SHORT:
        run_parallel(_code("rank", *types), args, lines)
    else:
        run_parallel(_code("find_largest", *types), [*args, parts, -(-length // parts)], lines * parts)
        best.sort(axis=1)
        best = best[:, :count] & ((1 << _SHIFT) - 1)
    return np.moveaxis(best.reshape(*x.shape[:axis], *x.shape[axis + 1 :], count), -1, axis)


def find_argtopk(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    (x,), count = operands, attrs["count"]
    length = x.shape[attrs["axis"]]
    if dtype_name(x.dtype) not in _KEYS or length >= 1 << (_SHIFT - 1):
        return None
    most = length if length <= _SHORT else min(_PIECE, length) // _MAX_SHARE
    return _argtopk if 0 < count <= most else None
