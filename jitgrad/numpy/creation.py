"""NumPy's functions that make arrays, in NumPy's default dtypes: floats are float64."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.numpy.arguments import FLOAT64, INT64, common_dtype, floating, in_dtype, refuse, tensor_of, tensors_of
from jitgrad.ops import creation, grids, triangles
from jitgrad.ops.arithmetic import add, divide, multiply, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.creation import iota
from jitgrad.ops.diagonals import diagonal, diagonal_matrices
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import expand_dims, flatten, moveaxis, reshape
from jitgrad.ops.placement import beside_operands, placing
from jitgrad.ops.rounding import floor
from jitgrad.ops.transcendental import exp, log, pow


@beside_operands
def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: str = "K", subok: bool = False, ndmin: int = 0
) -> Tensor:
    """A tensor of nested sequences, numbers, arrays and tensors, through which gradients flow to the tensors in it."""
    refuse("array", order=order, subok=subok or None)
    given = tensor_of(object)
    out = tensor_of(given, dtype) if isinstance(object, (list, tuple)) or not copy else creation.clone(tensor_of(given, dtype))
    return out if out.ndim >= ndmin else reshape(out, (1,) * (ndmin - out.ndim) + out.shape)


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None) -> Tensor:
    """``a`` as a tensor: itself if it is one, and over the memory of an ndarray."""
    refuse("asarray", order=order)
    return array(a, dtype) if copy else tensor_of(a, dtype)


def asanyarray(a: Any, dtype: Any = None, order: str | None = None) -> Tensor:
    """:func:`asarray`."""
    return asarray(a, dtype, order)


def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """:func:`asarray` with at least one axis."""
    out = asarray(a, dtype)
    return out if out.ndim else reshape(out, (1,))


def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """A copy of ``a``, through which gradients flow."""
    return array(a, order=order, subok=subok)


def zeros(shape: Any, dtype: Any = None, order: str = "C") -> Tensor:
    """Zeros, float64 by default."""
    refuse("zeros", order=order)
    return creation.full(shape, 0, dtype=dtype or FLOAT64)


def ones(shape: Any, dtype: Any = None, order: str = "C") -> Tensor:
    """Ones, float64 by default."""
    refuse("ones", order=order)
    return creation.full(shape, 1, dtype=dtype or FLOAT64)


def empty(shape: Any, dtype: Any = None, order: str = "C") -> Tensor:
    """Zeros, to be filled: memory that holds anything would differ between runs."""
    return zeros(shape, dtype, order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Tensor:
    """``fill_value`` everywhere, to which gradients flow if it is a tensor."""
    refuse("full", order=order)
    value = tensor_of(fill_value)
    return creation.full(shape, value, dtype=dtype or value.dtype)


def _like(a: Any, fill: Any, dtype: Any, order: str, shape: Any) -> Tensor:
    refuse("full_like", order=order)
    model = tensor_of(a)
    if shape is None:
        return creation.full_like(model, fill, dtype=dtype)
    return creation.full(shape, fill, dtype=dtype or model.dtype, device=model.device)


def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Tensor:
    """Zeros in the shape and dtype of ``a``, unless others are given."""
    return _like(a, 0, dtype, order, shape)


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Tensor:
    """Ones in the shape and dtype of ``a``, unless others are given."""
    return _like(a, 1, dtype, order, shape)


def empty_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Tensor:
    """Zeros, to be filled, in the shape and dtype of ``a``, unless others are given."""
    return _like(a, 0, dtype, order, shape)


def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Tensor:
    """``fill_value`` in the shape and dtype of ``a``, unless others are given."""
    return _like(a, tensor_of(fill_value), dtype, order, shape)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Numbers at equal distances up to but without ``stop``: int64 for ints, else float64."""
    bounds = [x for x in (start, stop, step) if x is not None]
    if dtype is None and any(tensor_of(x).dtype.kind == "f" for x in bounds):
        dtype = FLOAT64
    return creation.arange(start, stop, step, dtype=dtype)


