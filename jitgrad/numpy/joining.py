"""NumPy's functions that join arrays and take them apart."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.numpy.arguments import in_dtype, tensor_of, tensors_of
from jitgrad.numpy.output import takes_out
from jitgrad.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, ravel
from jitgrad.ops import joining
from jitgrad.ops.indexing import take
from jitgrad.ops.movement import broadcast_to, cut, reshape, transpose
from jitgrad.ops.operand import contents_of
from jitgrad.ops.placement import beside_operands


@takes_out
@op_sequence
@beside_operands
def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    """Arrays one after the other along an axis that exists (None: flattened first)."""
    return in_dtype(joining.concat(tensors_of(arrays), axis), dtype)


concat = concatenate


@takes_out
@op_sequence
@beside_operands
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Arrays of one shape along a new axis."""
    return in_dtype(joining.stack(tensors_of(arrays), axis), dtype)


@op_sequence
@beside_operands
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Arrays on top of each other; vectors are rows."""
    return concatenate([atleast_2d(x) for x in tup], 0, dtype=dtype)


row_stack = vstack


@op_sequence
@beside_operands
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Arrays beside each other: along the second axis, or the only one."""
    given = [atleast_1d(x) for x in tup]
    return concatenate(given, 0 if given and given[0].ndim == 1 else 1, dtype=dtype)


@op_sequence
@beside_operands
def dstack(tup: Any) -> Tensor:
    """Arrays along the third axis."""
    return concatenate([atleast_3d(x) for x in tup], 2)


@op_sequence
@beside_operands
def column_stack(tup: Any) -> Tensor:
    """Arrays beside each other; vectors are columns."""
    return concatenate([transpose(atleast_2d(x)) if x.ndim < 2 else x for x in tensors_of(tup)], 1)


@beside_operands
def block(arrays: Any) -> Tensor:
    """A matrix of blocks in nested lists: the innermost are joined along the last axis, those around them before it."""
    depth, inner = 0, arrays
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0] if inner else None
    leaves: list[Tensor] = []
    _leaves(arrays, leaves)
    ndim = max([depth, *(x.ndim for x in leaves)])
    return _blocks(arrays, ndim - depth, ndim)


def _leaves(arrays: Any, into: list[Tensor]) -> None:
    if isinstance(arrays, list):
        for x in arrays:
            _leaves(x, into)
    else:
        into.append(tensor_of(arrays))


def _blocks(arrays: Any, axis: int, ndim: int) -> Tensor:
    if isinstance(arrays, list):
        if not arrays:
            raise ArgumentError("jitgrad.numpy.block: a list of blocks is empty")
        return joining.concat([_blocks(x, axis + 1, ndim) for x in arrays], axis)
    leaf = tensor_of(arrays)
    return reshape(leaf, (1,) * (ndim - leaf.ndim) + leaf.shape)


@beside_operands
@beside_operands
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """``values`` after ``arr`` along ``axis`` (None: both flattened)."""
    return joining.concat([tensor_of(arr), tensor_of(values)], axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """``arr`` without the slices at ``obj`` (an int, ints, a slice or a mask) along ``axis`` (None: flattened)."""
    given = ravel(arr) if axis is None else tensor_of(arr)
    k = normalize_axis("delete", 0 if axis is None else axis, given.ndim)
    removed = obj if isinstance(obj, int | slice) else contents_of(obj, "delete")
    return take(given, np.delete(np.arange(given.shape[k]), removed), k)


@beside_operands
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """``values`` before the position ``obj``, an int, along ``axis`` (None: flattened)."""
    given = ravel(arr) if axis is None else tensor_of(arr)
    k = normalize_axis("insert", 0 if axis is None else axis, given.ndim)
    n, position = given.shape[k], operator.index(obj)
    position = position + n if position < 0 else position
    if not 0 <= position <= n:
        raise ArgumentError(f"insert: position {obj} along axis {k} of {given.aval}, of length {n}")
    added = in_dtype(tensor_of(values), given.dtype)
    if axis is None or added.ndim < given.ndim:
        lengths = [1 if j == k else m for j, m in enumerate(given.shape)]
        added = reshape(added, (-1,)) if axis is None else reshape(_spread(added, lengths, k), lengths)
    return joining.concat([cut(given, k, 0, position), added, cut(given, k, position, n)], k)


def _spread(x: Tensor, lengths: list[int], axis: int) -> Tensor:
    wanted = tuple(m for j, m in enumerate(lengths) if j != axis)
    return broadcast_to(x, wanted)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """``ary`` cut into so many parts, of which the first may be longer by one, or before the given positions."""
    given = tensor_of(ary)
    k = normalize_axis("array_split", axis, given.ndim)
    number = isinstance(indices_or_sections, (Tensor, np.ndarray)) and not indices_or_sections.ndim
    if isinstance(indices_or_sections, Iterable) and not number:
        return list(joining.split(given, [int(i) for i in indices_or_sections], k))
    sections = operator.index(indices_or_sections)
    if sections < 1:
        raise ArgumentError(f"array_split: {sections} parts; at least one is needed")
    each, longer = divmod(given.shape[k], sections)
    bounds = [i * each + min(i, longer) for i in range(sections + 1)]
    return [cut(given, k, start, stop) for start, stop in pairwise(bounds)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """``ary`` cut into so many equal parts, or before the given positions."""
    return list(joining.split(tensor_of(ary), indices_or_sections, axis))


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """:func:`split` along the second axis, or the only one."""
    given = tensor_of(ary)
    return split(given, indices_or_sections, 1 if given.ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """:func:`split` along the first of at least two axes."""
    return _split_from(2, "vsplit", ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """:func:`split` along the third axis."""
    return _split_from(3, "dsplit", ary, indices_or_sections, 2)


def _split_from(ndim: int, name: str, ary: Any, indices_or_sections: Any, axis: int) -> list[Tensor]:
    given = tensor_of(ary)
    if given.ndim < ndim:
        raise ShapeError(f"{name} needs at least {ndim} axes, got {given.aval}")
    return split(given, indices_or_sections, axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along ``axis``, without that axis."""
    return joining.unstack(tensor_of(x), axis)


def tile(A: Any, reps: Any) -> Tensor:
    """``A`` as a whole repeated along each axis."""
    return joining.tile(tensor_of(A), reps)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element repeated along ``axis`` (None: flattened)."""
    return joining.repeat(tensor_of(a), repeats, axis)


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """``array`` with elements added before and after each axis: constant, edge, reflect, symmetric or wrap."""
    return joining.pad(tensor_of(array), pad_width, mode, constant_values=constant_values)
