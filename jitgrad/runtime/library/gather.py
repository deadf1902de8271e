"""Reads elements and rows at indices with machine code; NumPy reads one at a time, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitgrad.core.aval import Array, Aval, Shape
from jitgrad.core.op import OpDef
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.ops.indexing import GATHER, INDEX_GET, TAKE
from jitgrad.runtime.library.indexed_access import (
    AccessMode,
    IndexSpace,
    along,
    at_axes,
    for_each,
    handles,
    move_elements,
    pays,
)

# ns that NumPy takes for a row, slightly less than measured
_TAKE, _GATHER, _INDEX_GET = 1, 8, 4


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
    op: OpDef, operands: Sequence[Aval], attrs: Mapping[str, Any], space: IndexSpace | None, row: int
) -> Callable[..., Array] | None:
    if space is None or not handles(operands[0], operands[1:]) or not pays(space, row):
        return None
    result = op.abstract(operands, attrs)
    assert isinstance(result, Aval)
    return _reader(op, result.shape, space)


def find_take(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x, index = operands
    return _find(TAKE, operands, attrs, along(x.shape, attrs["axis"], index), _TAKE)


def find_gather(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x, index = operands
    return _find(GATHER, operands, attrs, for_each(x.shape, attrs["axis"], index), _GATHER)


def find_index_get(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x, *indices = operands
    return _find(INDEX_GET, operands, attrs, at_axes(x.shape, attrs["axes"], indices), _INDEX_GET)