@beside_operands
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """``num`` numbers at equal distances from ``start`` to ``stop``; both may be arrays, and get gradients.

    With ``retstep`` a pair of them and of the distance.
    """
    first, last = floating(start), floating(stop)
    intervals = num - 1 if endpoint else num
    step = divide(subtract(last, first), float(intervals) if intervals > 0 else float("nan"))
    shape = (num,) + (1,) * builtins.max(first.ndim, last.ndim)
    k = reshape(iota((num,), 0, FLOAT64), shape)
    values = add(multiply(k, step if intervals > 0 else subtract(last, first)), first)
    if endpoint and num > 1:
        values = where(equal(k, float(num - 1)), last, values)
    if dtype is not None and check_supported("linspace", dtype).kind in "iu":
        values = floor(values)
    out = in_dtype(moveaxis(values, 0, axis) if axis else values, dtype or common_dtype(first, last))
    return (out, step) if retstep else out


@placing
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0,
    *, device: Any = None,
) -> Tensor:  # fmt: skip
    """``base`` to the powers of :func:`linspace`."""
    return in_dtype(pow(base, linspace(start, stop, num, endpoint, axis=axis)), dtype)


@beside_operands
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """``num`` numbers with equal quotients from ``start`` to ``stop``, which have one sign."""
    first, last = floating(start), floating(stop)
    growth = log(divide(last, first))
    share = linspace(0.0, 1.0, num, endpoint)
    share = reshape(share, (num,) + (1,) * builtins.max(first.ndim, last.ndim))
    values = multiply(exp(multiply(share, growth)), first)
    if endpoint and num > 1:
        values = where(equal(share, 1.0), last, values)
    return in_dtype(moveaxis(values, 0, axis) if axis else values, dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, order: str = "C") -> Tensor:
    """A matrix with ones on the ``k``-th diagonal, float64 by default."""
    refuse("eye", order=order)
    return creation.eye(N, M, k, dtype=dtype or FLOAT64)


def identity(n: int, dtype: Any = None) -> Tensor:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Ones at and below the ``k``-th diagonal."""
    return triangles.tril(ones((N, N if M is None else M), dtype), k)


def tril(m: Any, k: int = 0) -> Tensor:
    """``m`` with zeros above the ``k``-th diagonal."""
    return triangles.tril(tensor_of(m), k)


def triu(m: Any, k: int = 0) -> Tensor:
    """``m`` with zeros below the ``k``-th diagonal."""
    return triangles.triu(tensor_of(m), k)


def diag(v: Any, k: int = 0) -> Tensor:
    """The ``k``-th diagonal of a matrix, or a matrix with the vector ``v`` on it."""
    v = tensor_of(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ShapeError(f"jitgrad.numpy.diag takes a vector or a matrix, got {v.aval}")
    return diagonal_matrices(v, operator.index(k))


def diagflat(v: Any, k: int = 0) -> Tensor:
    """A matrix with all elements of ``v`` on the ``k``-th diagonal."""
    return diag(flatten(tensor_of(v)), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of the vector ``x`` in columns, the highest first unless ``increasing``."""
    x = tensor_of(x)
    count = x.shape[0] if N is None else N
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return pow(expand_dims(x, 1), np.ascontiguousarray(powers).astype(x.dtype if x.dtype.kind == "f" else INT64))


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the grid over vectors; with ``sparse`` in shapes that broadcast to it."""
    found = grids.meshgrid(*tensors_of(xi), indexing=indexing)
    if not sparse:
        return found
    swapped = [1, 0, *range(2, len(xi))] if indexing == "xy" and len(xi) > 1 else list(range(len(xi)))
    return tuple(
        reshape(flatten(tensor_of(x)), tuple(-1 if k == axis else 1 for k in range(len(xi))))
        for x, axis in zip(xi, swapped, strict=True)
    )


def indices(dimensions: Any, dtype: Any = int) -> Tensor:
    """The coordinates of every element of an array of that shape, stacked."""
    shape = tuple(dimensions)
    return in_dtype(stack([iota(shape, k) for k in range(len(shape))]), dtype)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = None, **keywords: Any) -> Any:
    """``function`` of the coordinates of every element of an array of that shape."""
    grid = indices(shape, dtype or FLOAT64)
    return function(*(grid[k] for k in range(len(shape))), **keywords)
