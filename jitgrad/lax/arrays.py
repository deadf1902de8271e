"""jax.lax's functions of whole arrays: shapes, reductions, running reductions, sorting, products."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from jitgrad.core.aval import normalize_axes, normalize_axis
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.statistics import cumprod as _cumprod
from jitgrad.ops import creation, joining, movement, sorting, torch_arithmetic, torch_names
from jitgrad.ops import reduce as reductions
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.einsum import einsum
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.linalg import matmul

# --- shapes ------------------------------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[int]) -> Tensor:
    """``operand`` with new axes of the lengths ``sizes`` in front."""
    x = asarray(operand)
    return movement.broadcast_to(x, (*sizes, *x.shape))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Tensor:
    """``operand``, whose axes become the axes ``broadcast_dimensions`` of a result of ``shape``.

    Raises ShapeError if there is not one for each axis, in order.
    """
    x, axes = asarray(operand), [operator.index(k) for k in broadcast_dimensions]
    if len(axes) != x.ndim or axes != sorted(set(axes)):
        raise ShapeError(
            f"lax.broadcast_in_dim of {x.aval}: broadcast_dimensions={shown(broadcast_dimensions)} must have an axis for each "
            "of its own, in order"
        )
    lengths = dict(zip(axes, x.shape, strict=True))
    return movement.broadcast_to(movement.reshape(x, tuple(lengths.get(k, 1) for k in range(len(shape)))), tuple(shape))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape of results of operands of ``shapes``."""
    return np.broadcast_shapes(*shapes)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Tensor:
    """``operand`` with the axes from ``start_dimension`` up to ``stop_dimension`` as one."""
    x = asarray(operand)
    first, last, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    return movement.reshape(x, (*x.shape[:first], math.prod(x.shape[first:last]), *x.shape[last:]))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Tensor:
    """``array`` with axes of length 1 at the positions ``dimensions`` of the result."""
    return movement.expand_dims(array, tuple(dimensions))


def squeeze(array: Any, dimensions: Sequence[int]) -> Tensor:
    """``array`` without the axes ``dimensions``, which have length 1."""
    return movement.squeeze(array, tuple(dimensions))


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Tensor:
    """``operand`` in another shape; with ``dimensions`` of the operand with its axes in that order."""
    x = operand if dimensions is None else movement.permute_dims(operand, tuple(dimensions))
    return movement.reshape(x, tuple(new_sizes))


def rev(operand: Any, dimensions: Sequence[int]) -> Tensor:
    """``operand`` in reverse order along ``dimensions``."""
    return movement.flip(operand, tuple(dimensions))


def transpose(operand: Any, permutation: Sequence[int]) -> Tensor:
    """``operand`` with its axes in the order ``permutation``."""
    return movement.permute_dims(operand, tuple(permutation))


def tile(operand: Any, reps: Sequence[int]) -> Tensor:
    """``operand`` repeated as a whole along each axis."""
    return joining.tile(operand, tuple(reps))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts of the lengths ``sizes`` along ``axis``."""
    return [*joining.chunked(asarray(operand), [*sizes], axis)]


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Tensor:
    """The elements from ``start_indices`` up to ``limit_indices`` along each axis, in ``strides``.

    Raises ShapeError for bounds that are not within ``operand``.
    """
    x = asarray(operand)
    steps = [1] * x.ndim if strides is None else [*strides]
    if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
        raise ShapeError(f"lax.slice of {x.aval}: a start, a limit and a stride are needed for each axis")
    for low, high, n in zip(start_indices, limit_indices, x.shape, strict=True):
        if not 0 <= low <= high <= n:
            raise ShapeError(f"lax.slice of {x.aval}: from {tuple(start_indices)} to {tuple(limit_indices)} is not within it")
    return x[tuple(builtins.slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True))]


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Tensor:
    """The elements from ``start_index`` up to ``limit_index`` along ``axis``; negative ones count from the end."""
    x = asarray(operand)
    k = normalize_axis("lax.slice_in_dim", axis, x.ndim)
    return x[(*[builtins.slice(None)] * k, builtins.slice(start_index, limit_index, stride))]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The slice at ``index`` along ``axis``, which stays with ``keepdims``."""
    x = asarray(operand)
    k = normalize_axis("lax.index_in_dim", axis, x.ndim)
    out = x[(*[builtins.slice(None)] * k, operator.index(index))]
    return movement.expand_dims(out, k) if keepdims else out


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Tensor:
    """``operand`` with ``padding_value`` around it and between its elements: (low, high, interior) for each axis.

    Negative numbers at the ends cut elements off. Raises ShapeError if there is not one for each axis.
    """
    x = asarray(operand)
    if len(padding_config) != x.ndim:
        raise ShapeError(f"lax.pad of {x.aval}: {len(padding_config)} entries of padding_config; one is needed for each axis")
    value = astype(asarray(padding_value), x.dtype)
    for k, (low, high, interior) in enumerate(padding_config):
        if interior < 0:
            raise ArgumentError(f"lax.pad: the interior padding of axis {k} must not be negative, got {interior}")
        if interior and x.shape[k] > 1:
            x = _spread(x, value, k, interior)
        first, last = max(-low, 0), x.shape[k] - max(-high, 0)
        if first > last:
            raise ShapeError(f"lax.pad of {x.aval}: {low} and {high} cut off more elements than axis {k} has")
        x = _bordered(movement.cut(x, k, first, last), value, k, max(low, 0), max(high, 0))
    return x


