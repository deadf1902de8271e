"""Diagonals of matrices, as views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitgrad.core.aval import normalize_axes, normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import EXPAND_DIMS, PERMUTE_DIMS, RESHAPE, SLICE, SQUEEZE, moveaxis, place, reshape, slice
from jitgrad.ops.operand import Operand
from jitgrad.ops.view_lists import lists_views


@takes_dim(dim1="axis1", dim2="axis2")
def diagonal(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements of ``x`` whose index along ``axis2`` is that along ``axis1`` plus ``offset``, on a new last axis.

    Flattening the two axes puts a diagonal at every (columns + 1)-th position: one strided slice. It is a view of ``x``,
    except where ``x`` has more than two axes and is not C-contiguous.
    """
    in_order = type(x) is Tensor and type(x._data) is np.ndarray and x._data.flags.c_contiguous
    if in_order and x._data.ndim == 2 and (axis1, axis2) == (0, 1) and type(offset) is int:  # type: ignore[union-attr]
        return _of_matrix_in_order(x, offset)[0]
    aval = aval_of(SLICE, x)
    if aval.ndim < 2:
        raise ShapeError(f"diagonal needs at least two axes, got {aval}")
    pair = (normalize_axis("diagonal", axis1, aval.ndim), normalize_axis("diagonal", axis2, aval.ndim))
    normalize_axes("diagonal", pair, aval.ndim)  # refuses the same axis twice
    moved = moveaxis(x, pair, (-2, -1)) if pair != (aval.ndim - 2, aval.ndim - 1) else x
    shape = aval_of(SLICE, moved).shape
    length = _length(shape[-2:], offset)
    if len(shape) == 2 and isinstance(moved, Tensor) and (found := _diagonal_of_view(moved, offset, length)) is not None:
        return found
    return _by_slice(moved, offset)


@op_sequence
def diagonal_matrices(x: Tensor, offset: int = 0) -> Tensor:
    """Matrices [..., n, n] with the last axis of ``x`` on the diagonal ``offset`` and 0 elsewhere.

    In a flattened matrix a diagonal is every (n + 1)-th element, so this is one write with a step.
    """
    (*outer, length), above, below = x.shape, max(offset, 0), max(-offset, 0)
    n = length + above + below
    index = (*[(0, 1, m) for m in outer], (above + below * n if length else 0, n + 1, length))
    return reshape(place(x, (*outer, n * n), index), (*outer, n, n))


@lists_views
def _of_matrix_in_order(x: Operand, offset: int) -> tuple[Tensor, ...]:
    return (_by_slice(x, offset),)


def _by_slice(x: Operand, offset: int) -> Tensor:
    """The diagonals of the last two axes of ``x``."""
    shape = aval_of(SLICE, x).shape
    rows, columns = shape[-2:]
    length = _length((rows, columns), offset)
    start = offset if offset >= 0 else -offset * columns
    outer = tuple((0, 1, n) for n in shape[:-2])
    index = (*outer, (start if length else 0, columns + 1, length))
    return slice(reshape(x, (*shape[:-2], rows * columns)), index)


def _length(shape: Sequence[int], offset: int) -> int:
    rows, columns = shape
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def _diagonal_of_view(x: Tensor, offset: int, length: int) -> Tensor | None:
    """The diagonal of a matrix that is a view with gaps, or transposed: a slice of the tensor that owns the memory.

    None where flattening ``x`` copies nothing, or where the layout is unknown.
    """
    lineage = x._view
    owner = None if lineage is None else lineage.root()
    if lineage is None or owner is None or owner._storage is not x._storage or owner._requires_grad != x._requires_grad:
        return None
    memory = shown = np.empty(owner.shape, np.uint8)
    for op, attrs in lineage.steps:
        if op not in _STRIDED:
            return None
        shown = op.eager(shown, **attrs)
    if shown.flags.c_contiguous or not np.may_share_memory(memory, shown):
        return None
    row, column = shown.strides
    start = shown.ctypes.data - memory.ctypes.data + (offset * column if offset >= 0 else -offset * row)
    step = row + column if length > 1 else 1
    return slice(reshape(owner, (owner.size,)), ((start if length else 0, step, length),)) if step else None


_STRIDED = (SLICE, PERMUTE_DIMS, RESHAPE, EXPAND_DIMS, SQUEEZE)  # views whose places in memory NumPy knows
