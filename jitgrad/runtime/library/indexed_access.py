"""Machine code that reads, writes or adds elements at indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.core.aval import Array, Aval, Shape, broadcast_shapes, dtype_name
from jitgrad.eager.buffer_pool import address_of
from jitgrad.runtime.executor.parallel_loop import run_parallel

MIN_NUMPY_NS = 16_000  # of NumPy's work, as `pays` counts it: from here on machine code is faster, whose call takes 10 us
_COPIED_PER_NS = 32  # elements of a row that NumPy copies in 1 ns
_MIN_ELEMENTS = 4096  # of a block, some 2 us: below, sharing costs more than it saves
_MAX_BANDS = 4  # of columns: where rows are a power of two apart, parts of them compete for the same cache lines
_MIN_BAND = 32  # columns of a band: two cache lines
_MAX_FIXED = 32  # rows up to this length have a loop of fixed length: a general loop takes longer to start than they take
COPIED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # elements that are only copied are copied as integers
ADDED = frozenset({"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})

_INDEX_DTYPES = {np.dtype(np.int32): np.int32}  # those used as they are; others are converted to int64


class AccessMode(Enum):
    """The operation at each index. Of several values for one index, `WRITE` keeps the last and `ADD` adds in order."""

    READ = "read"
    WRITE = "write"
    ADD = "add"


@dataclass(frozen=True, slots=True)
class IndexSpace:
    """Rows of an array of shape ``[outer, *lengths, width]``, selected into (or from) one of ``[outer, count, width]``.

    Each of ``lengths`` has an array of indices. Its shape is ``[count]``; with ``per_outer`` ``[outer, count]``; with
    ``per_element`` too ``[outer, count, width]``.
    """

    outer: int
    lengths: tuple[int, ...]
    count: int
    width: int
    per_outer: bool = False
    per_element: bool = False


def along(x: Shape, attrs: Mapping[str, Any], indices: Sequence[Aval]) -> IndexSpace:
    """Rows along ``axis`` of an array of shape ``x``; all outer axes use the same indices."""
    axis, (index,) = attrs["axis"], indices
    return IndexSpace(prod(x[:axis]), (x[axis],), index.size, prod(x[axis + 1 :]))


def for_each(x: Shape, attrs: Mapping[str, Any], indices: Sequence[Aval]) -> IndexSpace | None:
    """An element for every index, at the index's own position except in ``axis``; None if ``x`` is wider."""
    axis, (index,) = attrs["axis"], indices
    if x[axis + 1 :] != index.shape[axis + 1 :] or x[1:axis] != index.shape[1:axis]:
        return None
    width = prod(x[axis + 1 :])
    return IndexSpace(prod(index.shape[:axis]), (x[axis],), index.shape[axis], width, per_outer=True, per_element=width > 1)


def at_axes(x: Shape, attrs: Mapping[str, Any], indices: Sequence[Aval]) -> IndexSpace | None:
    """Rows at several indices along adjacent axes; None if the axes are not adjacent."""
    first, last = attrs["axes"][0], attrs["axes"][-1]
    if last - first != len(indices) - 1:
        return None
    count = prod(broadcast_shapes("indexing", indices))
    return IndexSpace(prod(x[:first]), x[first : last + 1], count, prod(x[last + 1 :]))


# the space of indices in an array of a shape
SpaceOf = Callable[[Shape, Mapping[str, Any], Sequence[Aval]], IndexSpace | None]


def handles(x: Aval, indices: Sequence[Aval]) -> bool:
    """Whether `move_elements` supports arrays such as ``x`` and ``indices``."""
    return (
        x.size > 0
        and x.dtype.itemsize in COPIED
        and all(i.size > 0 and i.dtype.kind in "iu" and i.dtype != np.uint64 for i in indices)
    )


def pays(space: IndexSpace, row: int, element: int = 0) -> bool:
    """Whether `move_elements` beats a NumPy function that takes ``row`` ns per row and ``element`` ns per element."""
    rows = space.outer * space.count * (space.width if space.per_element else 1)
    elements = space.outer * space.count * space.width
    return rows * row + elements * element + elements // _COPIED_PER_NS >= MIN_NUMPY_NS


# --- source --------------------------------------------------------------------------------------------------------

