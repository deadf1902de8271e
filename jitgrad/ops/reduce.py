"""Reductions of axes by monoids, and functions composed of these."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core import monoid
from jitgrad.core.aval import Array, Aval, Count, is_axis_of_number, normalize_axes, normalize_axis, reduced_axes
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.monoid import sum_dtype
from jitgrad.core.number_range import refusal_of_complex
from jitgrad.core.op import Kind, OpDef, define, define_reduction, reduced_shape
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.eager.compositions import composed
from jitgrad.eager.single_ops import single_op
from jitgrad.ops import arithmetic
from jitgrad.ops.arithmetic import add, astype, divide, sqrt, subtract
from jitgrad.ops.comparison import Selected, equal, greater, isfinite, less, where
from jitgrad.ops.complex_parts import squared_size
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.indexing import elements_at, take_along_axis
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import SUM, AxisArgument, expand_dims, place, reshape
from jitgrad.ops.operand import Operand, ValuesAndIndices, apply
from jitgrad.ops.product import product_gradient
from jitgrad.ops.quick_calls import prepare_extremum, prepare_running, prepare_total
from jitgrad.ops.transcendental import exp, log


def _position_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), axis = avals, attrs["axis"]
    if (x.size if axis is None else x.shape[axis]) == 0:
        raise ShapeError(f"argmax/argmin of {x} over axis {axis}: an empty axis has no largest or smallest element")
    return Aval(() if axis is None else reduced_shape(x.shape, (axis,)), np.dtype(np.int64))


def _prepare_position(name: str) -> Any:
    """The method of arrays, of which the function is a wrapper."""

    def prepare(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Array], Any]:
        method = operator.methodcaller(name, attrs["axis"])
        return method if attrs["axis"] is not None and avals[0].ndim > 1 else lambda x: np.asarray(method(x))

    return prepare


# --- gradients of the primitives ---------------------------------------------------------------------------------


def _extremum_vjp(lost: Callable[[Operand, Operand], Tensor]) -> Callable[..., Selected]:
    """The gradient, in equal shares to the elements that equal the extremum, not to those that ``lost`` to it.

    It is NaN where the extremum is: nothing equals that, and nothing loses to it.
    """

    def vjp(g: Tensor, out: Tensor, x: Tensor, *, axis: tuple[int, ...]) -> Selected:
        extremum = expand_dims(out, axis)
        attains = equal(x, extremum)
        count = expand_dims(apply(SUM, astype(attains, g.dtype), axis=axis), axis)
        share = divide(where(attains, expand_dims(g, axis), 0.0), count)
        return Selected(share, lambda: lost(x, extremum), kept=False, applied=True)

    return vjp


def _prod_vjp(g: Tensor, _out: Any, x: Tensor, *, axis: tuple[int, ...]) -> Tensor:
    return product_gradient(g, x, axis)


def _cumulative_sum(x: Array, *, axis: int, reverse: bool) -> Array:
    dtype = sum_dtype(np.asarray(x).dtype)
    if not reverse:
        return np.cumsum(x, axis=axis, dtype=dtype)
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis, dtype=dtype), axis)


def _cumulative_sum_vjp(g: Tensor, _out: Tensor, _x: Any, *, axis: int, reverse: bool) -> Tensor:
    return apply(CUMULATIVE_SUM, g, axis=axis, reverse=not reverse)


PROD = define_reduction(monoid.PROD_MONOID, _prod_vjp, takes_complex=True, prepare=prepare_total(np.multiply))
MAX = define_reduction(monoid.MAX_MONOID, _extremum_vjp(less), prepare=prepare_extremum(np.maximum))
MIN = define_reduction(monoid.MIN_MONOID, _extremum_vjp(greater), prepare=prepare_extremum(np.minimum))
ANY = define_reduction(monoid.ANY_MONOID, takes_complex=True, prepare=prepare_extremum(np.logical_or))
ALL = define_reduction(monoid.ALL_MONOID, takes_complex=True, prepare=prepare_extremum(np.logical_and))
ARGMAX = define(
    "argmax(x, *, axis)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    per_line=True,
    eager=lambda x, *, axis: np.argmax(x, axis=axis),
    prepare=_prepare_position("argmax"),
    abstract=_position_aval,
    domain=("real",),
    sample_attrs={"axis": 0},
)
ARGMIN = define(
    "argmin(x, *, axis)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    per_line=True,
    eager=lambda x, *, axis: np.argmin(x, axis=axis),
    prepare=_prepare_position("argmin"),
    abstract=_position_aval,
    domain=("real",),
    sample_attrs={"axis": 0},
)
CUMULATIVE_SUM = define(
    "cumulative_sum(x, *, axis, reverse)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    per_line=True,
    eager=_cumulative_sum,
    prepare=prepare_running(np.add, sum_dtype),
    abstract=lambda avals, _attrs: Aval(avals[0].shape, sum_dtype(avals[0].dtype)),
    vjp=(_cumulative_sum_vjp,),
    domain=("real",),
    sample_attrs={"axis": 0, "reverse": True},
    takes_complex=True,
)


def _apply(op: OpDef, x: Operand, axis: AxisArgument, keepdims: bool) -> Tensor:
    axes = reduced_axes(op.name, axis, aval_of(op, x).ndim)
    out = apply(op, x, axis=axes)
    return expand_dims(out, axes) if keepdims and axes else out


def _in_dtype(what: str, x: Operand, dtype: Any, reduce: Callable[[Operand], Tensor]) -> Tensor:
    """``reduce(x)`` with elements converted to ``dtype``, and the result again."""
    if dtype is None:
        return reduce(x)
    wanted = check_supported(what, dtype)
    return astype(reduce(astype(x, wanted)), wanted)


# --- the primitives ----------------------------------------------------------------------------------------------


@single_op
@takes_dim()
def sum(x: Operand, axis: AxisArgument = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over ``axis`` (None: all); bools and ints in 64 bits, floats in their own dtype.

    ``dtype`` is that of the elements, which are converted first, and of the result. Raises AxisError for an axis that
    does not exist or is named twice.
    """
    return _in_dtype("sum", x, dtype, lambda x: _apply(SUM, x, axis, keepdims))


