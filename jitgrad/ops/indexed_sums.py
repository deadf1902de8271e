"""Sums at indices: `scatter_add` and `index_add`, and what they add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import DtypeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.ops.arithmetic import astype, multiply
from jitgrad.ops.indexing import GATHER, INDEX_ADD, SCATTER_ADD, TAKE, as_indices
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import broadcast_to, cut
from jitgrad.ops.operand import Operand, apply


@takes_dim()
@op_sequence
def scatter_add(x: Operand, axis: int, index: Operand | Sequence[Any], src: Operand) -> Tensor:
    """``x`` with ``src`` added where :func:`gather` with the same ``axis`` and ``index`` would read; a new tensor.

    ``src`` may be longer than ``index`` (then its start is used) or a number; values for one position
    add up.
    """
    k = normalize_axis("scatter_add", axis, aval_of(GATHER, x).ndim)
    return apply(SCATTER_ADD, x, *added_elements(x, index, src), axis=k)


def added_elements(x: Operand, index: Operand | Sequence[Any], src: Operand) -> tuple[Any, Operand]:
    """The positions and the values that `scatter_add` adds to ``x``."""
    positions = as_indices(index)
    shape, values = aval_of(GATHER, positions).shape, _in_dtype_of("scatter_add", x, src)
    given = aval_of(GATHER, values).shape
    if not given:
        values = broadcast_to(values, shape)
    elif given != shape and len(given) == len(shape) and all(n >= m for n, m in zip(given, shape, strict=True)):
        for k, n in enumerate(shape):
            values = cut(values, k, 0, n)
    return positions, values


@takes_dim(source="src")
@op_sequence
def index_add(x: Operand, axis: int, index: Operand | Sequence[int], src: Operand, *, alpha: Any = 1) -> Tensor:
    """``x`` with slice i of ``src``, times ``alpha``, along ``axis`` added to slice ``index[i]``; a new tensor.

    Slices for one position add up. Raises IndexError if an index is out of bounds.
    """
    k = normalize_axis("index_add", axis, aval_of(INDEX_ADD, x).ndim)
    return apply(INDEX_ADD, x, *added_slices(x, index, src, alpha), axis=k)


def added_slices(x: Operand, index: Operand | Sequence[int], src: Operand, alpha: Any) -> tuple[Any, Operand]:
    """The positions and the slices that `index_add` adds to ``x``."""
    src = src if isinstance(alpha, (int, float)) and alpha == 1 else multiply(src, alpha)
    return as_indices(index), _in_dtype_of("index_add", x, src)


def _in_dtype_of(what: str, x: Operand, src: Operand) -> Operand:
    """``src`` in ``x``'s dtype. Raises DtypeError unless NumPy's same-kind rule allows the cast."""
    target, added = aval_of(TAKE, x).dtype, aval_of(TAKE, src)
    if added.dtype == target:
        return src
    if not added.weak and not np.can_cast(added.dtype, target, "same_kind"):
        raise DtypeError(f"{what}: cannot add {added} to elements of {target}; .astype() one of them")
    return astype(src, target)
