"""Reads elements and rows at indices with machine code; NumPy reads one at a time, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jitgrad.core.aval import Array, Aval, Shape
from jitgrad.core.op import OpDef
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.ops.indexing import GATHER, INDEX_GET, TAKE
from jitgrad.runtime.library.indexed_access import (
    AccessMode,
    IndexSpace,
    SpaceOf,
    along,
    at_axes,
    for_each,
    handles,
    move_elements,
    pays,
)


def _reader(op: OpDef, shape: Shape, space: IndexSpace) -> Callable[..., Array]:
    """A function that reads ``space`` into a result of the given shape."""

    def read(x: Array, *indices: Array, **attrs: Any) -> Array:
        if x.flags.c_contiguous and x.flags.aligned:
            out = empty_buffer(shape, x.dtype)
            if move_elements(AccessMode.READ, space, out, x, indices):
                return out
        result: Array = op.eager(x, *indices, **attrs)  # reports an index that is out of bounds
        return result

    return read


def _find(
    op: OpDef, space_of: SpaceOf, row: int, operands: Sequence[Aval], attrs: Mapping[str, Any]
) -> Callable[..., Array] | None:
    x, *indices = operands
    space = space_of(x.shape, attrs, indices)
    if space is None or not handles(x, indices) or not pays(space, row):
        return None
    result = op.abstract(operands, attrs)
    assert isinstance(result, Aval)
    return _reader(op, result.shape, space)


# for `jitgrad.runtime.library.registry`, with the ns that NumPy takes for a row, slightly less than measured
find_take: Callable[..., Callable[..., Array] | None] = partial(_find, TAKE, along, 1)
find_gather: Callable[..., Callable[..., Array] | None] = partial(_find, GATHER, for_each, 8)
find_index_get: Callable[..., Callable[..., Array] | None] = partial(_find, INDEX_GET, at_axes, 4)
