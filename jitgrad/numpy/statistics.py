"""NumPy's sums, extrema, means and variances, without and with regard to NaN."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axes, normalize_axis, real_dtype_of
from jitgrad.core.errors import ArgumentError
from jitgrad.core.monoid import sum_dtype
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.numpy.arguments import FLOAT64, INT64, floating, in_dtype, refuse, tensor_of
from jitgrad.numpy.output import takes_out
from jitgrad.numpy.shapes import ravel
from jitgrad.ops import arithmetic, reduce
from jitgrad.ops.arithmetic import add, astype, conjugated, divide, multiply, subtract
from jitgrad.ops.comparison import equal, isnan, logical_not, not_equal, where
from jitgrad.ops.complex_parts import is_complex, squared_size
from jitgrad.ops.joining import concat
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import broadcast_to, expand_dims, reshape
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.running_products import cumulative_prod

_where = where


@takes_out
def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Tensor:
    """The sum over ``axis`` (None: all), of the elements where ``where`` is true, plus ``initial``."""
    total = reduce.sum(_only(a, where, 0), axis, keepdims, dtype=dtype)
    return total if initial is None else add(total, initial)


@takes_out
def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Tensor:
    """The product over ``axis`` (None: all), of the elements where ``where`` is true, times ``initial``."""
    product = reduce.prod(_only(a, where, 1), axis, keepdims, dtype=dtype)
    return product if initial is None else multiply(product, initial)


@beside_operands
def _only(a: Any, chosen: Any, otherwise: Any) -> Tensor:
    given = tensor_of(a)
    return given if chosen is None or chosen is True else _where(tensor_of(chosen), given, otherwise)


@takes_out
def max(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Tensor:
    """The largest element over ``axis``, at least ``initial``; NaN if any is."""
    if where is not None and where is not True and initial is None:
        raise ArgumentError("jitgrad.numpy.max: where= needs initial=, as in NumPy: the result where nothing is chosen")
    largest = reduce.max(_only(a, where, initial), axis=axis, keepdims=keepdims)
    return largest if initial is None else arithmetic.maximum(largest, initial)


@takes_out
def min(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Tensor:
    """The smallest element over ``axis``, at most ``initial``; NaN if any is."""
    if where is not None and where is not True and initial is None:
        raise ArgumentError("jitgrad.numpy.min: where= needs initial=, as in NumPy: the result where nothing is chosen")
    smallest = reduce.min(_only(a, where, initial), axis=axis, keepdims=keepdims)
    return smallest if initial is None else arithmetic.minimum(smallest, initial)


amax = max
amin = min


@takes_out
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """The mean over ``axis``."""
    refuse("mean", where=where)
    return reduce.mean(in_dtype(tensor_of(a), dtype), axis, keepdims)


@takes_out
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False,
    *, where: Any = None, mean: Any = None, correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The mean squared distance from the mean over ``axis``, divided by the count less ``ddof``."""
    refuse("var", where=where, mean=mean)
    return reduce.var(in_dtype(tensor_of(a), dtype), axis, keepdims, correction=ddof if correction is None else correction)


@takes_out
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False,
    *, where: Any = None, mean: Any = None, correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The square root of :func:`var`."""
    refuse("std", where=where, mean=mean)
    return reduce.std(in_dtype(tensor_of(a), dtype), axis, keepdims, correction=ddof if correction is None else correction)


@takes_out
def all(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Whether all elements over ``axis`` are not zero."""
    return reduce.all(_only(a, where, True), axis, keepdims)