def _filled(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    return movement.broadcast_to(value, shape)


def _bordered(x: Tensor, value: Tensor, axis: int, low: int, high: int) -> Tensor:
    parts = [_filled(value, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in (low, high)]
    joined = [part for part in (parts[0], x, parts[1]) if part is x or part.shape[axis]]
    return joining.concat(joined, axis) if len(joined) > 1 else x


def _spread(x: Tensor, value: Tensor, axis: int, interior: int) -> Tensor:
    """``x`` with ``interior`` elements ``value`` behind each but the last along ``axis``."""
    shape, n = x.shape, x.shape[axis]
    between = _filled(value, (*shape[: axis + 1], interior, *shape[axis + 1 :]))
    wide = joining.concat([movement.expand_dims(x, axis + 1), between], axis + 1)
    flat = movement.reshape(wide, (*shape[:axis], n * (interior + 1), *shape[axis + 1 :]))
    return movement.cut(flat, axis, 0, n * (interior + 1) - interior)


def concatenate(operands: Any, dimension: int) -> Tensor:
    """The arrays one after the other along an axis."""
    return joining.concat([*operands], axis=dimension)


def stop_gradient(x: Any) -> Any:
    """The pytree ``x`` without the history of its tensors."""
    return optree.tree_map(lambda leaf: detached(asarray(leaf)), x)


# --- new arrays --------------------------------------------------------------------------------------------------


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None) -> Tensor:
    """An array of ``fill_value``."""
    return creation.full(tuple(shape), fill_value, dtype=dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None) -> Tensor:
    """An array of ``fill_value`` in the shape and dtype of ``x``."""
    given = asarray(x)
    return creation.full(given.shape if shape is None else tuple(shape), fill_value, dtype=dtype or given.dtype)


def iota(dtype: Any, size: int) -> Tensor:
    """0, 1, 2, … up to ``size``."""
    return creation.iota((size,), 0, dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Tensor:
    """Each element's position along the axis ``dimension``."""
    return creation.iota(tuple(shape), dimension, dtype)


def convert_element_type(operand: Any, new_dtype: Any) -> Tensor:
    """``operand`` in another dtype."""
    return astype(asarray(operand), np.dtype(new_dtype))


# --- reductions --------------------------------------------------------------------------------------------------


def _axes(what: str, x: Tensor, axes: Sequence[int]) -> tuple[int, ...]:
    return normalize_axes(what, tuple(axes), x.ndim)


def reduce_sum(operand: Any, axes: Sequence[int]) -> Tensor:
    """The sum over ``axes``, in the dtype of the operand."""
    x = asarray(operand)
    return astype(reductions.sum(x, _axes("lax.reduce_sum", x, axes)), x.dtype)


def reduce_prod(operand: Any, axes: Sequence[int]) -> Tensor:
    """The product over ``axes``, in the dtype of the operand."""
    x = asarray(operand)
    return astype(reductions.prod(x, _axes("lax.reduce_prod", x, axes)), x.dtype)


def reduce_max(operand: Any, axes: Sequence[int]) -> Tensor:
    """The largest element over ``axes``."""
    return reductions.max(asarray(operand), tuple(axes))


def reduce_min(operand: Any, axes: Sequence[int]) -> Tensor:
    """The smallest element over ``axes``."""
    return reductions.min(asarray(operand), tuple(axes))


def reduce_and(operand: Any, axes: Sequence[int]) -> Tensor:
    """Whether all bools over ``axes`` are true."""
    return reductions.all(asarray(operand), tuple(axes))


def reduce_or(operand: Any, axes: Sequence[int]) -> Tensor:
    """Whether a bool over ``axes`` is true."""
    return reductions.any(asarray(operand), tuple(axes))


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int]) -> Tensor:
    """``computation``, which is associative, of ``init_values`` and all elements over ``dimensions``.

    Raises ArgumentError for several operands at once.
    """
    if isinstance(operands, (tuple, list)):
        raise ArgumentError("lax.reduce: several operands are not supported; reduce one after the other, or write a lax.scan")
    x = asarray(operands)
    axes = _axes("lax.reduce", x, dimensions)
    kept = [k for k in range(x.ndim) if k not in axes]
    shape = tuple(x.shape[k] for k in kept)
    lines = movement.reshape(movement.permute_dims(x, (*axes, *kept)), (math.prod(x.shape[k] for k in axes), *shape))
    first = movement.broadcast_to(astype(asarray(init_values), x.dtype), shape)
    if not lines.shape[0]:
        return first
    while (n := lines.shape[0]) > 1:
        pairs = computation(lines[0 : n - n % 2 : 2], lines[1::2])
        lines = joining.concat([pairs, lines[n - 1 :]], 0) if n % 2 else pairs
    return asarray(computation(first, lines[0]))