@single_op
@takes_dim()
def prod(x: Operand, axis: AxisArgument = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over ``axis`` (None: all), dtypes as in :func:`sum`; its gradient is exact at zeros."""
    return _in_dtype("prod", x, dtype, lambda x: _apply(PROD, x, axis, keepdims))


def _with_position(
    position: Callable[..., Tensor], x: Operand, axis: int, keepdims: bool = False
) -> ValuesAndIndices:
    """The elements at ``position``, to which the gradient flows, and where they are."""
    if not aval_of(MAX, x).ndim:
        return ValuesAndIndices(reshape(x, ()), position(x, axis))
    if keepdims:
        indices = position(x, axis, keepdims=True)
        return ValuesAndIndices(take_along_axis(x, indices, axis), indices)
    indices = position(x, axis)
    return ValuesAndIndices(elements_at(x, indices, axis), indices)


def _largest(x: Operand, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    return _with_position(argmax, x, axis, keepdims)


def _smallest(x: Operand, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    return _with_position(argmin, x, axis, keepdims)


@takes_dim(_largest)  # outside: it notes whether the axis was given by position
@single_op
def max(x: Operand, axis: AxisArgument | Tensor = None, keepdims: bool = False) -> Tensor:
    """The largest element over ``axis``; NaN if any is. Equal largest elements share the gradient.

    ``max(x, dim=k)`` is torch's: a named tuple of the values and the positions of the first of them; and so is
    ``max(x, other)`` of two tensors, which is :func:`jitgrad.maximum`.

    Raises:
        ShapeError: an axis is empty.
    """
    if isinstance(axis, Tensor):
        return arithmetic.maximum(x, axis)
    return _apply(MAX, x, axis, keepdims)


@takes_dim(_smallest)  # outside: it notes whether the axis was given by position
@single_op
def min(x: Operand, axis: AxisArgument | Tensor = None, keepdims: bool = False) -> Tensor:
    """The smallest element over ``axis``; NaN if any is. Equal smallest elements share the gradient.

    ``min(x, dim=k)`` is torch's: a named tuple of the values and the positions of the first of them; and so is
    ``min(x, other)`` of two tensors, which is :func:`jitgrad.minimum`.

    Raises:
        ShapeError: an axis is empty.
    """
    if isinstance(axis, Tensor):
        return arithmetic.minimum(x, axis)
    return _apply(MIN, x, axis, keepdims)


@single_op
@takes_dim()
def any(x: Operand, axis: AxisArgument = None, keepdims: bool = False) -> Tensor:
    """Whether any element over ``axis`` is not zero (NaN is not zero)."""
    return _apply(ANY, x, axis, keepdims)


@single_op
@takes_dim()
def all(x: Operand, axis: AxisArgument = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over ``axis`` are not zero (NaN is not zero)."""
    return _apply(ALL, x, axis, keepdims)


@takes_dim()
def argmax(x: Operand, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 position of the first largest element or NaN; without ``axis`` in row-major order."""
    return _position(ARGMAX, x, axis, keepdims)


@takes_dim()
def argmin(x: Operand, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 position of the first smallest element or NaN; without ``axis`` in row-major order."""
    return _position(ARGMIN, x, axis, keepdims)


def _position(op: OpDef, x: Operand, axis: int | None, keepdims: bool) -> Tensor:
    ndim = aval_of(op, x).ndim
    k = None if axis is None or (ndim == 0 and is_axis_of_number(axis)) else normalize_axis(op.name, axis, ndim)
    out = apply(op, x, axis=k)
    return expand_dims(out, range(ndim) if k is None else (k,)) if keepdims and ndim else out


@takes_dim()
@single_op
def cumulative_sum(x: Operand, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The running sum along ``axis``, by default the only one; dtypes as in :func:`sum`.

    With ``include_initial`` the result starts with the empty sum, 0, and is longer by one.
    """
    aval = aval_of(CUMULATIVE_SUM, x)
    if axis is None and aval.ndim != 1:
        raise ArgumentError(f"cumulative_sum of {aval} needs an axis; reshape(-1) it first to sum over all elements")
    k = normalize_axis("cumulative_sum", 0 if axis is None else axis, aval.ndim)
    if aval.ndim == 0:
        raise ArgumentError("cumulative_sum of a 0-d array: there is no axis to run along")
    out = _in_dtype("cumulative_sum", x, dtype, lambda x: apply(CUMULATIVE_SUM, x, axis=k, reverse=False))
    if not include_initial:
        return out
    shape = tuple(n + (j == k) for j, n in enumerate(out.shape))
    return place(out, shape, tuple((int(j == k), 1, n) for j, n in enumerate(out.shape)))


# --- compositions ------------------------------------------------------------------------------------------------


def in_float_dtype(what: str, x: Operand) -> Operand:
    """``x`` in the dtype of means: float64 for ints, float32 for float16, as in NumPy. Raises DtypeError for complex ``x``."""
    dtype = aval_of(SUM, x).dtype
    if dtype.kind in "biu":
        return astype(x, np.dtype(np.float64))
    if dtype.kind == "c":
        raise refusal_of_complex(what, aval_of(SUM, x))
    return astype(x, np.dtype(np.float32)) if dtype.itemsize == 2 else x


def in_dtype_of(out: Tensor, x: Operand) -> Tensor:
    """``out`` in the floating dtype of ``x``, in which means are returned."""
    dtype = aval_of(SUM, x).dtype
    return astype(out, dtype) if dtype.kind == "f" and dtype != out.dtype else out


def _count(x: Operand, axis: AxisArgument, what: str) -> Count:
    shape = aval_of(SUM, x).shape
    return Count(math.prod(shape[k] for k in normalize_axes(what, axis, len(shape))))


@takes_dim()
@composed
def mean(x: Operand, axis: AxisArgument = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over ``axis``: float64 for ints and bools, else in ``x``'s dtype, or in ``dtype``; NaN of no elements."""
    x = x if dtype is None else astype(x, dtype)
    values = x if aval_of(SUM, x).dtype.kind == "c" else in_float_dtype("mean", x)
    count = _count(x, axis, "mean")  # first: it checks the axis
    return in_dtype_of(divide(sum(values, axis, keepdims), count), x)


def _unbiased_var(
    x: Operand, axis: AxisArgument = None, keepdims: bool = False, unbiased: bool = True, correction: float | None = None
) -> Tensor:
    return var(x, axis, keepdims, correction=int(unbiased) if correction is None else correction)


def _unbiased_std(
    x: Operand, axis: AxisArgument = None, keepdims: bool = False, unbiased: bool = True, correction: float | None = None
) -> Tensor:
    return std(x, axis, keepdims, correction=int(unbiased) if correction is None else correction)


@takes_dim(_unbiased_var, unbiased="unbiased", ddof="correction")
@composed
def var(x: Operand, axis: AxisArgument = None, keepdims: bool = False, *, correction: float = 0) -> Tensor:
    """The mean squared distance from the mean over ``axis``, divided by ``max(count - correction, 0)``.

    Computed in two passes, as NumPy does: the one-pass form loses all digits where the mean is large.

    ``var(x, dim=k)`` and ``var(x, unbiased=flag)`` are torch's, whose ``correction`` is 1 unless it is given.
    """
    values = x if aval_of(SUM, x).dtype.kind == "c" else in_float_dtype("var", x)
    count = _count(x, axis, "var")  # first: it checks the axis
    total = sum(squared_size(subtract(values, mean(values, axis, keepdims=True))), axis, keepdims)
    degrees = builtins.max(count - correction, 0)
    return in_dtype_of(divide(total, Count(degrees) if isinstance(degrees, int) else degrees), x)


def root(square: Tensor) -> Tensor:
    """The square root with the subgradient 0 at 0, where sqrt's would make 0 * inf a NaN."""
    zero = equal(square, 0)
    return where(zero, 0.0, sqrt(where(zero, 1.0, square)))


@takes_dim(_unbiased_std, unbiased="unbiased", ddof="correction")
@composed
def std(x: Operand, axis: AxisArgument = None, keepdims: bool = False, *, correction: float = 0) -> Tensor:
    """The square root of :func:`var`, with its arguments; its gradient is 0 where all elements are equal."""
    values = x if aval_of(SUM, x).dtype.kind == "c" else in_float_dtype("std", x)
    return in_dtype_of(root(var(values, axis, keepdims, correction=correction)), x)


def _shift(x: Operand, axes: Sequence[int]) -> Operand:
    """The largest element over ``axes``, or 0 where it is infinite, for exp(x - shift) not to overflow.

    What is computed with it does not depend on it, so it is kept out of the gradient.
    """
    largest = apply(STOP_GRADIENT, _apply(MAX, x, axes, keepdims=True))
    return where(isfinite(largest), largest, 0.0)


def _empty(x: Operand, axes: Sequence[int]) -> bool:
    return builtins.any(aval_of(SUM, x).shape[k] == 0 for k in axes)


@takes_dim()
@composed
def logsumexp(x: Operand, axis: AxisArgument = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over ``axis``, without overflow; -inf for no elements."""
    values = in_float_dtype("logsumexp", x)
    axes = reduced_axes("logsumexp", axis, aval_of(SUM, x).ndim)
    if _empty(x, axes):
        return in_dtype_of(log(sum(exp(values), axes, keepdims)), x)
    shift = _shift(values, axes)
    total = add(log(sum(exp(subtract(values, shift)), axes, keepdims=True)), shift)
    return in_dtype_of(total if keepdims else reshape(total, reduced_shape(total.shape, axes)), x)


@takes_dim()
@composed
def softmax(x: Operand, axis: AxisArgument = -1, *, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) over ``axis``, without overflow, in ``dtype`` if one is given."""
    x = x if dtype is None else astype(x, check_supported("softmax", dtype))
    values = in_float_dtype("softmax", x)
    axes = reduced_axes("softmax", axis, aval_of(SUM, x).ndim)
    if _empty(x, axes):
        return in_dtype_of(exp(values), x)
    power = exp(subtract(values, _shift(values, axes)))
    return in_dtype_of(divide(power, sum(power, axes, keepdims=True)), x)


@takes_dim()
@composed
def log_softmax(x: Operand, axis: AxisArgument = -1, *, dtype: Any = None) -> Tensor:
    """log(softmax(x)) over ``axis``, without overflow or underflow, in ``dtype`` if one is given."""
    x = x if dtype is None else astype(x, check_supported("log_softmax", dtype))
    values = in_float_dtype("log_softmax", x)
    axes = reduced_axes("log_softmax", axis, aval_of(SUM, x).ndim)
    if _empty(x, axes):
        return in_dtype_of(exp(values), x)
    shifted = subtract(values, _shift(values, axes))
    return in_dtype_of(subtract(shifted, log(sum(exp(shifted), axes, keepdims=True))), x)
