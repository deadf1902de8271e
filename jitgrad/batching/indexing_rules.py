"""Reads and writes at positions for all examples: mapped positions are joined by the number of the example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.batching.application import Application
from jitgrad.core.aval import broadcast_shapes
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import iota
from jitgrad.ops.indexing import (
    GATHER,
    INDEX_ADD,
    INDEX_GET,
    INDEX_PUT,
    INDEX_PUT_ADD,
    SCATTER_ADD,
    TAKE,
)
from jitgrad.ops.movement import broadcast_to, moveaxis, permute_dims, reshape
from jitgrad.ops.placement import beside
from jitgrad.ops.scattering import SCATTER_EXTREME, SCATTER_PRODUCT
from jitgrad.ops.sorting import SEARCHSORTED


def _along_axis(a: Application) -> Any:
    """Every operand has the axes of the first one."""
    whole = map(a.whole, range(len(a.operands)))
    return apply_op(a.op, *whole, **{**a.attrs, "axis": a.attrs["axis"] + 1})


def _take(a: Application) -> Any:
    (x, indices), axis = a.operands, a.attrs["axis"]
    if not a.mapped[1]:
        return apply_op(TAKE, x, indices, axis=axis + 1)
    if not a.mapped[0]:
        return moveaxis(apply_op(TAKE, x, indices, axis=axis), axis, 0)
    return _read(x, _with_numbers(a, 1), (axis,), a.aval(0).ndim, a.aval(1).ndim)


def _index_add(a: Application) -> Any:
    if not a.mapped[1]:
        x, _, src = map(a.whole, range(3))
        return apply_op(INDEX_ADD, x, a.operands[1], src, axis=a.attrs["axis"] + 1)
    x, src, axis = a.whole(0), a.whole(2), a.attrs["axis"] + 1
    shape = [a.size if k == 0 else n if k == axis else 1 for k, n in enumerate(src.shape)]
    return apply_op(SCATTER_ADD, x, broadcast_to(reshape(a.operands[1], shape), src.shape), src, axis=axis)


def _with_numbers(a: Application, first: int) -> list[Any]:
    """The number of the example, and the indices from operand ``first`` on, which broadcast with it."""
    ndim = len(broadcast_shapes("indexing", a.avals[first:]))
    with beside(*a.operands):
        numbers = iota((a.size, *[1] * ndim), 0, np.dtype(np.int64))
    return [numbers, *[a.aligned(k, ndim) for k in range(first, len(a.operands))]]


def _is_run(axes: Sequence[int]) -> bool:
    """Whether ``axes`` are neighbours, which NumPy replaces by the axes of the indices where they are."""
    return axes[-1] - axes[0] == len(axes) - 1


def _positions_in_place(axes: Sequence[int], ndim: int, count: int) -> list[int]:
    """The order of axes that brings [examples, indices, rest] to how one example has them.

    ``ndim`` is that of what is indexed at ``axes``, and ``count`` the number of axes of the indices.
    """
    at = axes[0] if _is_run(axes) else 0
    rest = ndim - len(axes)
    indices = range(1, 1 + count)
    others = range(1 + count, 1 + count + rest)
    return [0, *others[:at], *indices, *others[at:]]


def _read(x: Tensor, joined: Sequence[Any], axes: Sequence[int], ndim: int, count: int) -> Tensor:
    """``x`` [examples, ...] at the indices ``joined``, of which the first is the number of the example."""
    out = apply_op(INDEX_GET, x, *joined, axes=(0, *[k + 1 for k in axes]))
    return permute_dims(out, _positions_in_place(axes, ndim, count))


def _index_get(a: Application) -> Any:
    x, *indices = a.operands
    axes = a.attrs["axes"]
    count = len(broadcast_shapes("indexing", a.avals[1:]))
    if not any(a.mapped[1:]):
        out = apply_op(INDEX_GET, x, *indices, axes=tuple([k + 1 for k in axes]))
        return out if _is_run(axes) else moveaxis(out, count, 0)
    if a.mapped[0]:
        return _read(x, _with_numbers(a, 1), axes, a.aval(0).ndim, count)
    out = apply_op(INDEX_GET, x, *[a.aligned(k + 1, count) for k in range(len(indices))], axes=axes)
    return moveaxis(out, axes[0], 0) if _is_run(axes) else out


def _index_put(a: Application) -> Any:
    axes, ndim = a.attrs["axes"], a.aval(0).ndim
    count = len(broadcast_shapes("indexing", a.avals[2:]))
    x, v = a.whole(0), a.whole(1)
    if not any(a.mapped[2:]):
        v = v if _is_run(axes) else moveaxis(v, 0, count)
        return apply_op(a.op, x, v, *a.operands[2:], axes=tuple([k + 1 for k in axes]))
    order = _positions_in_place(axes, ndim, count)
    v = permute_dims(v, tuple(map(int, np.argsort(order))))
    return apply_op(a.op, x, v, *_with_numbers(a, 2), axes=(0, *[k + 1 for k in axes]))


def _searchsorted(a: Application) -> Any:
    """One ordered line serves all examples; of several, each must be searched by itself."""
    return NotImplemented if a.mapped[0] else apply_op(SEARCHSORTED, *a.operands, **a.attrs)


INDEXING_RULES: Mapping[OpDef, Callable[[Application], Any]] = {
    TAKE: _take,
    INDEX_ADD: _index_add,
    INDEX_GET: _index_get,
    INDEX_PUT: _index_put,
    INDEX_PUT_ADD: _index_put,
    SEARCHSORTED: _searchsorted,
    **dict.fromkeys((GATHER, SCATTER_ADD, SCATTER_EXTREME, SCATTER_PRODUCT), _along_axis),
}
