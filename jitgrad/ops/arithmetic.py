"""Arithmetic: sums, products, roots, extrema, and conversion of dtypes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy._core import umath

from jitgrad.core.aval import Aval, Dtype, like_ufunc, same_dtype
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import OpDef, define_elementwise
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.eager.compositions import composed
from jitgrad.ops.comparison import (
    Selected,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    only_where,
    where,
    zero_gradient,
)
from jitgrad.ops.operand import Operand, apply

# --- sums and products -------------------------------------------------------------------------------------------

ADD = define_elementwise(
    "add(x, y)",
    scalar="x + y",
    eager=np.add,
    dtypes=like_ufunc(np.add),
    vjp=(lambda g, _out, _x, _y: g, lambda g, _out, _x, _y: g),
    domain=("real", "real"),
    takes_complex=True,
)
SUBTRACT = define_elementwise(
    "subtract(x, y)",
    scalar="x - y",
    eager=np.subtract,
    dtypes=like_ufunc(np.subtract),
    vjp=(lambda g, _out, _x, _y: g, lambda g, _out, _x, _y: negative(g)),
    domain=("real", "real"),
    takes_complex=True,
)
MULTIPLY = define_elementwise(
    "multiply(x, y)",
    scalar="x * y",
    eager=np.multiply,
    dtypes=like_ufunc(np.multiply),
    vjp=(lambda g, _out, _x, y: multiply(g, y), lambda g, _out, x, _y: multiply(g, x)),
    domain=("real", "real"),
    takes_complex=True,
)
DIVIDE = define_elementwise(
    "divide(x, y)",
    scalar="x / y",
    eager=np.divide,
    dtypes=like_ufunc(np.divide),
    vjp=(
        lambda g, _out, _x, y: divide(g, y),
        lambda g, out, _x, y: negative(multiply(divide(g, y), out)),
    ),
    domain=("real", "nonzero"),
    takes_complex=True,
)
NEGATIVE = define_elementwise(
    "negative(x)",
    scalar="-x",
    eager=np.negative,
    dtypes=like_ufunc(np.negative),
    vjp=(lambda g, _out, _x: negative(g),),
    domain=("real",),
    takes_complex=True,
)
POSITIVE = define_elementwise(
    "positive(x)",
    scalar="x",
    eager=np.positive,
    dtypes=like_ufunc(np.positive),
    vjp=(lambda g, _out, _x: g,),
    domain=("real",),
    takes_complex=True,
)
RECIPROCAL = define_elementwise(
    "reciprocal(x)",
    scalar="1 / x",
    eager=lambda x: 1 / x,
    vjp=(lambda g, out, _x: negative(multiply(g, multiply(out, out))),),
    domain=("nonzero",),
    takes_complex=True,
    one_loop=True,
)
SQUARE = define_elementwise(
    "square(x)",
    scalar="x * x",
    eager=np.square,
    dtypes=like_ufunc(np.square),
    vjp=(lambda g, _out, x: multiply(g, multiply(2.0, x)),),
    domain=("real",),
    takes_complex=True,
)


def add(x: Operand, y: Operand, *, alpha: Operand | None = None) -> Tensor:
    """``x + y``, or ``x + alpha * y``."""
    return apply(ADD, x, y if alpha is None else multiply(y, alpha))


def subtract(x: Operand, y: Operand, *, alpha: Operand | None = None) -> Tensor:
    """``x - y``, or ``x - alpha * y``. Raises DtypeError for two bools, as NumPy does."""
    return apply(SUBTRACT, x, y if alpha is None else multiply(y, alpha))


def multiply(x: Operand, y: Operand) -> Tensor:
    """``x * y``."""
    return apply(MULTIPLY, x, y)


def divide(x: Operand, y: Operand) -> Tensor:
    """``x / y`` in floating point, also for integers; IEEE infinities and NaN for a zero ``y``."""
    return apply(DIVIDE, x, y)


def negative(x: Operand) -> Tensor:
    """``-x``. Raises DtypeError for bools."""
    return apply(NEGATIVE, x)


def positive(x: Operand) -> Tensor:
    """``+x``: the same elements."""
    return apply(POSITIVE, x)


def reciprocal(x: Operand) -> Tensor:
    """``1 / x`` in floating point, also for integers (where NumPy would truncate to 0)."""
    return apply(RECIPROCAL, x)


def square(x: Operand) -> Tensor:
    """``x * x``."""
    return apply(SQUARE, x)


# --- magnitude, sign, roots --------------------------------------------------------------------------------------

ABS = define_elementwise(
    "abs(x)",
    scalar="abs(x)",
    eager=np.absolute,
    dtypes=like_ufunc(np.absolute),
    vjp=(lambda g, _out, x: multiply(g, conjugated(sign(x))),),
    domain=("nonzero",),
    takes_complex=True,
)
CONJ: OpDef = define_elementwise(
    "conj(x)",
    scalar=None,
    eager=np.conjugate,
    dtypes=like_ufunc(np.conjugate),
    vjp=(lambda g, _out, _x: apply(CONJ, g),),
    domain=("complex",),
    takes_complex=True,
)


def _sign_gradient(g: Tensor, out: Any, x: Any) -> Tensor | Selected:
    """Zero of real ``x``. A complex sign, ``x / |x|``, turns with ``x``; its gradient at 0 is 0."""
    if x.dtype.kind != "c":
        return zero_gradient(g, out)
    length = abs(x)
    zero = equal(length, 0.0)
    across = subtract(g, conjugated(multiply(g, multiply(out, out))))
    return where(zero, 0.0, divide(across, multiply(where(zero, 1.0, length), 2.0)))


SIGN = define_elementwise(
    "sign(x)",
    scalar="sign(x)",
    eager=np.sign,
    dtypes=like_ufunc(np.sign),
    vjp=(_sign_gradient,),
    domain=("nonzero",),
    takes_complex=True,
)
COPYSIGN = define_elementwise(
    "copysign(x, y)",
    scalar="copysign(x, y)",
    eager=np.copysign,
    dtypes=like_ufunc(np.copysign),
    vjp=(lambda g, _out, x, y: multiply(g, multiply(sign(x), copysign(1.0, y))), zero_gradient),
    domain=("nonzero", "nonzero"),
)
SQRT = define_elementwise(
    "sqrt(x)",
    scalar="sqrt(x)",
    eager=np.sqrt,
    vjp=(lambda g, out, _x: divide(multiply(g, 0.5), out),),
    domain=("positive",),
    takes_complex=True,
)
RSQRT = define_elementwise(
    "rsqrt(x)",
    scalar="rsqrt(x)",
    eager=lambda x: 1 / np.sqrt(x),
    vjp=(lambda g, out, _x: multiply(multiply(g, -0.5), multiply(multiply(out, out), out)),),
    domain=("positive",),
    takes_complex=True,
    one_loop=True,
)


def conjugated(x: Any) -> Any:
    """The complex conjugate of a complex tensor; everything else as it is."""
    return apply(CONJ, x) if x.dtype.kind == "c" else x


def abs(x: Operand) -> Tensor:
    """``|x|``, real; its gradient at 0 is 0."""
    return apply(ABS, x)


def sign(x: Operand) -> Tensor:
    """-1, 0 or 1; NaN for NaN; of complex numbers ``x / |x|``."""
    return apply(SIGN, x)


def copysign(x: Operand, y: Operand) -> Tensor:
    """The magnitude of ``x`` with the sign bit of ``y``, floating."""
    return apply(COPYSIGN, x, y)


def sqrt(x: Operand) -> Tensor:
    """The square root, correctly rounded; NaN below 0."""
    return apply(SQRT, x)


def rsqrt(x: Operand) -> Tensor:
    """``1 / sqrt(x)``."""
    return apply(RSQRT, x)


# --- extrema -----------------------------------------------------------------------------------------------------


def _halved_if_equal(g: Tensor, x: Any, y: Any) -> Tensor:
    return where(equal(x, y), multiply(g, 0.5), g)


MAXIMUM = define_elementwise(
    "maximum(x, y)",
    scalar="maximum(x, y)",
    eager=np.maximum,
    dtypes=like_ufunc(np.maximum),
    vjp=(
        lambda g, _out, x, y: only_where(greater_equal(x, y), _halved_if_equal(g, x, y)),
        lambda g, _out, x, y: only_where(greater_equal(y, x), _halved_if_equal(g, x, y)),
    ),
    domain=("real", "real"),
)
MINIMUM = define_elementwise(
    "minimum(x, y)",
    scalar="minimum(x, y)",
    eager=np.minimum,
    dtypes=like_ufunc(np.minimum),
    vjp=(
        lambda g, _out, x, y: only_where(less_equal(x, y), _halved_if_equal(g, x, y)),
        lambda g, _out, x, y: only_where(less_equal(y, x), _halved_if_equal(g, x, y)),
    ),
    domain=("real", "real"),
)
CLIP = define_elementwise(
    "clip(x, min, max)",
    scalar="minimum(maximum(x, min), max)",
    eager=getattr(umath, "clip"),  # noqa: B009 - has no stub; one pass, also where the bounds are numbers
    dtypes=same_dtype,
    vjp=(
        lambda g, _out, x, min, max: only_where(logical_and(greater_equal(x, min), less_equal(x, max)), g),
        lambda g, _out, x, min, max: only_where(logical_and(less(x, min), less_equal(min, max)), g),
        lambda g, _out, x, min, max: only_where(logical_or(greater(x, max), less(max, min)), g),
    ),
    domain=("real", "lower_bound", "upper_bound"),
)
CLIP_MIN = define_elementwise(
    "clip_min(x, min)",
    scalar="maximum(x, min)",
    eager=np.maximum,
    dtypes=same_dtype,
    vjp=(
        lambda g, _out, x, min: only_where(greater_equal(x, min), g),
        lambda g, _out, x, min: only_where(less(x, min), g),
    ),
    domain=("real", "real"),
)
CLIP_MAX = define_elementwise(
    "clip_max(x, max)",
    scalar="minimum(x, max)",
    eager=np.minimum,
    dtypes=same_dtype,
    vjp=(
        lambda g, _out, x, max: only_where(less_equal(x, max), g),
        lambda g, _out, x, max: only_where(greater(x, max), g),
    ),
    domain=("real", "real"),
)


def maximum(x: Operand, y: Operand) -> Tensor:
    """The larger operand, NaN if either is NaN; equal operands get half of the gradient each."""
    return apply(MAXIMUM, x, y)


def minimum(x: Operand, y: Operand) -> Tensor:
    """The smaller operand, NaN if either is NaN; equal operands get half of the gradient each."""
    return apply(MINIMUM, x, y)


def clip(x: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """``minimum(maximum(x, min), max)``; a bound of None is no bound.

    The gradient reaches ``x`` within the bounds and on them, as in torch.
    """
    if min is None:
        return positive(x) if max is None else apply(CLIP_MAX, x, max)
    return apply(CLIP_MIN, x, min) if max is None else _clip(x, min, max)


@composed
def _clip(x: Operand, min: Operand, max: Operand) -> Tensor:
    return apply(CLIP, x, min, max)


# --- dtypes ------------------------------------------------------------------------------------------------------


def _astype_dtypes(avals: Sequence[Aval], *, dtype: Dtype) -> tuple[tuple[Dtype, ...], Dtype]:
    return (avals[0].dtype,), dtype


def _converted(x: np.ndarray[Any, Any], *, dtype: Dtype) -> np.ndarray[Any, Any]:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return x.astype(dtype)


def _prepare_conversion(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """The method of arrays, for what has no imaginary part to drop."""
    return None if avals[0].dtype.kind == "c" else operator.methodcaller("astype", attrs["dtype"])


ASTYPE = define_elementwise(
    "astype(x, *, dtype)",
    scalar="x",  # the conversion is the store in the result's dtype
    eager=_converted,
    prepare=_prepare_conversion,
    dtypes=_astype_dtypes,
    vjp=(lambda g, _out, _x, *, dtype: projected(g, _x.dtype),),
    domain=("real",),
    sample_attrs={"dtype": np.dtype(np.float64)},
    takes_complex=True,
)


def astype(x: Operand, dtype: Any, *, copy: bool = True) -> Tensor:
    """``x`` converted to ``dtype`` as in C; with ``copy=False`` a tensor of that dtype itself.

    Raises:
        DtypeError: ``dtype`` is no bool, integer, float or complex dtype; or ``x`` is complex and ``dtype`` holds no imaginary
            part, which NumPy would drop with a warning.
    """
    wanted = check_supported("astype", dtype)
    given = getattr(x, "dtype", None)
    if not copy and isinstance(x, Tensor) and given == wanted:
        return x
    if given is not None and given.kind == "c" and wanted.kind not in "cb":
        raise DtypeError(f"astype from {given} to {wanted} would drop imaginary parts: take x.real, or abs(x)")
    return apply(ASTYPE, x, dtype=wanted)


def projected(g: Tensor, dtype: Dtype) -> Tensor:
    """``g`` in ``dtype``, of complex numbers the real part: the gradient of a real operand that was made complex."""
    return apply(ASTYPE, g, dtype=dtype)


absolute = abs
neg = negative
sub = subtract
mul = multiply
true_divide = divide
clamp = clip
