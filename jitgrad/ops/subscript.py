"""Parses ``index`` of ``x[index]`` into ops that read: slices, new axes, integer arrays."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.errors import IndexingError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.array_keys import taken_at
from jitgrad.ops.basic_index import ViewCall, basic_view, index_of, plain_entries
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexing import INDEX_GET, TAKE, as_constant
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import EXPAND_DIMS, SLICE, SQUEEZE, SliceIndex
from jitgrad.ops.operand import apply, contents_of
from jitgrad.ops.placement import beside_indexed
from jitgrad.ops.positional_axes import POSITIONAL_AXES
from jitgrad.ops.positions import true_positions


@dataclass(frozen=True, slots=True)
class Subscript:
    """An index as steps that are ops."""

    slices: SliceIndex  # for every axis
    dropped: tuple[int, ...]  # axes indexed by an int (never together with integer arrays)
    added: tuple[int, ...]  # positions of new axes, after slicing and dropping
    axes: tuple[int, ...]  # the axes, after adding, indexed by integer arrays
    indices: tuple[Any, ...]  # those arrays: tensors, arrays or ints


@dataclass(slots=True)
class _Parts:
    """A Subscript under construction."""

    slices: list[tuple[int, int, int]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    indices: list[Any] = field(default_factory=list)
    position: int = 0

    def keep(self, part: tuple[int, int, int]) -> None:
        self.slices.append(part)
        self.position += 1

    def add_axis(self) -> None:
        self.added.append(self.position)
        self.position += 1

    def index(self, array: Any) -> None:
        self.axes.append(self.position)
        self.indices.append(array)


def is_array(entry: Any) -> bool:
    """Whether an entry of an index is an array: a tensor, an ndarray with axes, a list, or a range."""
    return isinstance(entry, (Tensor, list, range)) or (isinstance(entry, np.ndarray) and entry.ndim > 0)


def is_mask(entry: Any) -> bool:
    """Whether an entry of an index selects by truth values."""
    return isinstance(entry, (bool, np.bool_)) or getattr(entry, "dtype", None) == np.bool_


def _as_array(entry: list[Any] | range) -> Any:
    if builtins.any(isinstance(x, Tensor) for x in entry):
        return stack([asarray(x) for x in entry])
    try:
        return np.asarray(entry) if entry else np.zeros(0, np.int64)
    except ValueError:
        raise IndexingError(f"a list used as an index must be rectangular, got {shown(entry)}") from None


def entries_of(index: Any) -> list[Any]:
    """The entries of ``index``, lists and ranges made arrays."""
    given = index if isinstance(index, tuple) else (index,)
    return [_as_array(entry) if isinstance(entry, (list, range)) else entry for entry in given]


def consumed(entry: Any) -> int:
    """How many axes an entry indexes."""
    if entry is None or entry is Ellipsis:
        return 0
    return len(np.shape(entry)) if isinstance(entry, (bool, np.bool_)) else entry.ndim if is_mask(entry) else 1


def expanded(shape: Shape, entries: list[Any]) -> Iterator[Any]:
    """The entries with the Ellipsis, which may be left out at the end, written as full slices."""
    dots = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexingError("an index can have only one ellipsis ('...')")
    missing = len(shape) - builtins.sum(map(consumed, entries))
    if missing < 0:
        raise IndexingError(f"too many indices: {len(shape) - missing} for a tensor of {len(shape)} dimensions")
    at = dots[0] if dots else len(entries)
    yield from entries[:at]
    yield from [np.s_[:]] * missing
    yield from entries[at + 1 :]


def parse(shape: Shape, index: Any) -> Subscript:
    """The steps of ``index`` for a tensor of ``shape``.

    Raises:
        IndexingError: out of bounds, too many indices, a mask of another shape, or something that is no index.
        TracedValueError: a traced mask that selects a number of elements that is not known.
    """
    entries = entries_of(index)
    advanced = builtins.any(is_array(e) or is_mask(e) for e in entries)
    parts, axis = _Parts(), 0
    for entry in expanded(shape, entries):
        n = shape[axis] if axis < len(shape) else 0
        if entry is None:
            parts.add_axis()
            continue
        if isinstance(entry, builtins.slice):
            for bound in (entry.start, entry.stop, entry.step):
                _rely_on(bound)
            start, stop, step = entry.indices(n)
            parts.keep((start, step, len(range(start, stop, step))))
        elif is_mask(entry):
            _mask(parts, shape, axis, entry)
        elif is_array(entry):
            _array(parts, n, entry)
        else:
            _integer(parts, axis, n, entry, advanced)
        axis += consumed(entry)
    return Subscript(*(tuple(v) for v in (parts.slices, parts.dropped, parts.added, parts.axes, parts.indices)))


def _array(parts: _Parts, n: int, entry: Any) -> None:
    if entry.dtype.kind not in "iu":
        raise IndexingError(f"arrays used as indices must be of integers or bools, got {entry.dtype}")
    parts.index(entry if isinstance(entry, Tensor) else as_constant(entry))
    parts.keep((0, 1, n))


def _mask(parts: _Parts, shape: Shape, axis: int, entry: Any) -> None:
    mask = np.shape(entry)
    check_mask(shape, axis, mask)
    if not mask:
        chosen = bool(entry) if isinstance(entry, Tensor) else contents_of(entry, "indexing with a mask").item()
        parts.index(as_constant(np.zeros(int(chosen), np.int64)))
        parts.add_axis()
        return
    for n, positions in zip(mask, true_positions(entry, "indexing with a mask"), strict=True):
        parts.index(positions)
        parts.keep((0, 1, n))


def check_mask(shape: Shape, axis: int, mask: Shape) -> None:
    """Raise IndexingError unless a mask of this shape fits ``shape`` at ``axis``."""
    if shape[axis : axis + len(mask)] != mask:
        raise IndexingError(f"a mask of shape {mask} at axis {axis} does not fit a tensor of shape {shape}")


def _rely_on(entry: Any) -> None:
    """An ndarray without axes counts as the number that it holds now."""
    if isinstance(entry, np.ndarray):
        contents_of(entry, "indexing")


def _integer(parts: _Parts, axis: int, n: int, entry: Any, advanced: bool) -> None:
    _rely_on(entry)
    try:
        i = operator.index(entry)
    except TypeError:
        raise IndexingError(
            f"an index is made of ints, slices, None, '...' and arrays of integers or bools, not {type(entry).__name__}"
        ) from None
    if not -n <= i < n:
        raise IndexingError(f"index {i} is out of bounds for axis {axis} of length {n}")
    if advanced:  # beside integer arrays an int counts as one, which decides where their axes go
        parts.index(i % n)
        parts.keep((0, 1, n))
    else:
        parts.slices.append((i % n, 1, 1))
        parts.dropped.append(axis)


def is_whole(slices: SliceIndex, shape: Shape) -> bool:
    """Whether the slices select everything in its order."""
    return builtins.all(part == (0, 1, n) for part, n in zip(slices, shape, strict=True))


def basic_part(x: Tensor, s: Subscript) -> Tensor:
    """``x`` sliced, and with the axes dropped and added that ``s`` says; a view."""
    for op, attrs in _view_steps(x.shape, s):
        x = apply(op, x, **attrs)
    return x


def _view_steps(shape: Shape, s: Subscript) -> tuple[ViewCall, ...]:
    more = s.indices or s.dropped or s.added
    steps: list[ViewCall] = [] if more and is_whole(s.slices, shape) else [(SLICE, {"index": s.slices})]
    steps += [(SQUEEZE, {"axis": s.dropped})] if s.dropped else []
    return (*steps, (EXPAND_DIMS, {"axis": s.added})) if s.added else tuple(steps)


def _basic_steps(shape: Shape, index: Any) -> tuple[ViewCall, ...]:
    """The view ops of an index without arrays."""
    return _view_steps(shape, parse(shape, index))


@lru_cache(maxsize=4096)
def _known_steps(shape: Shape, entries: Any) -> tuple[ViewCall, ...]:
    return _basic_steps(shape, index_of(entries))


def _rows(index: Any) -> Any:
    """An index that is one array of integers, or a list of ints, as TAKE takes it; None for any other."""
    if type(index) is Tensor:
        return index if index.dtype.kind in "iu" else None
    if type(index) is list and index and builtins.all(type(n) is int for n in index):
        return as_constant(np.asarray(index))
    return None


def get_item(x: Tensor, index: Any) -> Tensor:
    """``x[index]`` as in NumPy: a view for ints, slices, None and '...', a copy for arrays."""
    if POSITIONAL_AXES.results and type(index) is int:
        POSITIONAL_AXES.check(x, f"[{index}]")
    if (view := basic_view(x, index, _basic_steps)) is not None:
        return view
    if (entries := plain_entries(index)) is not None:  # in a trace
        for op, attrs in _known_steps(x.shape, entries):
            x = apply(op, x, **attrs)
        return x
    if (taken := taken_at(x, index)) is not None:
        return taken
    return _item(x, index)


@beside_indexed
def _item(x: Tensor, index: Any) -> Tensor:
    """``x[index]`` by ops."""
    if x.ndim and (rows := _rows(index)) is not None:
        return apply(TAKE, x, rows, axis=0)
    s = parse(x.shape, index)
    part = basic_part(x, s)
    if not s.indices:
        return part
    if len(s.indices) == 1:
        return apply(TAKE, part, s.indices[0], axis=s.axes[0])
    return apply(INDEX_GET, part, *s.indices, axes=s.axes)
