"""Exponentials, logarithms, powers and the error function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitgrad.core.aval import float_dtype, like_ufunc
from jitgrad.core.errors import ArgumentError
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import blockwise, on_floats
from jitgrad.ops.arithmetic import (
    abs,
    add,
    divide,
    multiply,
    negative,
    positive,
    reciprocal,
    sqrt,
    square,
    subtract,
)
from jitgrad.ops.comparison import Selected, equal, greater_equal, isinf, isnan, less, logical_and, where, zero_gradient
from jitgrad.ops.complex_parts import real
from jitgrad.ops.operand import Operand, apply, dtype_of, is_number

LN2 = math.log(2.0)
LN10 = math.log(10.0)

# --- exponentials ------------------------------------------------------------------------------------------------

EXP = define_elementwise(
    "exp(x)", scalar="exp(x)", eager=np.exp, vjp=(lambda g, out, _x: multiply(g, out),), domain=("real",), takes_complex=True
)
EXP2 = define_elementwise(
    "exp2(x)",
    scalar="exp2(x)",
    eager=on_floats("exp2", np.exp2),
    vjp=(lambda g, out, _x: multiply(g, multiply(out, LN2)),),
    domain=("real",),
    one_loop=True,
    takes_complex=True,
)
EXPM1 = define_elementwise(
    "expm1(x)",
    scalar="expm1(x)",
    eager=on_floats("expm1", np.expm1),  # NumPy's has no vectors without AVX-512
    vjp=(lambda g, out, _x: multiply(g, add(out, 1.0)),),
    domain=("real",),
    one_loop=True,
    takes_complex=True,
)


@blockwise
def _sigmoid(x: np.ndarray[Any, Any]) -> Any:
    """Without overflow for large negative ``x``, where ``1 / (1 + exp(-x))`` is 0 too early."""
    small = np.exp(-np.abs(x))
    return np.maximum(small, x >= 0) / (1 + small)  # the numerator is 1 from 0 on


def _sigmoid_in_ops(x: Operand) -> Tensor:
    """The bits of eager ``sigmoid``, by NumPy's ``exp``."""
    small = exp(negative(abs(x)))
    return divide(where(less(x, 0.0), small, where(isnan(x), x, 1.0)), add(1.0, small))


SIGMOID = define_elementwise(
    "sigmoid(x)",
    scalar="sigmoid(x)",
    eager=blockwise(_sigmoid),
    vjp=(lambda g, out, _x: multiply(g, multiply(out, subtract(1.0, out))),),
    domain=("real",),
    one_loop=_sigmoid_in_ops,
)


def exp(x: Operand) -> Tensor:
    """``e**x``, floating."""
    return apply(EXP, x)


def exp2(x: Operand) -> Tensor:
    """``2**x``, floating."""
    return apply(EXP2, x)


def expm1(x: Operand) -> Tensor:
    """``e**x - 1``, accurate near 0."""
    return apply(EXPM1, x)


def sigmoid(x: Operand) -> Tensor:
    """``1 / (1 + e**-x)``, floating."""
    return apply(SIGMOID, x)


# --- logarithms --------------------------------------------------------------------------------------------------

LOG = define_elementwise(
    "log(x)", scalar="log(x)", eager=np.log, vjp=(lambda g, _out, x: divide(g, x),), domain=("positive",), takes_complex=True
)
LOG2 = define_elementwise(
    "log2(x)",
    scalar="log2(x)",
    eager=on_floats("log2", np.log2),
    vjp=(lambda g, _out, x: divide(g, multiply(x, LN2)),),
    domain=("positive",),
    one_loop=True,
    takes_complex=True,
)
LOG10 = define_elementwise(
    "log10(x)",
    scalar="log10(x)",
    eager=on_floats("log10", np.log10),
    vjp=(lambda g, _out, x: divide(g, multiply(x, LN10)),),
    domain=("positive",),
    one_loop=True,
    takes_complex=True,
)
LOG1P = define_elementwise(
    "log1p(x)",
    scalar="log1p(x)",
    eager=on_floats("log1p", np.log1p),
    vjp=(lambda g, _out, x: divide(g, add(1.0, x)),),
    domain=("positive",),
    one_loop=True,
    takes_complex=True,
)


def _logaddexp_gradient(g: Tensor, x: Any, y: Any) -> Tensor:
    """``g * sigmoid(x - y)``; two equal infinities have no difference, and share the gradient."""
    same = logical_and(isinf(x), equal(x, y))
    return multiply(g, sigmoid(subtract(where(same, 0.0, x), where(same, 0.0, y))))


