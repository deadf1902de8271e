"""Activations, with torch's names, formulas and gradients at the kinks."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from jitgrad.core.aval import Array, same_dtype
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.eager.scalar_eval import blockwise, on_floats
from jitgrad.eager.where import select_by_mask
from jitgrad.ops import activation_loops as loops
from jitgrad.ops.activation_loops import TWICE_SQRT_TWO_OVER_PI
from jitgrad.ops.arithmetic import abs, add, divide, multiply, negative, square, subtract
from jitgrad.ops.comparison import (
    Selected,
    greater,
    less,
    less_equal,
    logical_and,
    where,
)
from jitgrad.ops.movement import reshape
from jitgrad.ops.operand import Operand, apply, is_number
from jitgrad.ops.special import erf
from jitgrad.ops.transcendental import SIGMOID, exp, expm1, sigmoid
from jitgrad.ops.trigonometric import tanh


def _only_where(condition: Any, g: Tensor) -> Selected:
    return Selected(g, condition, activation=True)


def _except_where(condition: Any, g: Tensor) -> Selected:
    return Selected(g, condition, kept=False, activation=True)


def _within(x: Any, low: Any, high: Any) -> Tensor:
    """Strictly between the two: at the kinks the gradient is 0."""
    return logical_and(greater(x, low), less(x, high))


def _not_above_zero(x: Any) -> Tensor:
    """``min(x, 0)``: keeps ``exp`` finite where ``where`` selects the side ``x > 0``."""
    return where(greater(x, 0), 0.0, x)


# --- piecewise linear --------------------------------------------------------------------------------------------

RELU = define_elementwise(
    "relu(x)",
    scalar="0 if x <= 0 else x",  # NaN stays NaN
    eager=lambda x: np.maximum(x, 0) + 0,  # -0.0 becomes 0.0
    dtypes=same_dtype,
    # reads the result, which the next layer saves anyway
    vjp=(lambda g, out, _x: _except_where(less_equal(out, 0), g),),
    domain=("nonzero",),
    one_loop=True,
)
RELU6 = define_elementwise(
    "relu6(x)",
    scalar="0 if x <= 0 else (6 if x >= 6 else x)",
    eager=lambda x: select_by_mask(x <= 0, 0, select_by_mask(x >= 6, 6, x)),
    dtypes=same_dtype,
    vjp=(lambda g, _out, x: _only_where(_within(x, 0, 6), g),),
    domain=("nonzero",),
    one_loop=True,
)
LEAKY_RELU = define_elementwise(
    "leaky_relu(x, negative_slope)",
    scalar="x if x > 0 else negative_slope * x",
    eager=lambda x, negative_slope: select_by_mask(x > 0, x, negative_slope * x),
    vjp=(
        lambda g, _out, x, negative_slope: where(greater(x, 0), g, multiply(negative_slope, g)),
        lambda g, _out, x, _negative_slope: _except_where(greater(x, 0), multiply(g, x)),
    ),
    domain=("nonzero", "positive"),
    one_loop=True,
)
HARDTANH = define_elementwise(
    "hardtanh(x, min_val, max_val)",
    scalar="min_val if x < min_val else (max_val if x > max_val else x)",
    eager=lambda x, min_val, max_val: select_by_mask(x < min_val, min_val, select_by_mask(x > max_val, max_val, x)),
    dtypes=same_dtype,
    vjp=(
        lambda g, _out, x, min_val, max_val: _only_where(_within(x, min_val, max_val), g),
        lambda g, _out, x, min_val, _max_val: _only_where(less(x, min_val), g),
        lambda g, _out, x, min_val, max_val: _only_where(logical_and(greater(x, max_val), greater(x, min_val)), g),
    ),
    domain=("real", "lower_bound", "upper_bound"),
    one_loop=True,
)
HARDSIGMOID = define_elementwise(
    "hardsigmoid(x)",
    scalar="minimum(maximum(x + 3, 0), 6) / 6",
    eager=lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6,
    vjp=(lambda g, _out, x: _only_where(_within(x, -3, 3), divide(g, 6.0)),),
    domain=("real",),
    one_loop=True,
)


def _hardswish_gradient(g: Tensor, _out: Any, x: Any) -> Selected:
    return _except_where(less_equal(x, -3), where(less(x, 3), multiply(g, add(divide(x, 3.0), 0.5)), g))


HARDSWISH = define_elementwise(
    "hardswish(x)",
    scalar="x * minimum(maximum(x + 3, 0), 6) / 6",
    eager=lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6,
    vjp=(_hardswish_gradient,),
    domain=("real",),
    one_loop=True,
)


def relu(x: Operand) -> Tensor:
    """``max(x, 0)`` in the dtype of ``x``; NaN stays NaN, the gradient at 0 is 0."""
    return apply(RELU, x)


def relu6(x: Operand) -> Tensor:
    """``min(max(x, 0), 6)`` in the dtype of ``x``."""
    return apply(RELU6, x)


def leaky_relu(x: Operand, negative_slope: Operand = 0.01) -> Tensor:
    """``x`` where it is positive, else ``negative_slope * x``."""
    return apply(LEAKY_RELU, x, negative_slope)


def prelu(x: Operand, weight: Operand) -> Tensor:
    """``leaky_relu`` with a learnt slope: one number, or one for each channel (axis 1 of ``x``).

    Raises:
        ShapeError: ``weight`` has neither one element nor one for each channel.
    """
    if is_number(weight):
        return leaky_relu(x, weight)
    slopes: tuple[int, ...] = getattr(weight, "shape", ())
    shape: tuple[int, ...] = getattr(x, "shape", ())
    if slopes in ((), (1,)):
        return leaky_relu(x, reshape(weight, ()))
    if len(slopes) != 1 or len(shape) < 2 or shape[1] != slopes[0]:
        raise ShapeError(
            f"prelu: weight of shape {slopes} has no slope for each channel (axis 1) of x of shape {shape}"
        )
    return leaky_relu(x, reshape(weight, (*slopes, *(1,) * (len(shape) - 2))))


@composed
def hardtanh(x: Operand, min_val: Operand = -1, max_val: Operand = 1) -> Tensor:
    """``clip`` to ``[min_val, max_val]``, with gradient 0 at the limits (``clip`` has 1)."""
    return apply(HARDTANH, x, min_val, max_val)


def hardsigmoid(x: Operand) -> Tensor:
    """``relu6(x + 3) / 6``."""
    return apply(HARDSIGMOID, x)


def hardswish(x: Operand) -> Tensor:
    """``x * relu6(x + 3) / 6`` (Howard et al., arXiv:1905.02244)."""
    return apply(HARDSWISH, x)


# --- exponential on one side -------------------------------------------------------------------------------------


_expm1, _log1p = on_floats("expm1"), on_floats("log1p")


def _elu_slope_gradient(g: Tensor, _out: Any, x: Any, _alpha: Any) -> Selected:
    return _except_where(greater(x, 0), multiply(g, expm1(_not_above_zero(x))))


def _celu_slope_gradient(g: Tensor, _out: Any, x: Any, alpha: Any) -> Selected:
    scaled = divide(_not_above_zero(x), alpha)
    return _except_where(greater(x, 0), multiply(g, subtract(expm1(scaled), multiply(scaled, exp(scaled)))))


ELU = define_elementwise(
    "elu(x, alpha)",
    scalar="x if x > 0 else alpha * expm1(x)",
    eager=blockwise(lambda x, alpha: select_by_mask(x > 0, x, alpha * _expm1(x))),
    vjp=(
        lambda g, _out, x, alpha: where(greater(x, 0), g, multiply(g, multiply(alpha, exp(_not_above_zero(x))))),
        _elu_slope_gradient,
    ),
    domain=("nonzero", "positive"),
    one_loop=loops.elu_in_ops,
)
CELU = define_elementwise(
    "celu(x, alpha)",
    scalar="x if x > 0 else alpha * expm1(x / alpha)",
    eager=blockwise(lambda x, alpha: select_by_mask(x > 0, x, alpha * _expm1(x / alpha))),
    vjp=(
        lambda g, _out, x, alpha: where(greater(x, 0), g, multiply(g, exp(divide(_not_above_zero(x), alpha)))),
        _celu_slope_gradient,
    ),
    domain=("nonzero", "positive"),
    one_loop=loops.celu_in_ops,
)
SELU = define_elementwise(
    "selu(x)",
    # scale and scale * alpha: mean 0 and variance 1 are a fixed point (arXiv:1706.02515)
    scalar="1.0507009873554805 * x if x > 0 else 1.7580993408473768 * expm1(x)",
    eager=blockwise(lambda x: select_by_mask(x > 0, 1.0507009873554805 * x, 1.7580993408473768 * _expm1(x))),
    vjp=(
        lambda g, _out, x: where(
            greater(x, 0),
            multiply(g, 1.0507009873554805),
            multiply(g, multiply(1.7580993408473768, exp(_not_above_zero(x)))),
        ),
    ),
    domain=("nonzero",),
    one_loop=loops.selu_in_ops,
)


def elu(x: Operand, alpha: Operand = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (e**x - 1)`` (Clevert et al., arXiv:1511.07289)."""
    return apply(ELU, x, alpha)


