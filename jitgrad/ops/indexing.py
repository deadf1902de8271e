"""Ops that read and write at positions: take, gather, scatter_add, and the parts of ``x[...]``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, Shape, broadcast_shapes, normalize_axis
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import DtypeError, IndexingError, ShapeError
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.creation import full, iota, zeros
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import SliceIndex, broadcast_to, expand_dims, flatten, reshape, slice, squeeze
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.quick_calls import FEW_ELEMENTS, as_slices, prepare_gather, prepare_scatter_add, prepare_take


def _check_integers(what: str, *avals: Aval) -> None:
    for a in avals:
        if a.dtype.kind not in "iu":
            raise DtypeError(f"{what}: indices must be integers, got {a}")


def key_of(ndim: int, axes: Sequence[int], indices: Sequence[Any]) -> tuple[Any, ...]:
    """The NumPy key with ``indices`` at ``axes`` and full slices elsewhere."""
    key: list[Any] = [np.s_[:]] * ndim
    for axis, index in zip(axes, indices, strict=True):
        key[axis] = index
    return tuple(key)


def _mesh(index: Array, axis: int) -> tuple[Any, ...]:
    """A key of ``index`` along ``axis`` and of each element's own position along other axes."""
    key: list[Any] = list(np.ix_(*map(np.arange, index.shape))) if index.ndim else []
    key[axis] = index
    return tuple(key)


# --- shape rules and eager meanings ------------------------------------------------------------------------------