# ``index`` is where a row begins, in elements from that of index 0. Threads share reads by rows. The index is computed and
# read in one loop, which is vectorised where a row is one element.
_READ = """
    for o in range(start // count, (stop - 1) // count + 1):
        for p in range(max(start - o * count, 0), min(stop - o * count, count)):
            k = o * index_step + p
            {index}
            to = at(y, (o * count + p) * width)
            row = at(x, o * {outer} + index)
            for j in range(width):
                to[j] = row[{column}]
"""
_READ_SINGLE = """
    for r in range(start, stop):
        to = at(y, r * width)
        row = at(x, r // count * {outer})
        for j in range(width):
            k = r * width + j
            {index}
            to[j] = row[index + {column}]
"""
# Threads share changes by bands of columns. One thread goes through all rows of its columns, so every element is changed in
# the order of the rows, on any number of threads. Indices are computed ahead, in a vectorised loop. Where nothing may change
# if one of them is out of bounds, all of them are ``checked`` before.
_CHANGE = """
    for k in range(checked):
        {index}
    stop = select(outside != 0, start, stop)
    bands = (width - 1) // band + 1
    indices = scratch_i64(256)
    for item in range(start, stop):
        o = item // bands
        left = (item - o * bands) * band
        right = min(left + band, width)
        for first in range(0, count, 256):
            last = min(first + 256, count)
            for p in range(first, last):
                k = o * index_step + p
                {index}
                indices[p - first] = index
            {ahead}
            for p in range(first, last):
                to = at(y, o * {outer} + indices[p - first])
                row = at(x, (o * count + p) * width)
                {change}
"""
_CHANGE_SINGLE = """
    for k in range(checked):
        {index}
    stop = select(outside != 0, start, stop)
    bands = (width - 1) // band + 1
    for item in range(start, stop):
        o = item // bands
        left = (item - o * bands) * band
        right = min(left + band, width)
        for p in range(count):
            row = at(x, (o * count + p) * width)
            for j in range(left, right):
                k = (o * count + p) * width + j
                {index}
                to = at(y, o * {outer} + index)
                to[j] = {value}
"""

# An addition loads what it changes, many at a time. Stores alone would wait for one cache line after the other.
_AHEAD = [
    "for p in range(first, last):",
    "    prefetch(y, o * {outer} + indices[p - first] + left)",
]


class AccessForm(NamedTuple):
    """What the text of the machine code depends on.

    Attributes:
        fixed: the only width that it is for, or 0 for any width.
        dtype: of the elements that are copied or added.
        indices: the dtypes of the index arrays.
        strided: whether the array that is read has any strides; others are in row-major order.
    """

    access: AccessMode
    per_element: bool
    fixed: int
    dtype: str
    indices: tuple[str, ...]
    strided: bool = False


def _index(arrays: int, strided: bool) -> list[str]:
    """Statements that set ``index`` from element ``k`` of the index arrays; if out of bounds, to 0, and ``outside``."""
    lines, number = [], ""
    for n in range(arrays):
        lines += [f"i{n} = to_i64(a{n}[k])", f"i{n} = select(i{n} < 0, i{n} + n{n}, i{n})"]
        if strided:
            number += f"{' + ' if n else ''}i{n} * s{n}"
        else:
            number = f"({number}) * n{n} + i{n}" if n else f"i{n}"
    inside = " and ".join(f"0 <= i{n} < n{n}" for n in range(arrays))
    noted = "outside |= select(inside, to_i64(0), to_i64(1))"
    number = number if strided else f"({number}) * width"
    return [*lines, f"inside = {inside}", noted, f"index = select(inside, {number}, to_i64(0))"]


