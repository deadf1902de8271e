"""Machine code that reads, writes or adds elements at the places that arrays of indices name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Aval, Shape, broadcast_shapes, dtype_name
from jitgrad.eager.buffer_pool import address_of
from jitgrad.runtime.executor.parallel_loop import run_shared

Array = np.ndarray[Any, Any]

CALL = 16_000  # ns of NumPy's work, as `pays` counts it, from which on machine code is faster: a call takes 10 us
_COPIED = 32  # elements of a row that NumPy copies in 1 ns
_CHUNKS = 16  # of a launch, at most: an even load on as many threads as share memory well
_LEAST = 4096  # elements of a chunk, some 2 us: below, sharing costs more than it saves
_BANDS = 4  # of columns, at most: parts of a row that lies a power of two from the next share lines of a cache
_BAND = 32  # columns of a band, at least: two lines of a cache
_FIXED = 32  # rows up to so long have a loop of their own: one for any length takes longer to start than they take
_WIDE = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # what is only moved is moved as words

_INDEX = {np.dtype(np.int32): np.int32}  # dtypes that indices keep


@dataclass(frozen=True, slots=True)
class IndexSpace:
    """Places in an array of shape ``[outer, *lengths, width]``, and moved rows in one of ``[outer, count, width]``.

    There is an array of indices for each of ``lengths``: of shape ``[count]``, or ``[outer, count]`` where ``own``, or
    ``[outer, count, width]``, an index for each element, where ``own`` and ``single``.
    """

    outer: int
    lengths: tuple[int, ...]
    count: int
    width: int
    own: bool = False
    single: bool = False


def along(x: Shape, axis: int, index: Aval) -> IndexSpace:
    """Rows of an array of shape ``x`` along ``axis``, the same for all that is before it."""
    return IndexSpace(prod(x[:axis]), (x[axis],), index.size, prod(x[axis + 1 :]))


def for_each(x: Shape, axis: int, index: Aval) -> IndexSpace | None:
    """An element of ``x`` for every index, where it stands but for ``axis``; None if ``index`` leaves gaps in ``x``."""
    if x[axis + 1 :] != index.shape[axis + 1 :] or x[1:axis] != index.shape[1:axis]:
        return None
    width = prod(x[axis + 1 :])
    return IndexSpace(prod(index.shape[:axis]), (x[axis],), index.shape[axis], width, own=True, single=width > 1)


def at_axes(x: Shape, axes: Sequence[int], indices: Sequence[Aval]) -> IndexSpace | None:
    """Rows where several indices at neighbouring ``axes`` say; None if the axes are no neighbours."""
    first, last = axes[0], axes[-1]
    if last - first != len(axes) - 1:
        return None
    count = prod(broadcast_shapes("indexing", indices))
    return IndexSpace(prod(x[:first]), x[first : last + 1], count, prod(x[last + 1 :]))


def handles(x: Aval, indices: Sequence[Aval]) -> bool:
    """Whether `run` takes arrays that look like ``x`` and ``indices``."""
    return (
        x.size > 0
        and x.dtype.itemsize in _WIDE
        and all(i.size > 0 and i.dtype.kind in "iu" and i.dtype != np.uint64 for i in indices)
    )


def within(walk: IndexSpace, indices: Sequence[Array]) -> bool:
    """Whether all ``indices`` are within bounds."""
    return all(bool(-n <= i.min() and i.max() < n) for i, n in zip(indices, walk.lengths, strict=True))


def pays(walk: IndexSpace, row: int, element: int = 0) -> bool:
    """Whether `run` is faster than a function of NumPy's that takes ``row`` and ``element`` ns for one of them."""
    rows = walk.outer * walk.count * (walk.width if walk.single else 1)
    elements = walk.outer * walk.count * walk.width
    return rows * row + elements * element + elements // _COPIED >= CALL


# --- source --------------------------------------------------------------------------------------------------------

# Reading is shared by rows. A place is found and read in one go: with an element a row, that is in vectors.
_READ = """
    for o in range(start // count, (stop - 1) // count + 1):
        for p in range(max(start - o * count, 0), min(stop - o * count, count)):
            k = o * own + p
            {place}
            to = at(y, (o * count + p) * width)
            row = at(x, (o * {length} + place) * width)
            for j in range(width):
                to[j] = row[j]
"""
_READ_SINGLE = """
    for r in range(start, stop):
        to = at(y, r * width)
        row = at(x, r // count * {length} * width)
        for j in range(width):
            k = r * width + j
            {place}
            to[j] = row[place * width + j]
"""
# Changes are shared by bands of columns: a thread goes through all rows with its columns, so that every element is changed
# in the order of the rows, on any number of threads. Places are found ahead, in vectors.
_CHANGE = """
    bands = (width - 1) // band + 1
    places = scratch_i64(256)
    for item in range(start, stop):
        o = item // bands
        left = (item - o * bands) * band
        right = min(left + band, width)
        for first in range(0, count, 256):
            last = min(first + 256, count)
            for p in range(first, last):
                k = o * own + p
                {place}
                places[p - first] = place
            {ahead}
            for p in range(first, last):
                to = at(y, (o * {length} + places[p - first]) * width)
                row = at(x, (o * count + p) * width)
                {change}
"""
_CHANGE_SINGLE = """
    bands = (width - 1) // band + 1
    for item in range(start, stop):
        o = item // bands
        left = (item - o * bands) * band
        right = min(left + band, width)
        for p in range(count):
            row = at(x, (o * count + p) * width)
            for j in range(left, right):
                k = (o * count + p) * width + j
                {place}
                to = at(y, (o * {length} + place) * width)
                to[j] = {value}
"""

