"""Movement ops, which put elements at other positions, and the sum that undoes a broadcast."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core import monoid
from jitgrad.core.aval import Aval, Shape, is_one_number, normalize_axes, normalize_axis, normalize_shape, reduced_axes
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, AxisError, ShapeError
from jitgrad.core.op import Kind, OpDef, define, define_reduction
from jitgrad.core.tensor import Tensor
from jitgrad.eager.single_ops import single_op
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.quick_calls import as_slices, prepare_broadcast, prepare_place, prepare_total

AxisArgument = int | Iterable[int] | None
SliceIndex = tuple[tuple[int, int, int], ...]  # (start, step, length) for every axis


# --- shape rules -------------------------------------------------------------------------------------------------


def _broadcast_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), shape = avals, attrs["shape"]
    missing = len(shape) - x.ndim
    if missing < 0 or builtins.any(n not in (1, m) for n, m in zip(x.shape, shape[missing:], strict=True)):
        raise ShapeError(
            f"broadcast_to: {x} cannot be broadcast to shape {shape}; each axis must be equal or of length 1"
        )
    return Aval(shape, x.dtype)


def _reshape_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), shape = avals, attrs["shape"]
    out = Aval(shape, x.dtype)
    if out.size != x.size:
        raise ShapeError(f"reshape: {x} has {x.size} elements, shape {shape} has {out.size}")
    return out


def _permute_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), axes = avals, attrs["axes"]
    return Aval(tuple(x.shape[k] for k in axes), x.dtype)


def _expand_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), axis = avals, attrs["axis"]
    return Aval(shape_with_ones(x.shape, axis), x.dtype)


def _squeeze_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), axis = avals, attrs["axis"]
    for k in axis:
        if x.shape[k] != 1:
            raise ShapeError(f"squeeze: axis {k} of {x} has length {x.shape[k]}; only axes of length 1 can be dropped")
    return Aval(tuple(n for k, n in enumerate(x.shape) if k not in axis), x.dtype)


def _slice_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), index = avals, attrs["index"]
    _check_slices("slice", x, index)
    return Aval(tuple(length for _, _, length in index), x.dtype)


def _place_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), shape, index = avals, attrs["shape"], attrs["index"]
    out = Aval(shape, x.dtype)
    _check_slices("place", out, index)
    if tuple(length for _, _, length in index) != x.shape:
        raise ShapeError(f"place: {x} does not have the shape that index {index} selects")
    return out


def _check_slices(what: str, x: Aval, index: SliceIndex) -> None:
    if len(index) != x.ndim:
        raise ShapeError(f"{what}: {len(index)} slices for {x}; every axis needs one (start, step, length)")
    for axis, (n, (start, step, length)) in enumerate(zip(x.shape, index, strict=True)):
        last = start + (length - 1) * step
        if length < 0 or step == 0 or (length and not (0 <= start < n and 0 <= last < n)):
            raise ShapeError(f"{what}: (start, step, length) = {(start, step, length)} leaves axis {axis} of {x}")


def shape_with_ones(shape: Shape, axis: Sequence[int]) -> Shape:
    """``shape`` with axes of length 1 put at the positions ``axis`` of the result."""
    rest = iter(shape)
    return tuple(1 if k in axis else next(rest) for k in range(len(shape) + len(axis)))


def _place(x: Any, *, shape: Shape, index: SliceIndex) -> np.ndarray[Any, Any]:
    array = np.asarray(x)
    out = np.zeros(shape, array.dtype)
    out[as_slices(index)] = array
    return out


# --- sum: the transpose of broadcast_to -------------------------------------------------------------------------


SUM: OpDef = define_reduction(
    monoid.SUM_MONOID,
    lambda g, _out, _x, *, axis: apply(BROADCAST_TO, apply(EXPAND_DIMS, g, axis=axis), shape=_x.shape),
    prepare=prepare_total(np.add),
    takes_complex=True,
)

# --- movement ----------------------------------------------------------------------------------------------------

BROADCAST_TO: OpDef = define(
    "broadcast_to(x, *, shape)",
    kind=Kind.MOVEMENT,
    renames=True,
    eager=lambda x, *, shape: np.broadcast_to(x, shape),
    abstract=_broadcast_aval,
    vjp=(lambda g, _out, _x, *, shape: sum_to(g, _x.shape),),
    views=True,
    prepare=prepare_broadcast,
    domain=("real",),
    sample_attrs={"shape": (2, 3, 4)},
    takes_complex=True,
)
RESHAPE: OpDef = define(
    "reshape(x, *, shape)",
    kind=Kind.MOVEMENT,
    keeps_order=True,
    eager=lambda x, *, shape: np.reshape(x, shape),
    abstract=_reshape_aval,
    vjp=(lambda g, _out, _x, *, shape: apply(RESHAPE, g, shape=_x.shape),),
    views=True,
    prepare=lambda _avals, attrs: operator.methodcaller("reshape", attrs["shape"]),
    domain=("real",),
    sample_attrs={"shape": (4, 3)},
    takes_complex=True,
)
PERMUTE_DIMS: OpDef = define(
    "permute_dims(x, *, axes)",
    kind=Kind.MOVEMENT,
    renames=True,
    eager=lambda x, *, axes: np.transpose(x, axes),
    abstract=_permute_aval,
    vjp=(lambda g, _out, _x, *, axes: apply(PERMUTE_DIMS, g, axes=tuple(map(int, np.argsort(axes)))),),
    views=True,
    prepare=lambda _avals, attrs: operator.methodcaller("transpose", attrs["axes"]),
    domain=("real",),
    sample_attrs={"axes": (1, 0)},
    takes_complex=True,
)
EXPAND_DIMS: OpDef = define(
    "expand_dims(x, *, axis)",
    kind=Kind.MOVEMENT,
    renames=True,
    keeps_order=True,
    eager=lambda x, *, axis: np.expand_dims(x, axis),
    abstract=_expand_aval,
    vjp=(lambda g, _out, _x, *, axis: apply(SQUEEZE, g, axis=axis),),
    views=True,
    prepare=lambda avals, attrs: operator.methodcaller("reshape", shape_with_ones(avals[0].shape, attrs["axis"])),
    domain=("real",),
    sample_attrs={"axis": (1,)},
    takes_complex=True,
)
SQUEEZE: OpDef = define(
    "squeeze(x, *, axis)",
    kind=Kind.MOVEMENT,
    renames=True,
    keeps_order=True,
    eager=lambda x, *, axis: np.squeeze(x, axis),
    abstract=_squeeze_aval,
    vjp=(lambda g, _out, _x, *, axis: apply(EXPAND_DIMS, g, axis=axis),),
    views=True,
    prepare=lambda _avals, attrs: operator.methodcaller("squeeze", attrs["axis"]),
    domain=("real",),
    sample_attrs={"axis": ()},
    takes_complex=True,
)
SLICE = define(
    "slice(x, *, index)",
    kind=Kind.MOVEMENT,
    eager=lambda x, *, index: np.asarray(x)[(*as_slices(index), ...)],
    abstract=_slice_aval,
    vjp=(lambda g, _out, _x, *, index: place(g, _x.shape, index),),
    views=True,
    prepare=lambda _avals, attrs: operator.itemgetter((*as_slices(attrs["index"]), ...)),
    domain=("real",),
    sample_attrs={"index": ((0, 1, 2), (2, -1, 3))},
    takes_complex=True,
)
PLACE = define(
    "place(x, *, shape, index)",
    kind=Kind.OPAQUE,
    eager=_place,
    abstract=_place_aval,
    vjp=(lambda g, _out, _x, *, shape, index: slice(g, index),),
    prepare=prepare_place,
    domain=("real",),
    sample_attrs={"shape": (6, 8), "index": ((0, 1, 3), (7, -2, 4))},
    takes_complex=True,
)


@single_op
def broadcast_to(x: Operand, shape: Any) -> Tensor:
    """``x`` repeated along new leading axes and axes of length 1, without a copy.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    return apply(BROADCAST_TO, x, shape=normalize_shape("broadcast_to", shape))