def _take_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x, indices), axis = avals, attrs["axis"]
    _check_integers("take", indices)
    return Aval((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)


def _index_add_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    x, index, src = avals
    axis = attrs["axis"]
    _check_integers("index_add", index)
    expected = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    if index.ndim != 1 or src.shape != expected:
        raise ShapeError(
            f"index_add along axis {axis} of {x}: index must be 1-D and src of shape {expected}, got {index}, {src}"
        )
    return Aval(x.shape, x.dtype)


def _added(x: Array, v: Array, axes: Sequence[int], indices: Sequence[Any], into: Array | None) -> Array:
    """``x`` with ``v`` added at ``indices`` along ``axes``, in row-major order.

    Like the other writing ops, it may change and return ``x`` itself if C-contiguous. NumPy checks
    all indices before it changes anything.
    """
    out = np.array(x, copy=True, order="C") if into is None else into
    indices = [np.asarray(i, order="C") for i in indices]  # NumPy goes through the elements in the memory order of the indices
    key = key_of(out.ndim, axes, indices)
    if out.ndim == 1:
        places = indices[0]
    elif FEW_ELEMENTS * v.size < out.size or not out.flags.c_contiguous:
        np.add.at(out, key, np.asarray(v, order="C"))
        return out
    else:
        places = np.arange(out.size).reshape(out.shape)[key]
    np.add.at(out.reshape(-1), places.reshape(-1), np.asarray(v).reshape(-1))
    return out


def _added_along(what: str, x: Array, index: Array, v: Array, axis: int, own: bool, into: Array | None) -> Array:
    """`_added` at ``index`` along ``axis``: there at each element's ``own`` position along other axes, or else at all of them.

    The positions in the flattened ``x`` are sums of offsets: NumPy takes a tenth of the time for one array of positions.
    """
    index, n = np.asarray(index), x.shape[axis]
    if index.size and not (-n <= index.min() and index.max() < n):
        raise IndexingError(f"{what}: an index is out of bounds for axis {axis} of length {n}")
    if into is not None and not into.flags.c_contiguous:
        axes: Sequence[int] = range(x.ndim) if own else (axis,)
        return _added(x, v, axes, _mesh(index, axis) if own else (index,), into)
    out = np.array(x, copy=True, order="C") if into is None else into
    steps = [math.prod(x.shape[k + 1 :]) for k in range(x.ndim)]
    along = np.take(np.arange(n) * steps[axis], index)
    places = along if own else along.reshape(-1, *[1] * (x.ndim - axis - 1))
    for k in range(x.ndim):
        if k != axis:
            places = places + (np.arange(v.shape[k]) * steps[k]).reshape(-1, *[1] * (x.ndim - k - 1))
    np.add.at(out.reshape(-1), places.reshape(-1), np.asarray(v).reshape(-1))
    return out


def _index_add(x: Array, index: Array, src: Array, *, axis: int, into: Array | None = None) -> Array:
    return _added_along("index_add", x, index, src, axis, False, into)


def _gather_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    x, index = avals
    _check_gather("gather", x, index, attrs["axis"])
    return Aval(index.shape, x.dtype)


def _check_gather(what: str, x: Aval, index: Aval, axis: int) -> None:
    _check_integers(what, index)
    fits = index.ndim == x.ndim and all(
        k == axis or m <= n for k, (n, m) in enumerate(zip(x.shape, index.shape, strict=False))
    )
    if not fits:
        raise ShapeError(
            f"{what} along axis {axis}: index {index} must have as many axes as {x} and be no longer elsewhere"
        )


def _scatter_add_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    x, index, src = avals
    _check_gather("scatter_add", x, index, attrs["axis"])
    if src.shape != index.shape:
        raise ShapeError(f"scatter_add: src {src} and index {index} must have the same shape")
    return Aval(x.shape, x.dtype)


def _scatter_add(x: Array, index: Array, src: Array, *, axis: int, into: Array | None = None) -> Array:
    return _added_along("scatter_add", x, index, src, axis, True, into)


def _index_get_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    """NumPy's rule: the axes of the indices stay in place if they were neighbours, else come first."""
    x, *indices = avals
    axes = attrs["axes"]
    _check_integers("indexing", *indices)
    broadcast = broadcast_shapes("indexing", indices)
    rest = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    at = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    return Aval((*rest[:at], *broadcast, *rest[at:]), x.dtype)


def _index_put_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    x, v, *indices = avals
    expected = _index_get_aval((x, *indices), attrs).shape
    if v.shape != expected:
        raise ShapeError(f"indexing: the values {v} must have shape {expected}")
    return Aval(x.shape, x.dtype)


def _index_put(x: Array, v: Array, *indices: Array, axes: tuple[int, ...], into: Array | None = None) -> Array:
    """The last value for a position in row-major order stays; NumPy follows the indices' memory order."""
    out = np.array(x, copy=True) if into is None else into
    out[key_of(out.ndim, axes, [np.asarray(i, order="C") for i in indices])] = v
    return out


def _index_put_add(x: Array, v: Array, *indices: Array, axes: tuple[int, ...], into: Array | None = None) -> Array:
    return _added(x, v, axes, indices, into)


def _put_slice_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    x, v = avals
    expected = tuple(length for _, _, length in attrs["index"])
    if v.shape != expected:
        raise ShapeError(f"put_slice: the values {v} must have shape {expected}")
    return Aval(x.shape, x.dtype)


def _put_slice(x: Array, v: Array, *, index: SliceIndex) -> Array:
    out = np.array(x, copy=True)
    out[as_slices(index)] = v
    return out


# --- gradients ---------------------------------------------------------------------------------------------------


def _take_vjp(g: Tensor, _out: Any, _x: Any, indices: Any, *, axis: int) -> Tensor:
    shape: Shape = _x.shape
    count = aval_of(TAKE, indices).size
    rows = reshape(g, (*shape[:axis], count, *shape[axis + 1 :]))
    return apply(INDEX_ADD, zeros(shape, dtype=g.dtype), reshape(indices, (count,)), rows, axis=axis)


def _index_get_vjp(g: Tensor, _out: Any, _x: Any, *indices: Any, axes: tuple[int, ...]) -> tuple[Tensor | None, ...]:
    gx = apply(INDEX_PUT_ADD, zeros(_x.shape, dtype=g.dtype), g, *indices, axes=axes)
    return gx, *(None for _ in indices)


def _index_put_vjp(
    g: Tensor, _out: Any, _x: Any, _v: Any, *indices: Any, axes: tuple[int, ...]
) -> tuple[Tensor | None, ...]:
    """Of several values for one position only the last one, which stays, gets the gradient."""
    gx = apply(INDEX_PUT, g, zeros(_v.shape, dtype=g.dtype), *indices, axes=axes)
    numbers = iota(_v.shape, None)
    stayed = apply(INDEX_PUT, full(_x.shape, -1, dtype=np.int64), numbers, *indices, axes=axes)
    is_last = equal(apply(INDEX_GET, stayed, *indices, axes=axes), numbers)
    gv = where(is_last, apply(INDEX_GET, g, *indices, axes=axes), 0.0)
    return gx, gv, *(None for _ in indices)


def _index_put_add_vjp(
    g: Tensor, _out: Any, _x: Any, _v: Any, *indices: Any, axes: tuple[int, ...]
) -> tuple[Tensor | None, ...]:
    return g, apply(INDEX_GET, g, *indices, axes=axes), *(None for _ in indices)


TAKE = define(
    "take(x, indices, *, axis)",
    kind=Kind.OPAQUE,
    fills=True,
    eager=lambda x, indices, *, axis: np.take(x, indices, axis=axis),
    prepare=prepare_take,
    abstract=_take_aval,
    vjp=(_take_vjp, None),
    domain=("real", "index"),
    sample_attrs={"axis": 0},
    takes_complex=True,
)
INDEX_ADD = define(
    "index_add(x, index, src, *, axis)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    updates_first_operand=True,
    eager=_index_add,
    abstract=_index_add_aval,
    vjp=(
        lambda g, _out, _x, _index, _src, *, axis: g,
        None,
        lambda g, _out, _x, index, _src, *, axis: apply(TAKE, g, index, axis=axis),
    ),
    takes_complex=True,
)
GATHER = define(
    "gather(x, index, *, axis)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    fills=True,
    eager=lambda x, index, *, axis: x[_mesh(np.asarray(index), axis)],
    prepare=prepare_gather,
    abstract=_gather_aval,
    vjp=(
        lambda g, _out, _x, index, *, axis: apply(SCATTER_ADD, zeros(_x.shape, dtype=g.dtype), index, g, axis=axis),
        None,
    ),
    takes_complex=True,
)
SCATTER_ADD: OpDef = define(
    "scatter_add(x, index, src, *, axis)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    updates_first_operand=True,
    eager=_scatter_add,
    prepare=prepare_scatter_add,
    abstract=_scatter_add_aval,
    vjp=(
        lambda g, _out, _x, _index, _src, *, axis: g,
        None,
        lambda g, _out, _x, index, _src, *, axis: apply(GATHER, g, index, axis=axis),
    ),
    takes_complex=True,
)
INDEX_GET = define(
    "index_get(x, *indices, axes)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    fills=True,
    eager=lambda x, *indices, axes: np.asarray(x)[key_of(np.ndim(x), axes, indices)],
    abstract=_index_get_aval,
    vjp=_index_get_vjp,
    takes_complex=True,
)
INDEX_PUT = define(
    "index_put(x, v, *indices, axes)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    updates_first_operand=True,
    eager=_index_put,
    abstract=_index_put_aval,
    vjp=_index_put_vjp,
    takes_complex=True,
)
INDEX_PUT_ADD = define(
    "index_put_add(x, v, *indices, axes)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    updates_first_operand=True,
    eager=_index_put_add,
    abstract=_index_put_aval,
    vjp=_index_put_add_vjp,
    takes_complex=True,
)
PUT_SLICE = define(
    "put_slice(x, v, *, index)",
    kind=Kind.OPAQUE,
    eager=_put_slice,
    abstract=_put_slice_aval,
    vjp=(
        lambda g, _out, _x, _v, *, index: put_slice(g, zeros(_v.shape, dtype=g.dtype), index),
        lambda g, _out, _x, _v, *, index: slice(g, index),
    ),
    takes_complex=True,
)


# --- public functions --------------------------------------------------------------------------------------------


def put_slice(x: Operand, v: Operand, index: SliceIndex) -> Tensor:
    """``x`` with ``v`` where ``slice(x, index)`` reads; a new tensor."""
    return apply(PUT_SLICE, x, v, index=tuple(index))


def as_constant(array: Array) -> Any:
    """An array that jitgrad made, as an operand: a trace need not guard it. Made of a float argument it is a tensor there."""
    interpreter = current_interpreter.get()
    return interpreter.constant(array) if interpreter.tracing and not isinstance(array, Tensor) else array


def as_indices(index: Any) -> Any:
    """``index``, of a list of integers as an array."""
    if not isinstance(index, (list, tuple, range)):
        return index
    return as_constant(np.asarray(index, np.int64 if not len(index) else None))


@takes_dim()
def take(x: Operand, indices: Operand | Sequence[int], axis: int | None = None) -> Tensor:
    """The slices of ``x`` along ``axis`` at ``indices``, whose axes take the place of ``axis`` (None: flattened).

    Negative indices count from the end. Raises IndexError if one is out of bounds, DtypeError if they are no integers.
    """
    if axis is None:
        x, axis = flatten(x), 0
    return apply(TAKE, x, as_indices(indices), axis=normalize_axis("take", axis, aval_of(TAKE, x).ndim))


@takes_dim()
def gather(x: Operand, axis: int, index: Operand | Sequence[Any]) -> Tensor:
    """``out[i][j] = x[index[i][j]][j]`` for axis 0, and so on, as torch's gather."""
    return apply(GATHER, x, as_indices(index), axis=normalize_axis("gather", axis, aval_of(GATHER, x).ndim))


@takes_dim()
@composed
def take_along_axis(x: Operand, indices: Operand | Sequence[Any], axis: int = -1) -> Tensor:
    """:func:`gather` with the other axes broadcast, as NumPy's take_along_axis."""
    positions = as_indices(indices)
    a, b = aval_of(GATHER, x), aval_of(GATHER, positions)
    if a.ndim != b.ndim:
        raise ShapeError(f"take_along_axis: indices {b} must have as many axes as {a}")
    k = normalize_axis("take_along_axis", axis, a.ndim)
    rows = [Aval((*v.shape[:k], 1, *v.shape[k + 1 :]), v.dtype) for v in (a, b)]
    common = broadcast_shapes("take_along_axis", rows)
    wanted = [(*common[:k], v.shape[k], *common[k + 1 :]) for v in (a, b)]
    x = x if a.shape == wanted[0] else broadcast_to(x, wanted[0])
    return apply(GATHER, x, positions if b.shape == wanted[1] else broadcast_to(positions, wanted[1]), axis=k)


@composed
def elements_at(x: Operand, indices: Tensor, axis: int) -> Tensor:
    """The elements of ``x`` at ``indices`` along ``axis``, one in each line: of the shape of ``indices``."""
    return squeeze(take_along_axis(x, expand_dims(indices, axis), axis), axis)