# An addition loads what it changes, many at a time. Stores do not: they wait for one line after the other.
_AHEAD = [
    "for p in range(first, last):",
    "    prefetch(y, (o * {length} + places[p - first]) * width + left)",
]


def _place(arrays: int) -> list[str]:
    """Statements that find ``place`` from element ``k`` of the arrays of indices; 0, and a note, if out of bounds."""
    lines, number = [], "i0"
    for n in range(arrays):
        lines += [f"i{n} = to_i64(a{n}[k])", f"i{n} = select(i{n} < 0, i{n} + n{n}, i{n})"]
        number = f"({number}) * n{n} + i{n}" if n else number
    inside = " and ".join(f"0 <= i{n} < n{n}" for n in range(arrays))
    noted = "outside |= select(inside, to_i64(0), to_i64(1))"
    return [*lines, f"inside = {inside}", noted, f"place = select(inside, {number}, to_i64(0))"]


def _filled(form: str, blocks: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of ``form``; in place of a line that names a block, those of the block, as far in."""
    lines = []
    for line in form.strip("\n").splitlines():
        margin = line[: len(line) - len(line.lstrip())]
        lines += [margin + text for text in blocks[line.strip()]] if line.strip() in blocks else [line]
    return lines


@cache
def _code(move: str, single: bool, fixed: int, dtype: str, indices: tuple[str, ...]) -> CodeObject:
    """``fixed``: a width that the code is for, 0 if it is for any; ``indices``: their dtypes."""
    if move == "read":
        form = _READ_SINGLE if single else _READ
    else:
        form = _CHANGE_SINGLE if single else _CHANGE
    arrays, lengths = [f"a{n}" for n in range(len(indices))], [f"n{n}" for n in range(len(indices))]
    value = f"to_{dtype}(to[j] + row[j])" if move == "add" else "row[j]"
    change = ["for j in range(left, right):", f"    to[j] = {value}"]
    if move == "add" and fixed > 1:
        change = [f"add_row(to, row, {fixed})"]
    ahead = _AHEAD if move == "write" else []
    text = "\n".join(_filled(form, {"{place}": _place(len(indices)), "{change}": change, "{ahead}": ahead}))
    lines = [
        f"def move(y, x, wrong, {', '.join([*arrays, *lengths])}, count, width, own, band, start, stop):",
        "    outside = to_i64(0)",
        *([f"    width = {fixed}", f"    band = {fixed}"] if fixed else []),
        text.format(length="(" + " * ".join(lengths) + ")", value=value),
        "    if outside != 0:",
        "        wrong[0] = 1",
    ]
    params = [f"{dtype}*", f"{dtype}*", "i64*", *[f"{d}*" for d in indices], *["i64"] * (len(indices) + 4)]
    return compile_entry("\n".join(lines), "move", {}, params=params, key="")


# --- running it ----------------------------------------------------------------------------------------------------


def run(move: str, walk: IndexSpace, y: Array, x: Array, indices: Sequence[Array]) -> bool:
    """Rows of ``x`` moved into ``y`` as `IndexSpace` says; whether all indices are within bounds.

    "read" takes rows of ``x`` from the places in ``indices``; "write" puts rows of ``x`` there, of several for one place
    the last; "add" adds them in turn. ``y`` and ``x`` are C-contiguous, aligned and of one dtype, and not empty; ``y``
    is undefined if an index is out of bounds.
    """
    dtype, width = _unit(move, walk, y, x)
    if move == "read":
        band, items = width, walk.outer * walk.count
        least = _LEAST // width + 1
    else:
        bands = max(1, min(_BANDS // walk.outer, width // _BAND))
        band = -(-width // bands // 16) * 16 if bands > 1 else width
        items = walk.outer * -(-width // band)
        least = _LEAST // (walk.count * band) + 1
    if len(indices) > 1:
        indices = np.broadcast_arrays(*indices)
    arrays = [np.ascontiguousarray(i, _INDEX.get(i.dtype, np.int64)) for i in map(np.asarray, indices)]
    fixed = width if width <= _FIXED and not walk.single else 0
    code = _code(move, walk.single, fixed, dtype, tuple([dtype_name(a.dtype) for a in arrays]))
    wrong = np.zeros(1, np.int64)
    words = [address_of(y), address_of(x), address_of(wrong), *map(address_of, arrays), *walk.lengths]
    words += [walk.count, width, walk.count if walk.own else 0, band]
    run_shared(code, words, items, max(least, -(-items // _CHUNKS)))
    return not wrong[0]


def _unit(move: str, walk: IndexSpace, y: Array, x: Array) -> tuple[str, int]:
    """The dtype of what is moved at once, and how many of them a row has."""
    size = y.dtype.itemsize
    if move == "add":
        return dtype_name(y.dtype), walk.width
    if walk.single:
        return _WIDE[size], walk.width
    row = size * walk.width
    parts = row | address_of(x) | address_of(y)
    size = min(parts & -parts, 8)  # the largest power of two that divides them all
    return _WIDE[size], row // size