def combined(parts: Sequence[Any], computation: Callable[[Any, Any], Any]) -> Any:
    """``computation`` of all ``parts``, in pairs of neighbours."""
    while len(parts) > 1:
        pairs = [computation(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(parts) - len(parts) % 2 :]]
    return parts[0]


def argmax(operand: Any, axis: int, index_dtype: Any = np.int64) -> Tensor:
    """The position of the first largest element along ``axis``."""
    return astype(reductions.argmax(operand, axis), np.dtype(index_dtype))


def argmin(operand: Any, axis: int, index_dtype: Any = np.int64) -> Tensor:
    """The position of the first smallest element along ``axis``."""
    return astype(reductions.argmin(operand, axis), np.dtype(index_dtype))


def _running(function: Callable[[Any, int], Any], operand: Any, axis: int, reverse: bool) -> Tensor:
    x = asarray(operand)
    out = function(movement.flip(x, axis) if reverse else x, axis)
    return movement.flip(out, axis) if reverse else out


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The sums of the elements so far along ``axis``, or with ``reverse`` of those from there on."""
    return _running(reductions.cumulative_sum, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The products of the elements so far along ``axis``."""
    return _running(_cumprod, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The largest of the elements so far along ``axis``."""
    return _running(lambda x, k: torch_names.cummax(x, k).values, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The smallest of the elements so far along ``axis``."""
    return _running(lambda x, k: torch_names.cummin(x, k).values, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The logarithms of the sums of the exponentials so far along ``axis``."""
    return _running(torch_arithmetic.logcumsumexp, operand, axis, reverse)


# --- order -------------------------------------------------------------------------------------------------------


def top_k(operand: Any, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along the last axis, in order, and their positions."""
    values, indices = sorting.topk(operand, k)
    return values, indices


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements in order along ``dimension``.

    Of a tuple or list of arrays all in the order of the first ``num_keys``, of which the first counts most.
    """
    if not isinstance(operand, (tuple, list)):
        return sorting.sort(operand, dimension)
    arrays = [asarray(x) for x in operand]
    if not 1 <= num_keys <= len(arrays):
        raise ArgumentError(f"lax.sort: num_keys={num_keys} of {len(arrays)} operands")
    order = sorting.argsort(arrays[num_keys - 1], dimension)
    for key in reversed(arrays[: num_keys - 1]):
        order = take_along_axis(order, sorting.argsort(take_along_axis(key, order, dimension), dimension), dimension)
    return tuple(take_along_axis(x, order, dimension) for x in arrays)


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Tensor, Tensor]:
    """The ``keys`` in order along ``dimension``, and the ``values`` in that order."""
    ordered, moved = sort((keys, values), dimension)
    return ordered, moved


# --- products ----------------------------------------------------------------------------------------------------


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """The product of two vectors or matrices."""
    return _as_asked(matmul(asarray(lhs), asarray(rhs)), preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Tensor:
    """Products of matrices [..., n, k] and [..., k, m]."""
    return matmul(lhs, rhs)


def dot_general(lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """The sums over pairs of axes, and for each element of pairs of axes: ``((lhs, rhs), (lhs_batch, rhs_batch))``.

    The axes of the result are those of the batch, the others of ``lhs``, the others of ``rhs``.
    """
    x, y = asarray(lhs), asarray(rhs)
    (contracted, others), (batch, batch_of_rhs) = dimension_numbers
    left = list(range(x.ndim))
    right = [x.ndim + k for k in range(y.ndim)]
    for a, b in (*zip(contracted, others, strict=True), *zip(batch, batch_of_rhs, strict=True)):
        right[b] = left[a]
    kept = [k for k in left if k not in (*contracted, *batch)] + [k for k in right if k >= x.ndim]
    return _as_asked(einsum(x, left, y, right, [*batch, *kept]), preferred_element_type)


def _as_asked(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else astype(x, np.dtype(dtype))
