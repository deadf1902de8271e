"""Tensors of all combinations, of positions in triangles and grids, and with blocks or diagonals placed in zeros."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError, shown
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.eager.compositions import composed
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.ops.creation import COPY, asarray
from jitgrad.ops.diagonals import diagonal_matrices
from jitgrad.ops.indexing import as_constant, take
from jitgrad.ops.joining import concat, pad, stack
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import broadcast_to, expand_dims, moveaxis, reshape
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import placing
from jitgrad.ops.rounding import floor_divide, remainder


@op_sequence
def meshgrid(*xs: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of the grid over the 1-D ``xs``, which may be in a list; "xy" swaps the first two axes, as in NumPy."""
    if len(xs) == 1 and isinstance(xs[0], (list, tuple)):
        (xs,) = xs
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {shown(indexing)}")
    avals = [aval_of(COPY, x) for x in xs]
    if any(a.ndim > 1 for a in avals):
        raise ShapeError(f"meshgrid needs 1-D arrays, got {', '.join(map(str, avals))}")
    axes = list(range(len(xs)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    shape = [0] * len(xs)
    for axis, aval in zip(axes, avals, strict=True):
        shape[axis] = aval.size
    columns = (reshape(x, (a.size,)) for x, a in zip(xs, avals, strict=True))
    return tuple(
        broadcast_to(expand_dims(c, [k for k in range(len(xs)) if k != axis]), shape)
        for c, axis in zip(columns, axes, strict=True)
    )


@op_sequence
def cartesian_prod(*xs: Operand) -> Tensor:
    """All tuples of one element of each vector, [count, vectors]; of one vector itself."""
    vectors = [asarray(x) for x in xs]
    if len(vectors) == 1:
        return vectors[0]
    return stack([reshape(x, (-1,)) for x in meshgrid(*vectors, indexing="ij")], 1)


def combinations(x: Operand, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of the vector ``x``, in order: [count, r]."""
    given = asarray(x)
    if given.ndim != 1 or r < 0:
        raise ArgumentError(f"combinations: expected a vector and r of at least 0, got {given.aval} and r={r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(given.shape[0]), r)), np.int64).reshape(-1, r)
    return take(given, as_constant(places), 0)


@placing
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = np.int64, device: Any = None) -> Tensor:
    """The positions [2, count] of the lower triangle of a matrix of ``row`` rows, row by row."""
    positions = np.stack(np.tril_indices(row, offset, col))
    return asarray(as_constant(positions.astype(check_supported("tril_indices", dtype))), device=device)


@placing
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = np.int64, device: Any = None) -> Tensor:
    """The positions [2, count] of the upper triangle of a matrix of ``row`` rows, row by row."""
    positions = np.stack(np.triu_indices(row, offset, col))
    return asarray(as_constant(positions.astype(check_supported("triu_indices", dtype))), device=device)


@composed
def block_diag(*xs: Operand) -> Tensor:
    """A matrix with the given ones along its diagonal, else 0; a vector counts as a row, a number as [1, 1]."""
    blocks = [asarray(x) for x in xs]
    if any(b.ndim > 2 for b in blocks):
        raise ShapeError(f"block_diag: expected matrices, got {', '.join(str(b.aval) for b in blocks)}")
    matrices = [reshape(b, (1,) * (2 - b.ndim) + b.shape) for b in blocks]
    width, left, rows = sum(m.shape[1] for m in matrices), 0, []
    for m in matrices:
        rows.append(pad(m, ((0, 0), (left, width - left - m.shape[1]))))
        left += m.shape[1]
    return concat(rows, 0) if rows else asarray(np.zeros((1, 0), np.float32))


@takes_dim(dim1="axis1", dim2="axis2")
@composed
def diag_embed(x: Operand, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Matrices, over two new axes, with the last axis of ``x`` on the diagonal ``offset`` and 0 elsewhere."""
    given = asarray(x)
    if not given.ndim:
        raise ShapeError(f"diag_embed: expected at least one axis, got {given.aval}")
    first, second = (normalize_axis("diag_embed", k, given.ndim + 1) for k in (axis1, axis2))
    return moveaxis(diagonal_matrices(given, offset), (-2, -1), (first, second))


def unravel_index(indices: Operand, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The places along each axis of a tensor of ``shape``, of places ``indices`` of its elements in a row."""
    places = asarray(indices)
    if places.dtype.kind not in "iu":
        raise DtypeError(f"unravel_index: expected integers, got {places.aval}")
    lengths = (shape,) if isinstance(shape, int) else tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in lengths):
        raise ArgumentError(f"unravel_index: no length of the shape {lengths} may be negative")
    steps = [math.prod(lengths[k + 1 :]) for k in range(len(lengths))]
    return tuple(remainder(floor_divide(places, step), n) for step, n in zip(steps, lengths, strict=True))
