"""NumPy calls that do what the eager functions of some ops do, prepared for operands of known avals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape
from jitgrad.core.long_products import is_long_product, long_product
from jitgrad.core.long_sums import is_long, long_sum

FEW_ELEMENTS = 8  # if one element in 8 changes, numbering all of them costs what adding by a key loses


def prepare_broadcast(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any], Any]:
    """``np.broadcast_to(x, shape)``, in a tenth of the time where ``x`` is contiguous, which decides its strides."""
    (x,), shape = avals, attrs["shape"]
    strides, step = [0] * len(shape), x.dtype.itemsize
    for k in range(1, x.ndim + 1):
        strides[-k] = step if x.shape[-k] != 1 else 0
        step *= x.shape[-k]
    new, dtype, steps = np.ndarray, x.dtype, tuple(strides)

    def call(x: Any) -> Any:
        if not x.flags.c_contiguous or not x.size:
            return np.broadcast_to(x, shape)
        view = new(shape, dtype, x, 0, steps)
        view.flags.writeable = False
        return view

    return call


def prepare_extremum(ufunc: np.ufunc) -> Callable[[Sequence[Aval], Mapping[str, Any]], Callable[[Any], Any] | None]:
    """As `prepare_total` for a reduction whose result has the dtype of ``x``, or is a bool."""

    def prepare(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any], Any] | None:
        axis = attrs["axis"]
        if len(axis) == 0 or 0 in avals[0].shape:
            return None
        reduce, along = ufunc.reduce, axis[0] if len(axis) == 1 else axis
        if len(axis) < avals[0].ndim:
            return lambda x: reduce(x, along)
        return lambda x: np.asarray(reduce(x, along))

    return prepare


def prepare_total(ufunc: np.ufunc) -> Callable[[Sequence[Aval], Mapping[str, Any]], Callable[[Any], Any] | None]:
    """The sum or product over ``axis`` as the reduction of ``ufunc``, of an int where there is one axis: the quicker way."""

    def prepare(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any], Any] | None:
        axis = attrs["axis"]
        x = avals[0]
        if len(axis) == 0 or x.dtype == np.float16:
            return None
        if ufunc is np.add and is_long(x.shape, axis, x.dtype):
            return lambda x: long_sum(x, axis)
        if ufunc is np.multiply and is_long_product(x.shape, axis, x.dtype):
            return lambda x: np.asarray(long_product(x, axis))
        reduce, along = ufunc.reduce, axis[0] if len(axis) == 1 else axis
        if len(axis) < avals[0].ndim:
            return lambda x: reduce(x, along)
        return lambda x: np.asarray(reduce(x, along))

    return prepare


def prepare_running(
    ufunc: np.ufunc, dtype_of: Callable[[Any], Any]
) -> Callable[[Sequence[Aval], Mapping[str, Any]], Callable[[Any], Any] | None]:
    """The running sum or product along ``axis``, as NumPy's functions call it, in ``dtype_of(dtype)``."""

    def prepare(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any], Any] | None:
        if attrs["reverse"]:
            return None
        accumulate, axis, dtype = ufunc.accumulate, attrs["axis"], dtype_of(avals[0].dtype)
        return lambda x: accumulate(x, axis, dtype)

    return prepare


def prepare_take(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any, Any], Any] | None:
    """The method of arrays of which np.take is a wrapper; None for single elements, of which it makes no arrays."""
    axis = attrs["axis"]
    if avals[0].ndim + avals[1].ndim < 2:
        return None
    return lambda x, indices: x.take(indices, axis)


def as_slices(index: Sequence[tuple[int, int, int]]) -> tuple[Any, ...]:
    """``(start, step, length)`` per axis as Python slices."""
    return tuple(
        slice(start, stop if (stop := start + step * length) >= 0 else None, step) if length else slice(0, 0)
        for start, step, length in index
    )


def prepare_place(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any], Any]:
    """``x`` at ``index`` of zeros of ``shape``."""
    shape, key, dtype = attrs["shape"], (*as_slices(attrs["index"]), ...), avals[0].dtype

    def call(x: Any) -> Any:
        out = np.zeros(shape, dtype)
        out[key] = x
        return out

    return call


def _own_positions(shape: Shape, axis: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Each element's own position along the axes before ``axis``, and along those after it."""
    own = np.ix_(*map(np.arange, shape))
    return own[:axis], own[axis + 1 :]


def prepare_gather(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any, Any], Any]:
    """``x`` at ``index`` along ``axis``, and at each element's own position along other axes."""
    before, after = _own_positions(avals[1].shape, attrs["axis"])
    return lambda x, index: x[(*before, index, *after)]


def prepare_scatter_add(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """``x`` with ``v`` added where `prepare_gather` reads, if ``v`` has few elements."""
    x, index, v = avals
    if x.ndim < 2 or FEW_ELEMENTS * v.size >= x.size or v.dtype != x.dtype:
        return None
    before, after = _own_positions(index.shape, attrs["axis"])

    def call(base: Any, places: Any, values: Any) -> Any:
        out = np.array(base, copy=True, order="C")
        np.add.at(out, (*before, np.asarray(places, order="C"), *after), np.asarray(values, order="C"))
        return out

    return call
