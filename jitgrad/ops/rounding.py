"""Rounding and the divisions that round: floor, trunc, floor_divide, remainder, fmod, nextafter."""

from __future__ import annotations

import numpy as np

from jitgrad.core.aval import like_ufunc
from jitgrad.core.op import OpDef, define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype, divide, multiply, negative, subtract
from jitgrad.ops.comparison import zero_gradient
from jitgrad.ops.operand import Operand, apply, dtype_of, is_integral


def _rounding(name: str, scalar: str, ufunc: np.ufunc) -> OpDef:
    return define_elementwise(f"{name}(x)", scalar=scalar, eager=ufunc, vjp=(zero_gradient,), domain=("not_integral",))


FLOOR = _rounding("floor", "floor(x)", np.floor)
CEIL = _rounding("ceil", "ceil(x)", np.ceil)
TRUNC = _rounding("trunc", "trunc(x)", np.trunc)
ROUND = _rounding("round", "rint(x)", np.rint)


def _rounded(op: OpDef, x: Operand) -> Tensor:
    return astype(x, dtype_of(x)) if is_integral(x) else apply(op, x)


def floor(x: Operand) -> Tensor:
    """The largest integer not above ``x``, in the dtype of ``x``."""
    return _rounded(FLOOR, x)


def ceil(x: Operand) -> Tensor:
    """The smallest integer not below ``x``, in the dtype of ``x``."""
    return _rounded(CEIL, x)


def trunc(x: Operand) -> Tensor:
    """``x`` without its fraction, in the dtype of ``x``."""
    return _rounded(TRUNC, x)


def round(x: Operand, decimals: int = 0) -> Tensor:
    """The nearest multiple of ``10**-decimals``, ties to even, in the dtype of ``x`` (floating for bools).

    With ``decimals`` it scales, rounds and scales back, as ``np.round`` does.
    """
    if dtype_of(x) == np.bool_:
        return apply(ROUND, x)
    if decimals == 0 or (decimals > 0 and is_integral(x)):
        return _rounded(ROUND, x)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    if decimals > 0:
        return divide(apply(ROUND, multiply(x, scale)), scale)
    scaled = multiply(apply(ROUND, divide(x, scale)), scale)
    return astype(scaled, dtype_of(x), copy=False)


FLOOR_DIVIDE = define_elementwise(
    "floor_divide(x, y)",
    scalar="floor_divide(x, y)",
    eager=np.floor_divide,
    one_loop=True,
    dtypes=like_ufunc(np.floor_divide),
    vjp=(zero_gradient, zero_gradient),
    domain=("not_integral", "integral_divisor"),
)
REMAINDER = define_elementwise(
    "remainder(x, y)",
    scalar="remainder(x, y)",
    eager=np.remainder,
    one_loop=True,
    dtypes=like_ufunc(np.remainder),
    vjp=(
        lambda g, _out, _x, _y: g,
        lambda g, _out, x, y: negative(multiply(g, floor_divide(x, y))),
    ),
    domain=("not_integral", "integral_divisor"),
)
FMOD = define_elementwise(
    "fmod(x, y)",
    scalar="fmod(x, y)",
    eager=np.fmod,
    one_loop=True,
    dtypes=like_ufunc(np.fmod),
    vjp=(
        lambda g, _out, _x, _y: g,
        # trunc(x / y) would be off by one where the quotient rounds up to an integer
        lambda g, out, x, y: negative(multiply(g, round(divide(subtract(x, out), y)))),
    ),
    domain=("not_integral", "integral_divisor"),
)
NEXTAFTER = define_elementwise(
    "nextafter(x, y)",
    scalar="nextafter(x, y)",
    eager=np.nextafter,
    one_loop=True,
    dtypes=like_ufunc(np.nextafter),
    domain=("real", "real"),
)


def floor_divide(x: Operand, y: Operand) -> Tensor:
    """The largest integer not above ``x / y``; for integers and a zero ``y`` 0, as in NumPy."""
    return apply(FLOOR_DIVIDE, x, y)


def remainder(x: Operand, y: Operand) -> Tensor:
    """``x - floor_divide(x, y) * y``: has the sign of ``y``."""
    return apply(REMAINDER, x, y)


def fmod(x: Operand, y: Operand) -> Tensor:
    """The remainder that has the sign of ``x``, as C's fmod."""
    return apply(FMOD, x, y)


def nextafter(x: Operand, y: Operand) -> Tensor:
    """The next representable number from ``x`` towards ``y``; not differentiable."""
    return apply(NEXTAFTER, x, y)


rint = round
fix = trunc
mod = remainder
