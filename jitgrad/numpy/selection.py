"""NumPy's choices among elements, and its comparisons of arrays."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import broadcast_shapes, normalize_axes
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import floating, in_dtype, operand, tensor_of, tensors_of
from jitgrad.numpy.order import nonzero
from jitgrad.ops import arithmetic, comparison, grids, reduce, rounding
from jitgrad.ops.arithmetic import add, multiply, subtract
from jitgrad.ops.bit_patterns import population_count
from jitgrad.ops.comparison import equal, isfinite, isnan, less_equal, logical_and, logical_or
from jitgrad.ops.movement import reshape
from jitgrad.ops.operand import is_number
from jitgrad.ops.placement import beside_operands


@beside_operands
def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """``x`` where the condition holds, else ``y``; without them the positions where it holds, as `nonzero` gives them."""
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    return comparison.where(tensor_of(condition), operand(x), operand(y))


@beside_operands
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Per element the choice of the first condition that holds, or ``default``."""
    if len(condlist) != len(choicelist):
        raise ArgumentError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    choices = tensors_of(choicelist)
    weak = default.__class__(0) if is_number(default) else tensor_of(default).dtype
    out = in_dtype(tensor_of(default), np.result_type(*(c.dtype for c in choices), weak))
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        out = comparison.where(tensor_of(condition), choice, out)
    return out


@beside_operands
def choose(a: Any, choices: Sequence[Any]) -> Tensor:
    """Per element the choice of that number."""
    number = tensor_of(a)
    return select([equal(number, k) for k in range(len(choices))], choices)


@beside_operands
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """Per element the function (or number) of the last condition that holds; one more is for where none does, else 0.

    Each function gets all of ``x``: gradients reach only what is chosen.
    """
    given = tensor_of(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if conditions and isinstance(conditions[0], (bool, np.bool_)):
        conditions = [conditions]
    functions: list[Any] = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(f"piecewise: {len(functions)} functions for {len(conditions)} conditions; as many, or one more")
    rest = functions.pop() if len(functions) > len(conditions) else 0

    def value(function: Callable[..., Any] | Any) -> Any:
        return in_dtype(tensor_of(function(given, *args, **kw) if callable(function) else function), given.dtype)

    out = value(rest)
    for condition, function in zip(conditions, functions, strict=True):
        out = comparison.where(tensor_of(condition), value(function), out)
    return out if out.shape == given.shape else arithmetic.add(out, multiply(given, 0))


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``|a - b| <= atol + rtol |b|`` per element; infinities are close to themselves."""
    x, y = floating(a), floating(b)
    near = less_equal(arithmetic.abs(subtract(x, y)), add(atol, multiply(rtol, arithmetic.abs(y))))
    close = logical_or(equal(x, y), logical_and(near, isfinite(y)))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close; see :func:`isclose`."""
    return reduce.all(isclose(a, b, rtol, atol, equal_nan))


@beside_operands
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have one shape and equal elements."""
    x, y = tensor_of(a1), tensor_of(a2)
    return reduce.all(_same(x, y, equal_nan)) if x.shape == y.shape else tensor_of(False)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays broadcast together, and are equal then."""
    x, y = tensor_of(a1), tensor_of(a2)
    try:
        broadcast_shapes("array_equiv", [x.aval, y.aval])
    except ShapeError:
        return tensor_of(False)
    return reduce.all(equal(x, y))


def _same(x: Tensor, y: Tensor, equal_nan: bool) -> Tensor:
    same = equal(x, y)
    floats = builtins.all(v.dtype.kind == "f" for v in (x, y))
    return logical_or(same, logical_and(isnan(x), isnan(y))) if equal_nan and floats else same


def modf(x: Any, /) -> tuple[Tensor, Tensor]:
    """The fraction and the whole part of each number, both with its sign; the fraction of infinity is 0."""
    given = floating(x)
    whole = rounding.trunc(given)
    negative, infinite = comparison.signbit(given), comparison.isinf(given)
    x, less = comparison.where(infinite, 0.0, given), comparison.where(infinite, 0.0, whole)
    return comparison.where(negative, arithmetic.negative(subtract(less, x)), subtract(x, less)), whole


def trim_zeros(filt: Any, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Tensor:
    """``filt`` without the zeros at the front ("f") and the back ("b") of the axes named (None: all).

    The shape depends on the values: a @jit function raises TracedValueError.
    """
    x = tensor_of(filt)
    values = x.concrete("trim_zeros") != 0
    kept = [slice(None)] * x.ndim
    for k in normalize_axes("trim_zeros", axis, x.ndim):
        places = np.flatnonzero(values.any(tuple(j for j in range(x.ndim) if j != k)))
        first, last = (places[0], places[-1] + 1) if places.size else (0, 0)
        full = not places.size
        kept[k] = slice(int(first) if full or "f" in trim.lower() else 0, int(last) if full or "b" in trim.lower() else None)
    return x[tuple(kept)]


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """The positions of the diagonal of an array whose axes have one length. Raises ShapeError for another."""
    x = tensor_of(arr)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ShapeError(f"diag_indices_from of {x.aval}: expected at least two axes, of one length")
    return np.diag_indices(x.shape[0], x.ndim)


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    """The positions of the lower triangle of a matrix, up to its ``k``-th diagonal."""
    rows, columns = tensor_of(arr).shape
    return np.tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    """The positions of the upper triangle of a matrix, from its ``k``-th diagonal."""
    rows, columns = tensor_of(arr).shape
    return np.triu_indices(rows, k, columns)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Vectors of positions, or masks, as indices of a grid: each varies along an axis of its own.

    Raises ArgumentError for what is no vector.
    """
    if not builtins.any(isinstance(x, Tensor) for x in args):
        return np.ix_(*args)
    out = []
    for k, x in enumerate(map(tensor_of, args)):
        if x.ndim != 1:
            raise ArgumentError(f"ix_ takes vectors, got {x.aval}")
        positions = nonzero(x)[0] if x.dtype == np.bool_ else x
        out.append(reshape(positions, tuple(-1 if j == k else 1 for j in range(len(args)))))
    return tuple(out)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """The places along each axis of an array of ``shape``, of places in it in a row: NumPy's own of what is no tensor.

    A trace does not look whether they are in bounds. Raises ValueError if they are not, ArgumentError for an unknown order.
    """
    if not isinstance(indices, Tensor):
        return np.unravel_index(indices, shape, order)  # type: ignore[call-overload,no-any-return]
    if order not in ("C", "F"):
        raise ArgumentError(f"unravel_index: order must be 'C' or 'F', got {shown(order)}")
    if isinstance(indices._data, np.ndarray):
        np.unravel_index(indices._data, shape)
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    places = grids.unravel_index(indices, lengths[::-1] if order == "F" else lengths)
    return places[::-1] if order == "F" else places


def bitwise_count(x: Any) -> Tensor:
    """How many bits of the absolute value of each integer are set, as uint8.

    Raises DtypeError for others than integers.
    """
    given = tensor_of(x)
    size = arithmetic.abs(given) if given.dtype.kind == "i" else given
    return arithmetic.astype(population_count(size), np.dtype(np.uint8))