LOGADDEXP = define_elementwise(
    "logaddexp(x, y)",
    scalar="logaddexp(x, y)",
    eager=on_floats("logaddexp"),
    dtypes=like_ufunc(np.logaddexp),
    vjp=(
        lambda g, _out, x, y: _logaddexp_gradient(g, x, y),
        lambda g, _out, x, y: _logaddexp_gradient(g, y, x),
    ),
    domain=("real", "real"),
    one_loop=True,
)


def log(x: Operand) -> Tensor:
    """The natural logarithm, floating; -inf at 0 and NaN below."""
    return apply(LOG, x)


def log2(x: Operand) -> Tensor:
    """The logarithm to base 2."""
    return apply(LOG2, x)


def log10(x: Operand) -> Tensor:
    """The logarithm to base 10."""
    return apply(LOG10, x)


def log1p(x: Operand) -> Tensor:
    """``log(1 + x)``, accurate near 0."""
    return apply(LOG1P, x)


def logaddexp(x: Operand, y: Operand) -> Tensor:
    """``log(e**x + e**y)`` without overflow."""
    return apply(LOGADDEXP, x, y)


# --- powers ------------------------------------------------------------------------------------------------------


def _pow_base_gradient(g: Tensor, _out: Any, x: Any, y: Any) -> Tensor | Selected:
    """``g * y * x**(y - 1)``; of ``x**0`` it is 0 at 0, too, where the formula has ``0 * inf``."""
    if is_number(y):
        return zero_gradient(g, None) if y == 0 else multiply(g, multiply(y, pow(x, y - 1)))
    base = where(logical_and(equal(x, 0.0), equal(y, 0.0)), 1.0, x)
    return multiply(g, multiply(y, pow(base, subtract(y, 1.0))))


def _pow_exponent_gradient(g: Tensor, out: Any, x: Any, y: Any) -> Tensor:
    """``g * out * log(x)``. Of ``0**y``, constant for ``y > 0``, it is 0 and not ``0 * -inf``."""
    base = where(logical_and(equal(x, 0.0), greater_equal(real(y), 0.0)), 1.0, x)
    return multiply(g, multiply(out, log(base)))


def _integer_power(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
    if y.dtype.kind == "i" and (y < 0).any():
        raise ArgumentError("pow: integers to negative integer powers are no integers; convert one of the two to float")
    return np.power(x, y)


def _power(x: Any, y: Any) -> Any:
    """``x**y`` as C's ``pow`` has it.

    NumPy takes a square root where one exponent 0.5 stands for many elements: of -inf that is NaN, and of -0.0 it is -0.0.
    """
    out = np.power(x, y)
    if out.dtype.kind == "f" and (halves := np.equal(y, 0.5)).any():
        out = np.where(halves & (x == -np.inf), np.inf, out + np.where(halves, 0.0, -0.0)).astype(out.dtype, copy=False)
    return out


POW = define_elementwise(
    "pow(x, y)",
    scalar="pow(x, y)",
    eager=_power,
    dtypes=float_dtype,
    vjp=(_pow_base_gradient, _pow_exponent_gradient),
    domain=("positive", "real"),
    takes_complex=True,
)
INTEGER_POW = define_elementwise(
    "integer_pow(x, y)",
    scalar=None,  # a kernel could not raise the error for negative exponents
    eager=_integer_power,
    dtypes=like_ufunc(np.power),
    domain=("int", "count"),
)


def pow(x: Operand, y: Operand) -> Tensor:
    """``x**y``; NaN for a negative base and a fractional exponent.

    The exponents -1, 0.5, 1, 2, 3 and 4, given as Python numbers, are computed by multiplication, division and
    square root, and so are their gradients. Raises ArgumentError for integers to negative integer powers.
    """
    base, exponent = dtype_of(x), dtype_of(y)
    floating = base is not None and base.kind in "fc"
    if floating and not is_number(x) and is_number(y) and not isinstance(y, (bool, complex)):
        simple = _simple_power(x, y)
        if simple is not None:
            return simple
    if floating or (exponent is not None and exponent.kind in "fc"):
        return apply(POW, x, y)
    return apply(INTEGER_POW, x, y)


def _simple_power(x: Operand, y: Any) -> Tensor | None:
    """``x**y`` without a logarithm where that is as accurate: at most 1.5 ULP."""
    if y == 2:
        return square(x)
    if y == 1:
        return positive(x)
    if y == 3:
        return multiply(multiply(x, x), x)
    if y == 4:
        return square(square(x))
    if y == -1:
        return reciprocal(x)
    return sqrt(x) if y == 0.5 else None


power = pow
