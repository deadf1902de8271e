"""Writes or adds elements and rows at indices with machine code; NumPy takes one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, dtype_name
from jitgrad.core.errors import IndexingError
from jitgrad.core.op import OpDef
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.ops.indexing import INDEX_ADD, INDEX_PUT, INDEX_PUT_ADD, SCATTER_ADD
from jitgrad.runtime.library.indexed_access import (
    ADDED,
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

# ns that NumPy takes to add an element or to write a row, slightly less than measured; more dimensions take longer
_ADD, _WRITE, _WRITE_ROW = 6, 2, 8


def _changer(op: OpDef, access: AccessMode, space: IndexSpace, values_at: int) -> Callable[..., Array]:
    """A function that computes ``op``. Operand ``values_at`` holds the values, the others after the first the indices."""

    def change(x: Array, *rest: Array, **attrs: Any) -> Array:
        out = empty_buffer(x.shape, x.dtype)
        np.copyto(out, x)
        values = np.ascontiguousarray(rest[values_at - 1], x.dtype)
        indices = [a for k, a in enumerate(rest) if k != values_at - 1]
        if not move_elements(access, space, out, values, indices):
            op.eager(x, *rest, **attrs)  # names the index
            raise IndexingError(f"{op}: an index is out of bounds")
        return out

    return change


def _find(
    op: OpDef, access: AccessMode, space_of: SpaceOf, values_at: int, operands: Sequence[Aval], attrs: Mapping[str, Any]
) -> Callable[..., Array] | None:
    x, values = operands[0], operands[values_at]
    indices = [a for k, a in enumerate(operands) if k not in (0, values_at)]
    space = space_of(x.shape, attrs, indices)
    fits = values.dtype == x.dtype and (access is AccessMode.WRITE or dtype_name(x.dtype) in ADDED)
    if space is None or not fits or not handles(x, indices):
        return None
    if access is AccessMode.ADD:
        faster = pays(space, 0, element=_ADD)
    else:
        faster = pays(space, _WRITE if x.ndim == 1 else _WRITE_ROW)
    return _changer(op, access, space, values_at) if faster else None


# for `jitgrad.runtime.library.registry`
find_index_add: Callable[..., Callable[..., Array] | None] = partial(_find, INDEX_ADD, AccessMode.ADD, along, 2)
find_scatter_add: Callable[..., Callable[..., Array] | None] = partial(_find, SCATTER_ADD, AccessMode.ADD, for_each, 2)
find_index_put: Callable[..., Callable[..., Array] | None] = partial(_find, INDEX_PUT, AccessMode.WRITE, at_axes, 1)
find_index_put_add: Callable[..., Callable[..., Array] | None] = partial(_find, INDEX_PUT_ADD, AccessMode.ADD, at_axes, 1)