@takes_out
def any(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Whether any element over ``axis`` is not zero."""
    return reduce.any(_only(a, where, False), axis, keepdims)


@takes_out
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first largest element."""
    return reduce.argmax(tensor_of(a), axis, keepdims)


@takes_out
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first smallest element."""
    return reduce.argmin(tensor_of(a), axis, keepdims)


@takes_out
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """The largest less the smallest element over ``axis``."""
    return subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


@composed
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The number of elements over ``axis`` that are not zero."""
    return reduce.sum(not_equal(tensor_of(a), 0), axis, keepdims, dtype=INT64)


@takes_out
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
    """The running sum along ``axis`` (None: flattened)."""
    given = tensor_of(a)
    return reduce.cumulative_sum(ravel(given) if axis is None else given, 0 if axis is None else axis, dtype=dtype)


@takes_out
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
    """The running product along ``axis`` (None: flattened), whose gradient is exact at zeros."""
    given = ravel(a) if axis is None else tensor_of(a)
    k = normalize_axis("cumprod", 0 if axis is None else axis, given.ndim)
    return cumulative_prod(in_dtype(given, dtype or sum_dtype(given.dtype)), k)


@beside_operands
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean weighted by ``weights``, in the shape of ``a`` or of the one ``axis``; with ``returned`` and their sum."""
    given = tensor_of(a)
    if weights is None:
        out = mean(given, axis, keepdims=keepdims)
        count = math.prod(given.shape[k] for k in normalize_axes("average", axis, given.ndim))
        return (out, broadcast_to(np.asarray(float(count), out.dtype), out.shape)) if returned else out
    w = tensor_of(weights)
    if w.shape != given.shape:
        if not isinstance(axis, int) or w.ndim != 1:
            raise ArgumentError(f"average: weights {w.aval} for {given.aval}: one per element, or with axis=k one per slice")
        k = normalize_axis("average", axis, given.ndim)
        w = broadcast_to(reshape(w, tuple(-1 if j == k else 1 for j in range(given.ndim))), given.shape)
    w = astype(w, np.result_type(given.dtype, w.dtype, *([FLOAT64] if given.dtype.kind not in "fc" else [])), copy=False)
    total = reduce.sum(w, axis, keepdims)
    out = divide(reduce.sum(multiply(given, w), axis, keepdims), total)
    return (out, total) if returned else out


@beside_operands
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: Any = None, aweights: Any = None,
) -> Tensor:  # fmt: skip
    """The covariance matrix of the rows of ``m`` (and ``y``), or of the columns with ``rowvar=False``."""
    x = _variables(m, rowvar)
    x = x if y is None else concat([x, _variables(y, rowvar)], 0)
    correction = float((0 if bias else 1) if ddof is None else ddof)
    if aweights is None and fweights is None:
        centred = subtract(x, reduce.mean(x, 1, keepdims=True))
        product = matmul(centred, conjugated(centred.T))
        return _scalar_if_one(divide(product, builtins.max(x.shape[1] - correction, 0.0)))
    given = [astype(tensor_of(v), FLOAT64, copy=False) for v in (fweights, aweights) if v is not None]
    w = given[0] if len(given) == 1 else multiply(*given)
    total = reduce.sum(w)
    centred = subtract(x, divide(reduce.sum(multiply(x, w), 1, keepdims=True), total))
    spread = total if aweights is None else divide(reduce.sum(multiply(w, given[-1])), total)
    # of frequencies alone, the correction is a number of observations
    factor = subtract(total, correction if aweights is None else multiply(correction, spread))
    return _scalar_if_one(divide(matmul(multiply(centred, w), conjugated(centred.T)), arithmetic.maximum(factor, 0.0)))


def _variables(m: Any, rowvar: bool) -> Tensor:
    given = tensor_of(m)
    x = astype(given, np.complex128 if is_complex(given) else FLOAT64, copy=False)  # as in NumPy, of float32 too
    x = expand_dims(x, 0) if x.ndim < 2 else x if rowvar else x.T
    return expand_dims(x, 0) if x.ndim < 2 else x


def _scalar_if_one(x: Tensor) -> Tensor:
    return reshape(x, ()) if x.shape == (1, 1) else x


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    """The matrix of correlation coefficients; see :func:`cov`."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return divide(c, c)
    deviation = arithmetic.sqrt(c.diagonal())
    return arithmetic.clip(divide(divide(c, expand_dims(deviation, 1)), expand_dims(deviation, 0)), -1.0, 1.0)


# --- without regard to NaN -----------------------------------------------------------------------------------------


def _filled(a: Any, value: float) -> Tensor:
    given = tensor_of(a)
    return where(isnan(given), value, given) if given.dtype.kind in "fc" else given


@composed
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are not NaN."""
    return sum(_filled(a, 0.0), axis, dtype, out, keepdims)


@composed
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    """The product of the elements that are not NaN."""
    return prod(_filled(a, 1.0), axis, dtype, out, keepdims)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Tensor:
    """The running sum, with NaN counted as 0."""
    return cumsum(_filled(a, 0.0), axis, dtype, out)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Tensor:
    """The running product, with NaN counted as 1."""
    return cumprod(_filled(a, 1.0), axis, dtype, out)


def _count(a: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return astype(reduce.sum(logical_not(isnan(a)), axis, keepdims), real_dtype_of(a.dtype))


@composed
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN; NaN where there are none."""
    given = in_dtype(floating(a), dtype)
    if given.dtype == np.float16:  # whose sums and counts overflow where the mean does not
        return astype(nanmean(given, axis, np.float32, out, keepdims), np.float16)
    return divide(nansum(given, axis, None, out, keepdims), _count(given, axis, keepdims))


@composed
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False
) -> Tensor:
    """:func:`var` of the elements that are not NaN; NaN where there are no more than ``ddof``."""
    if tensor_of(a).dtype.kind not in "fc":
        return var(a, axis, dtype, out, ddof, keepdims)
    given = in_dtype(floating(a), dtype)
    if given.dtype == np.float16:
        return astype(nanvar(given, axis, np.float32, out, ddof, keepdims), np.float16)
    distance = subtract(given, nanmean(given, axis, keepdims=True))
    # not nansum: the distance of an infinite number is NaN, and so is the variance
    total = sum(where(isnan(given), 0.0, squared_size(distance)), axis, None, out, keepdims)
    degrees = subtract(_count(given, axis, keepdims), ddof)
    return divide(total, where(degrees > 0, degrees, math.nan))


@composed
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False
) -> Tensor:
    """The square root of :func:`nanvar`."""
    square = nanvar(a, axis, dtype, out, ddof, keepdims)
    zero = equal(square, 0)
    return where(zero, 0.0, arithmetic.sqrt(where(zero, 1.0, square)))


def _nan_extremum(choose: Callable[..., Tensor], worst: float, a: Any, axis: Any, keepdims: bool) -> Tensor:
    given = tensor_of(a)
    if given.dtype.kind != "f":
        return choose(given, axis, keepdims)
    nothing = reduce.all(isnan(given), axis, keepdims)
    return where(nothing, math.nan, choose(_filled(given, worst), axis, keepdims))


@takes_out
@composed
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """The largest of the elements that are not NaN."""
    return _nan_extremum(reduce.max, -math.inf, a, axis, keepdims)


@takes_out
@composed
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest of the elements that are not NaN."""
    return _nan_extremum(reduce.min, math.inf, a, axis, keepdims)


def nanargmax(a: Any, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first largest element that is not NaN."""
    return argmax(_filled(a, -math.inf), axis, out, keepdims=keepdims)


def nanargmin(a: Any, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first smallest element that is not NaN."""
    return argmin(_filled(a, math.inf), axis, out, keepdims=keepdims)
