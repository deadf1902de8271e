"""Runs the NumPy function of an op on arrays, in the op's dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, Shape, broadcast_shapes, strong_aval
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ShapeError
from jitgrad.core.op import Kind, OpDef
from jitgrad.eager import buffer_pool
from jitgrad.eager.float16 import eager_function
from jitgrad.eager.large_arrays import LARGE, LARGE_ELEMENTS, for_large
from jitgrad.eager.loops import Loop, by_loop, loop_of
from jitgrad.eager.numpy_errors import quietly


def run_eagerly(op: OpDef, arrays: list[Any], avals: list[Aval], attrs: Mapping[str, Any]) -> Any:
    """The NumPy result of ``op``, in the op's dtype."""
    if op.kind is not Kind.ELEMENTWISE:
        return run_with_aval(op, op.abstract(avals, attrs), attrs, *arrays)
    if attrs:
        return elementwise_function(op, avals, attrs)(*arrays)
    return _without_attributes(op, *[(a.shape, a.dtype, a.weak) for a in avals])(*arrays)


@lru_cache(maxsize=4096)
def _without_attributes(op: OpDef, *fields: tuple[Shape, Dtype, bool]) -> Callable[..., Any]:
    return elementwise_function(op, [Aval(*aval) for aval in fields], {})


def elementwise_function(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of the elementwise ``op`` on arrays of ``avals``, with the dtypes of the op.

    Raises:
        ShapeError: if the shapes do not broadcast.
    """
    function = numpy_function(op, avals, attrs)
    dtypes, out = op.dtypes(avals, **attrs)
    given = [strong_aval(a.shape, d) if a.weak else a for a, d in zip(avals, dtypes, strict=True)]
    loop = loop_for(op, given, attrs)
    if loop is None:
        return function

    def run(ufunc: np.ufunc, *arrays: Any, out: Any) -> Any:
        arrays = tuple([np.asarray(x, d) for x, d in zip(arrays, dtypes, strict=True)])  # Python numbers too
        return quietly(ufunc, *arrays, out=out)

    return by_loop(loop, function, strong_aval(broadcast_shapes(op.name, avals), out), run)


def loop_for(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Loop | None:
    """The loop of the elementwise ``op`` on arrays of ``avals``; None where NumPy or kernels for large arrays compute it."""
    if not op.one_loop or attrs:
        return None
    dtypes = tuple(op.dtypes(avals)[0])
    large = math.prod(broadcast_shapes(op.name, avals)) >= LARGE_ELEMENTS
    return None if large and _by_kernels(eager_function(op, dtypes)) else loop_of(op, avals, dtypes)


def _by_kernels(function: Callable[..., Any]) -> bool:
    """Whether a kernel computes in place of ``function`` on large arrays."""
    return getattr(function, "takes_many_passes", False)


def numpy_function(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """The NumPy function of the elementwise ``op``; parameters and errors are those of `elementwise_function`."""
    shape = broadcast_shapes(op.name, avals)
    dtypes, out = op.dtypes(avals, **attrs)
    function = eager_function(op, dtypes)
    if not attrs and math.prod(shape) >= LARGE_ELEMENTS and _by_kernels(function):
        function = for_large(op, function, out)
    # a large result that the function can write into a given buffer
    pooled = (
        not attrs
        and isinstance(function, np.ufunc)
        and math.prod(shape) * out.itemsize >= LARGE
        and function.resolve_dtypes((*dtypes, None))[-1] == out
    )

    def compute(*arrays: Any) -> Any:
        arrays = tuple([np.asarray(x, dtype) for x, dtype in zip(arrays, dtypes, strict=True)])
        # as NumPy's result would be
        if pooled and all([x.flags.c_contiguous for x in arrays]):
            return np.asarray(function(*arrays, out=buffer_pool.empty_buffer(shape, out)), out)
        return np.asarray(function(*arrays, **attrs), out)

    return partial(quietly, compute)


def run_with_aval(op: OpDef, expected: Aval | tuple[Aval, ...], attrs: Mapping[str, Any], *arrays: Any) -> Any:
    """The NumPy result of ``op``, which is not elementwise and whose rule gives ``expected``."""
    result = quietly(op.eager, *arrays, **attrs)
    if op.moves:
        return result
    if op.multiple:
        assert isinstance(expected, tuple)
        return tuple(checked_result(op, r, a) for r, a in zip(result, expected, strict=True))
    assert isinstance(expected, Aval)
    return checked_result(op, result, expected)


def run_on_arrays(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """The eager result of ``op`` on arrays and numbers."""
    return run_eagerly(op, list(operands), [aval_of(op, x) for x in operands], attrs)


def checked_result(op: OpDef, result: Any, expected: Aval) -> np.ndarray[Any, Any]:
    """``result`` in the dtype of ``expected``. Raises ShapeError if its shape differs."""
    array = np.asarray(result, expected.dtype)
    if array.shape != expected.shape:
        raise ShapeError(f"{op.name} returned shape {array.shape}, its shape rule says {expected.shape}")
    return array