@single_op
def reshape(x: Operand, shape: Any, *more: int) -> Tensor:
    """The elements of ``x`` in row-major order in a new shape, of which -1 is inferred.

    A view where NumPy makes one. Raises ShapeError if the numbers of elements differ.
    """
    aval = aval_of(RESHAPE, x)
    wanted = normalize_shape("reshape", (shape, *more) if more else shape)
    if -1 in wanted:
        rest = Aval(tuple(n for n in wanted if n != -1), aval.dtype).size
        if wanted.count(-1) > 1 or not rest or aval.size % rest:
            raise ShapeError(f"reshape: cannot work out the -1 in shape {wanted} for {aval} of {aval.size} elements")
        wanted = tuple(aval.size // rest if n == -1 else n for n in wanted)
    if builtins.any(n < 0 for n in wanted):
        raise ShapeError(f"reshape: lengths must not be negative (other than one -1), got {wanted}")
    return apply(RESHAPE, x, shape=wanted)


@single_op
@takes_dim()
def permute_dims(x: Operand, axes: Sequence[int]) -> Tensor:
    """``x`` with axis ``axes[k]`` as axis k. Raises AxisError unless ``axes`` is a permutation."""
    ndim = aval_of(PERMUTE_DIMS, x).ndim
    order = tuple(normalize_axis("permute_dims", k, ndim) for k in axes)
    if sorted(order) != list(range(ndim)):
        raise AxisError(f"permute_dims: axes {tuple(axes)} must name each of the {ndim} axes once")
    return apply(PERMUTE_DIMS, x, axes=order)


@single_op
@takes_dim()
def expand_dims(x: Operand, axis: int | Sequence[int] = 0) -> Tensor:
    """``x`` with axes of length 1 at the positions ``axis`` of the result."""
    count = 1 if is_one_number(axis) else len(tuple(axis))  # type: ignore[arg-type]
    axes = normalize_axes("expand_dims", axis, aval_of(EXPAND_DIMS, x).ndim + count)
    return apply(EXPAND_DIMS, x, axis=axes)


@single_op
def squeeze_where_possible(x: Operand, axis: AxisArgument) -> Tensor:
    """torch's squeeze: an axis that is longer than 1 stays; None: all axes of length 1 go."""
    shape = aval_of(SQUEEZE, x).shape
    return squeeze(x, [k for k in reduced_axes("squeeze", axis, len(shape)) if shape[k] == 1])


@single_op
@takes_dim(squeeze_where_possible)
def squeeze(x: Operand, axis: AxisArgument = None) -> Tensor:
    """``x`` without the axes ``axis`` of length 1 (None: all). Raises ShapeError if one is longer.

    ``squeeze(x, dim=k)`` is torch's, which keeps an axis that is longer.
    """
    aval = aval_of(SQUEEZE, x)
    axes = tuple(k for k, n in enumerate(aval.shape) if n == 1) if axis is None else axis
    return apply(SQUEEZE, x, axis=reduced_axes("squeeze", axes, aval.ndim))


def slice(x: Operand, index: SliceIndex) -> Tensor:
    """The part of ``x`` at ``index``: (start, step, length) per axis; a step may be negative."""
    return apply(SLICE, x, index=tuple(index))


def place(x: Operand, shape: Shape, index: SliceIndex) -> Tensor:
    """Zeros of ``shape`` with ``x`` at ``index``: the transpose of :func:`slice`."""
    return apply(PLACE, x, shape=shape, index=tuple(index))


def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """``x`` summed to ``shape``, which broadcasts to ``x.shape``: the transpose of broadcast_to.

    Raises:
        ShapeError: ``shape`` does not broadcast to ``x.shape``.
    """
    if x.shape == shape:
        return x
    _broadcast_aval((Aval(shape, x.dtype),), {"shape": x.shape})
    missing = x.ndim - len(shape)
    stretched = (k for k, n in enumerate(shape, missing) if n == 1 and x.shape[k] != 1)
    axes = (*range(missing), *stretched)
    out = apply(SUM, x, axis=axes)
    return out if out.shape == shape else reshape(out, shape)


# --- other names and orders of axes ------------------------------------------------------------------------------


def _exchange(x: Operand, axis1: int, axis2: int) -> Tensor:
    return swapaxes(x, axis1, axis2)


@single_op
@takes_dim(_exchange, dim0="axis1", dim1="axis2")
def transpose(x: Operand, axes: Sequence[int] | int | None = None, *more: int) -> Tensor:
    """``x`` with its axes reversed, or in the order ``axes`` (NumPy's transpose).

    ``transpose(x, i, j)`` exchanges two axes, as in torch. (NumPy takes two ints for the order of a matrix's axes,
    which differs for ``(0, 1)`` alone, where it does nothing.)
    """
    if axes is None:
        order: Sequence[int] = range(aval_of(PERMUTE_DIMS, x).ndim)[::-1]
    elif len(more) == 1:
        return swapaxes(x, axes, *more)  # type: ignore[arg-type]
    else:
        order = (axes, *more) if is_one_number(axes) else axes  # type: ignore[assignment, arg-type]
    return permute_dims(x, tuple(order))


@single_op
@takes_dim(axis0="axis1", dim0="axis1", dim1="axis2")
def swapaxes(x: Operand, axis1: int, axis2: int) -> Tensor:
    """``x`` with two axes exchanged."""
    ndim = aval_of(PERMUTE_DIMS, x).ndim
    order = list(range(ndim))
    a, b = normalize_axis("swapaxes", axis1, ndim), normalize_axis("swapaxes", axis2, ndim)
    order[a], order[b] = b, a
    return permute_dims(x, order)


@single_op
def matrix_transpose(x: Operand) -> Tensor:
    """``x`` with its last two axes exchanged. Raises ShapeError below two axes."""
    aval = aval_of(PERMUTE_DIMS, x)
    if aval.ndim < 2:
        raise ShapeError(f"matrix_transpose needs at least two axes, got {aval}")
    return swapaxes(x, -1, -2)


@single_op
@takes_dim()
def moveaxis(x: Operand, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """``x`` with the axes ``source`` at positions ``destination``; the others keep their order."""
    ndim = aval_of(PERMUTE_DIMS, x).ndim
    given = [(operator.index(a),) if not isinstance(a, Iterable) else tuple(a) for a in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise ArgumentError(f"moveaxis: {source!r} and {destination!r} name different numbers of axes")
    for axes in given:
        normalize_axes("moveaxis", axes, ndim)  # refuses an axis named twice
    old, new = ([normalize_axis("moveaxis", k, ndim) for k in axes] for axes in given)
    order = [k for k in range(ndim) if k not in old]
    for position, axis in sorted(zip(new, old, strict=True)):
        order.insert(position, axis)
    return permute_dims(x, order)


@single_op
@takes_dim()
def flip(x: Operand, axis: AxisArgument = None) -> Tensor:
    """``x`` backwards along ``axis`` (None: all axes); a view."""
    shape = aval_of(SLICE, x).shape
    axes = normalize_axes("flip", axis, len(shape))
    return slice(x, tuple((n - 1, -1, n) if k in axes and n else (0, 1, n) for k, n in enumerate(shape)))


@single_op
@takes_dim(start_dim="start_axis", end_dim="end_axis")
def flatten(x: Operand, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """The axes of ``x`` from ``start_axis`` to ``end_axis`` (included) as one, in row-major order; by default all."""
    shape = aval_of(RESHAPE, x).shape or (1,)
    first, last = (normalize_axis("flatten", k, len(shape)) for k in (start_axis, end_axis))
    if first > last:
        raise AxisError(f"flatten: axis {start_axis} comes after axis {end_axis} of shape {shape}")
    return reshape(x, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def cut(x: Operand, axis: int, start: int, stop: int) -> Tensor:
    """``x[start:stop]`` along one axis, with ``0 <= start <= stop <= length``."""
    shape = aval_of(SLICE, x).shape
    return slice(x, tuple((start, 1, stop - start) if k == axis else (0, 1, n) for k, n in enumerate(shape)))