def _filled(template: str, blocks: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of ``template``, with each line that names a block replaced by the block at the same indentation."""
    lines = []
    for line in template.strip("\n").splitlines():
        margin = line[: len(line) - len(line.lstrip())]
        lines += [margin + text for text in blocks[line.strip()]] if line.strip() in blocks else [line]
    return lines


def _change(form: AccessForm) -> tuple[str, list[str]]:
    """The new value of an element, and the statements that change a row."""
    value = f"to_{form.dtype}(to[j] + row[j])" if form.access is AccessMode.ADD else "row[j]"
    if form.access is AccessMode.ADD and form.fixed > 1:
        return value, [f"add_row(to, row, {form.fixed})"]
    return value, ["for j in range(left, right):", f"    to[j] = {value}"]


@cache
def access_code(form: AccessForm) -> CodeObject:
    """``access(y, x, indices..., lengths..., steps..., outer, count, width, column, index_step, band, checked, wrong, number)``
    over some iterations. It stores ``number`` in ``wrong`` if an index is out of bounds.
    """
    read, arrays = form.access is AccessMode.READ, len(form.indices)
    if read:
        template = _READ_SINGLE if form.per_element else _READ
    else:
        template = _CHANGE_SINGLE if form.per_element else _CHANGE
    value, change = _change(form)
    ahead = _AHEAD if form.access is AccessMode.WRITE else []
    blocks = {"{index}": _index(arrays, form.strided), "{change}": change, "{ahead}": ahead}
    outer = "outer" if form.strided else f"({' * '.join(f'n{n}' for n in range(arrays))} * width)"
    names = [f"{letter}{n}" for letter in "ans" for n in range(arrays)]
    lines = [
        f"def access(y, x, {', '.join(names)}, {', '.join(_SIZES)}, wrong, number, start, stop):",
        "    outside = to_i64(0)",
        *([f"    width = {form.fixed}", f"    band = {form.fixed}"] if form.fixed else []),
        "\n".join(_filled(template, blocks)).format(
            outer=outer, value=value, column="j * column" if form.strided else "j"
        ),
        "    if outside != 0:",
        "        wrong[0] = number",
    ]
    params = [f"{form.dtype}*", f"{form.dtype}*", *[f"{d}*" for d in form.indices]]
    params += [*["i64"] * (2 * arrays + len(_SIZES)), "i64*", "i64"]
    return compile_entry("\n".join(lines), "access", {}, params=params, key="", wait=False)


_SIZES = ("outer", "count", "width", "column", "index_step", "band", "checked")


def access_sizes(space: IndexSpace, width: int, band: int, checked: int = 0, strides: ReadStrides | None = None) -> list[int]:
    """The numbers among the arguments of the machine code, for rows of ``width`` elements.

    ``strides``: those of an array that is not in row-major order.
    """
    steps, outer, column = strides or ((0,) * len(space.lengths), 0, 1)
    index_step = space.count if space.per_outer else 0
    return [*space.lengths, *steps, outer, space.count, width, column, index_step, band, checked]


class ReadStrides(NamedTuple):
    """Elements from one index of each array to the next, from one part to the next, and from one column to the next."""

    steps: tuple[int, ...]
    outer: int
    column: int


def change_band(space: IndexSpace, width: int) -> int:
    """The columns of a band, of rows of ``width`` elements."""
    bands = max(1, min(_MAX_BANDS // space.outer, width // _MIN_BAND))
    return -(-width // bands // 16) * 16 if bands > 1 else width


def fixed_width(space: IndexSpace, width: int) -> int:
    """The width for which machine code of its own pays, or 0."""
    return width if width <= _MAX_FIXED and not space.per_element else 0


def iterations_of(access: AccessMode, space: IndexSpace, width: int, band: int) -> tuple[int, int]:
    """The iterations of the machine code, and the least number of them in a block."""
    if access is AccessMode.READ:
        return space.outer * space.count, _MIN_ELEMENTS // width + 1
    return space.outer * -(-width // band), _MIN_ELEMENTS // (space.count * band) + 1


# --- running it ----------------------------------------------------------------------------------------------------


def move_elements(access: AccessMode, space: IndexSpace, y: Array, x: Array, indices: Sequence[Array]) -> bool:
    """Read rows of ``x`` at ``indices`` into ``y``, or change the rows of ``y`` at ``indices`` by those of ``x``.

    ``y`` and ``x`` are C-contiguous, aligned, of one dtype, and not empty.

    Returns:
        Whether all indices are within bounds; if not, ``y`` is undefined.
    """
    dtype, width = _element(access, space, y, x)
    band = width if access is AccessMode.READ else change_band(space, width)
    iterations, min_block = iterations_of(access, space, width, band)
    if len(indices) > 1:
        indices = np.broadcast_arrays(*indices)
    arrays = [np.ascontiguousarray(i, _INDEX_DTYPES.get(i.dtype, np.int64)) for i in map(np.asarray, indices)]
    dtypes = tuple([dtype_name(a.dtype) for a in arrays])
    code = access_code(AccessForm(access, space.per_element, fixed_width(space, width), dtype, dtypes))
    wrong = np.zeros(1, np.int64)
    sizes = access_sizes(space, width, band)
    run_parallel(code, [y, x, *arrays, *sizes, wrong, 1], iterations, min_block=min_block)
    return not wrong[0]


def _element(access: AccessMode, space: IndexSpace, y: Array, x: Array) -> tuple[str, int]:
    """The dtype of what is copied or added at once, and how many of them a row has."""
    size = y.dtype.itemsize
    if access is AccessMode.ADD:
        return dtype_name(y.dtype), space.width
    if space.per_element:
        return COPIED[size], space.width
    row = size * space.width
    bits = row | address_of(x) | address_of(y)
    size = min(bits & -bits, 8)  # the largest power of two that divides all three
    return COPIED[size], row // size