def celu(x: Operand, alpha: Operand = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (e**(x / alpha) - 1)`` (Barron, arXiv:1704.07483)."""
    return apply(CELU, x, alpha)


def selu(x: Operand) -> Tensor:
    """The self-normalising ``elu`` (Klambauer et al., arXiv:1706.02515)."""
    return apply(SELU, x)


# --- smooth ------------------------------------------------------------------------------------------------------


@blockwise
def _softplus_array(x: Array) -> Any:
    return np.maximum(x, 0) + _log1p(np.exp(-np.abs(x)))


def _silu_gradient(g: Tensor, _out: Any, x: Any) -> Tensor:
    s = sigmoid(x)
    return multiply(g, multiply(s, add(1.0, multiply(x, subtract(1.0, s)))))


def _mish_gradient(g: Tensor, _out: Any, x: Any) -> Tensor:
    t = tanh(softplus(x, 1.0, float("inf")))
    return multiply(g, add(t, multiply(multiply(x, sigmoid(x)), subtract(1.0, square(t)))))


def _softplus_scale_gradient(g: Tensor, out: Any, x: Any, beta: Any, threshold: Any) -> Selected:
    """d/dbeta of ``log1p(e**(beta x)) / beta``; 0 on the linear side."""
    z = multiply(x, beta)
    return _except_where(greater(z, threshold), multiply(g, divide(subtract(multiply(x, sigmoid(z)), out), beta)))


SILU = define_elementwise(
    "silu(x)",
    scalar="x * sigmoid(x)",
    eager=blockwise(lambda x: x * SIGMOID.eager(x)),
    vjp=(_silu_gradient,),
    domain=("real",),
    one_loop=loops.silu_in_ops,
)
MISH = define_elementwise(
    "mish(x)",
    scalar="x * tanh(softplus(x))",
    eager=blockwise(lambda x: x * np.tanh(_softplus_array(x))),
    vjp=(_mish_gradient,),
    domain=("real",),
    one_loop=loops.mish_in_ops,
)
SOFTPLUS = define_elementwise(
    "softplus(x, beta, threshold)",
    scalar="x if x * beta > threshold else softplus(x * beta) / beta",
    eager=blockwise(lambda x, beta, threshold: select_by_mask(x * beta > threshold, x, _softplus_array(x * beta) / beta)),
    vjp=(
        lambda g, _out, x, beta, threshold: where(
            greater(multiply(x, beta), threshold), g, multiply(g, sigmoid(multiply(x, beta)))
        ),
        _softplus_scale_gradient,
        None,
    ),
    domain=("real", "positive", "upper_bound"),
    one_loop=loops.softplus_in_ops,
)
LOGSIGMOID = define_elementwise(
    "logsigmoid(x)",
    scalar="-softplus(-x)",
    eager=lambda x: -_softplus_array(-x),
    vjp=(lambda g, _out, x: multiply(g, sigmoid(negative(x))),),
    domain=("real",),
    one_loop=loops.logsigmoid_in_ops,
)
SOFTSIGN = define_elementwise(
    "softsign(x)",
    scalar="x / (1 + abs(x))",
    eager=lambda x: x / (1 + np.abs(x)),
    vjp=(lambda g, _out, x: divide(g, square(add(1.0, abs(x)))),),
    domain=("nonzero",),
    one_loop=True,
)


def silu(x: Operand) -> Tensor:
    """``x * sigmoid(x)``, also called swish."""
    return apply(SILU, x)


def mish(x: Operand) -> Tensor:
    """``x * tanh(softplus(x))`` (Misra, arXiv:1908.08681)."""
    return apply(MISH, x)


@composed
def softplus(x: Operand, beta: Operand = 1.0, threshold: Operand = 20.0) -> Tensor:
    """``log(1 + e**(beta * x)) / beta``, and ``x`` itself where ``beta * x > threshold``."""
    return apply(SOFTPLUS, x, beta, threshold)


def logsigmoid(x: Operand) -> Tensor:
    """``log(sigmoid(x))`` without overflow."""
    return apply(LOGSIGMOID, x)


def softsign(x: Operand) -> Tensor:
    """``x / (1 + |x|)``."""
    return apply(SOFTSIGN, x)


# --- gelu --------------------------------------------------------------------------------------------------------

SQRT_HALF = 0.7071067811865476
INVERSE_SQRT_TWO_PI = 0.3989422804014327
_erf_array = on_floats("erf")


def _gelu_gradient(g: Tensor, _out: Any, x: Any) -> Tensor:
    """``cdf + x * pdf`` of the normal distribution, sharing ``1 + erf`` with the forward pass."""
    cdf = multiply(0.5, add(1.0, erf(multiply(x, SQRT_HALF))))
    pdf = multiply(INVERSE_SQRT_TWO_PI, exp(multiply(-0.5, multiply(x, x))))
    return multiply(g, add(cdf, multiply(x, pdf)))


def _gelu_tanh_gradient(g: Tensor, _out: Any, x: Any) -> Tensor:
    s = sigmoid(multiply(TWICE_SQRT_TWO_OVER_PI, add(x, multiply(multiply(multiply(0.044715, x), x), x))))
    slope = multiply(TWICE_SQRT_TWO_OVER_PI, add(1.0, multiply(multiply(0.134145, x), x)))
    return multiply(g, add(s, multiply(multiply(x, multiply(s, subtract(1.0, s))), slope)))


@blockwise
def _gelu_tanh_array(x: Array) -> Any:
    return x * SIGMOID.eager(TWICE_SQRT_TWO_OVER_PI * (x + 0.044715 * x * x * x))


GELU = define_elementwise(
    "gelu(x)",
    scalar=f"0.5 * x * (1.0 + erf(x * {SQRT_HALF}))",
    eager=blockwise(lambda x: 0.5 * x * (1.0 + _erf_array(x * SQRT_HALF))),
    vjp=(_gelu_gradient,),
    domain=("real",),
    one_loop=True,
)
GELU_TANH = define_elementwise(
    "gelu_tanh(x)",
    # 0.5 * (1 + tanh(u)) is sigmoid(2 * u), without the cancellation for negative u
    scalar=f"x * sigmoid({TWICE_SQRT_TWO_OVER_PI} * (x + 0.044715 * x * x * x))",
    eager=_gelu_tanh_array,
    vjp=(_gelu_tanh_gradient,),
    domain=("real",),
    one_loop=loops.gelu_tanh_in_ops,
)


def gelu(x: Operand, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """``x`` times the standard normal distribution function (Hendrycks and Gimpel, arXiv:1606.08415).

    ``approximate="tanh"`` takes that paper's formula with ``tanh`` in place of ``erf``.

    Raises:
        ArgumentError: ``approximate`` is neither "none" nor "tanh".
    """
    if approximate == "none":
        return apply(GELU, x)
    if approximate == "tanh":
        return apply(GELU_TANH, x)
    raise ArgumentError(f'gelu: approximate must be "none" or "tanh", got {shown(approximate)}')
