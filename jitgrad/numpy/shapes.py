"""NumPy's functions for shapes and orders of axes."""

from __future__ import annotations

import math
import operator
from typing import Any

from jitgrad.core.aval import broadcast_shapes, normalize_axis
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import refuse, tensor_of, tensors_of
from jitgrad.ops import joining, movement
from jitgrad.ops.placement import beside_operands


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the axes."""
    return tensor_of(a).shape


def ndim(a: Any) -> int:
    """The number of axes."""
    return tensor_of(a).ndim


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or the length of ``axis``."""
    given = tensor_of(a)
    return given.size if axis is None else given.shape[axis]


def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None) -> Tensor:
    """The elements of ``a`` in another shape, read and written in row-major order, or with ``order="F"`` in the other."""
    wanted = newshape if shape is None else shape
    given = tensor_of(a)
    if order != "F":
        refuse("reshape", order=order)
        return movement.reshape(given, wanted)
    lengths = (wanted,) if isinstance(wanted, int) else tuple(wanted)
    return movement.transpose(movement.reshape(movement.transpose(given), lengths[::-1]))


def ravel(a: Any, order: str = "C") -> Tensor:
    """All elements of ``a`` along one axis."""
    return reshape(a, (-1,) if math.prod(tensor_of(a).shape) else (0,), order)


def transpose(a: Any, axes: Any = None) -> Tensor:
    """``a`` with its axes reversed, or in the order ``axes``."""
    given = tensor_of(a)
    return movement.transpose(given) if axes is None else movement.permute_dims(given, tuple(axes))


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Tensor:
    """``x`` with its last two axes exchanged."""
    return movement.matrix_transpose(tensor_of(x))


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """``a`` with two axes exchanged."""
    return movement.swapaxes(tensor_of(a), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """``a`` with the axes ``source`` at the positions ``destination``."""
    return movement.moveaxis(tensor_of(a), source, destination)


def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """``a`` with ``axis`` moved to stand before the axis that is at ``start``."""
    given = tensor_of(a)
    source = normalize_axis("rollaxis", axis, given.ndim)
    before = start + given.ndim if start < 0 else start
    if not 0 <= before <= given.ndim:
        raise ArgumentError(f"rollaxis: start={start} for {given.aval}; it must lie between {-given.ndim} and {given.ndim}")
    return movement.moveaxis(given, source, before - 1 if before > source else before)


def squeeze(a: Any, axis: Any = None) -> Tensor:
    """``a`` without axes of length 1."""
    return movement.squeeze(tensor_of(a), axis)


def expand_dims(a: Any, axis: Any) -> Tensor:
    """``a`` with axes of length 1 at the positions ``axis`` of the result."""
    return movement.expand_dims(tensor_of(a), axis)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tensor:
    """``array`` repeated to ``shape``."""
    return movement.broadcast_to(tensor_of(array), shape)


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tensor, ...]:
    """The arguments in the one shape to which they broadcast."""
    given = tensors_of(args)
    common = broadcast_shapes("broadcast_arrays", [x.aval for x in given])
    return tuple(movement.broadcast_to(x, common) for x in given)


def _each(function: Any, arrays: tuple[Any, ...]) -> Any:
    return function(tensor_of(arrays[0])) if len(arrays) == 1 else tuple(function(x) for x in tensors_of(arrays))


def _at_least_2d(x: Tensor) -> Tensor:
    return movement.reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x


def _at_least_3d(x: Tensor) -> Tensor:
    lengths = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(x.ndim)
    return x if lengths is None else movement.reshape(x, lengths)


@beside_operands
def atleast_1d(*arys: Any) -> Any:
    """Each argument with at least one axis: a tensor, or a tuple of several."""
    return _each(lambda x: x if x.ndim else movement.reshape(x, (1,)), arys)


@beside_operands
def atleast_2d(*arys: Any) -> Any:
    """Each argument with at least two axes; new ones come first."""
    return _each(_at_least_2d, arys)


@beside_operands
def atleast_3d(*arys: Any) -> Any:
    """Each argument with at least three axes, vectors and matrices as in NumPy."""
    return _each(_at_least_3d, arys)


def flip(m: Any, axis: Any = None) -> Tensor:
    """``m`` backwards along ``axis`` (None: all)."""
    return movement.flip(tensor_of(m), axis)


def flipud(m: Any) -> Tensor:
    """``m`` backwards along its first axis."""
    return movement.flip(tensor_of(m), 0)


def fliplr(m: Any) -> Tensor:
    """``m`` backwards along its second axis."""
    return movement.flip(tensor_of(m), 1)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """``m`` turned ``k`` times by 90 degrees, from the first of ``axes`` to the second."""
    given = tensor_of(m)
    first, second = (normalize_axis("rot90", a, given.ndim) for a in axes)
    if first == second:
        raise ArgumentError(f"rot90: axes={axes} of {given.aval} must be two")
    turns = k % 4
    if turns == 2:
        return movement.flip(given, (first, second))
    if turns == 1:
        given = movement.flip(given, second)
    turned = movement.swapaxes(given, first, second) if turns else given
    return movement.flip(turned, second) if turns == 3 else turned


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """``a`` shifted cyclically along ``axis`` (None: flattened)."""
    return joining.roll(tensor_of(a), shift, axis)


def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements of ``a`` in ``new_shape``, repeated as often as it takes."""
    lengths = (new_shape,) if isinstance(new_shape, int) else tuple(map(operator.index, new_shape))
    flat, count = ravel(a), math.prod(lengths)
    if not flat.size or not count:
        raise ArgumentError(f"resize: {flat.aval} to {lengths}: neither may be empty")
    repeated = joining.tile(flat, -(-count // flat.size))
    return movement.reshape(movement.cut(repeated, 0, 0, count), lengths)

