"""Elements and rows written or added at given places, as machine code: NumPy goes through them one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, dtype_name
from jitgrad.core.errors import IndexingError
from jitgrad.core.op import OpDef
from jitgrad.eager.buffer_pool import empty
from jitgrad.ops.indexing import INDEX_ADD, INDEX_PUT, INDEX_PUT_ADD, SCATTER_ADD
from jitgrad.runtime.library.indexed_access import (
    Array,
    IndexSpace,
    along,
    at_axes,
    for_each,
    handles,
    pays,
    run,
    within,
)

# ns that NumPy takes to add an element or to write a row, a little less than measured; more dimensions take it longer
_ADD, _WRITE, _WRITE_ROW = 6, 2, 8
_ADDED = frozenset({"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})


def _changer(op: OpDef, move: str, walk: IndexSpace, values_at: int) -> Callable[..., Array]:
    """What does ``move`` for ``op``, whose values to move are its operand number ``values_at``; others are indices.

    With ``whole``, ``into`` stays as it is if an index is out of bounds.
    """

    def change(x: Array, *rest: Array, into: Array | None = None, whole: bool = False, **attrs: Any) -> Array:
        out = into
        if out is None:
            out = empty(x.shape, x.dtype)
            np.copyto(out, x)
        values = np.ascontiguousarray(rest[values_at - 1], x.dtype)
        indices = [a for k, a in enumerate(rest) if k != values_at - 1]
        if (whole and not within(walk, indices)) or not run(move, walk, out, values, indices):
            op.eager(x, *rest, **attrs)  # says which index it is
            raise IndexingError(f"{op}: an index is out of bounds")
        return out

    return change


def _found(
    op: OpDef, move: str, operands: Sequence[Aval], walk: IndexSpace | None, values_at: int
) -> Callable[..., Array] | None:
    x, values = operands[0], operands[values_at]
    indices = [a for k, a in enumerate(operands) if k not in (0, values_at)]
    fits = values.dtype == x.dtype and (move == "write" or dtype_name(x.dtype) in _ADDED)
    if walk is None or not fits or not handles(x, indices):
        return None
    if move == "add":
        faster = pays(walk, 0, element=_ADD)
    else:
        faster = pays(walk, _WRITE if x.ndim == 1 else _WRITE_ROW)
    return _changer(op, move, walk, values_at) if faster else None


def find_index_add(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x, index, _ = operands
    return _found(INDEX_ADD, "add", operands, along(x.shape, attrs["axis"], index), 2)


def find_scatter_add(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x, index, _ = operands
    return _found(SCATTER_ADD, "add", operands, for_each(x.shape, attrs["axis"], index), 2)


def find_index_put(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x, _, *indices = operands
    return _found(INDEX_PUT, "write", operands, at_axes(x.shape, attrs["axes"], indices), 1)


def find_index_put_add(operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Array] | None:
    """For `jitgrad.runtime.library.registry`."""
    x, _, *indices = operands
    return _found(INDEX_PUT_ADD, "add", operands, at_axes(x.shape, attrs["axes"], indices), 1)
