"""logsumexp, softmax and log_softmax with SciPy's signatures."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from jitgrad.core.tensor import Tensor
from jitgrad.ops import reduce
from jitgrad.ops.arithmetic import abs, add, multiply, sign, subtract
from jitgrad.ops.comparison import equal, isfinite, where
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.movement import AxisArgument, reshape
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.transcendental import exp, log


@overload
def logsumexp(
    a: Operand, axis: AxisArgument = None, b: Operand | None = None, keepdims: bool = False,
    return_sign: Literal[False] = False,
) -> Tensor: ...


@overload
def logsumexp(
    a: Operand, axis: AxisArgument = None, b: Operand | None = None, keepdims: bool = False, *,
    return_sign: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def logsumexp(
    a: Operand, axis: AxisArgument = None, b: Operand | None = None, keepdims: bool = False, return_sign: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """``log(sum(b * exp(a)))`` over ``axis`` without overflow; ``b`` is 1 if it is not given.

    Where ``b`` is 0, ``a`` does not count. Of a negative sum the logarithm is NaN; with
    ``return_sign`` it is that of the absolute value, and the result is a pair with the sign.
    """
    if b is None and not return_sign:
        return reduce.logsumexp(a, axis=axis, keepdims=keepdims)
    weights: Any = 1.0 if b is None else b
    unused = equal(weights, 0.0)
    used = where(unused, -math.inf, a)
    largest = apply(STOP_GRADIENT, reduce.max(used, axis=axis, keepdims=True))
    shift = where(isfinite(largest), largest, 0.0)
    total = reduce.sum(multiply(weights, exp(subtract(used, shift))), axis=axis, keepdims=True)
    if not keepdims:
        shape = reduce.max(used, axis=axis).shape
        total, shift = reshape(total, shape), reshape(shift, shape)
    if return_sign:
        return add(log(abs(total)), shift), sign(total)
    return add(log(total), shift)


def softmax(x: Operand, axis: AxisArgument = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over ``axis``, over all elements if it is None."""
    return reduce.softmax(x, axis=axis)


def log_softmax(x: Operand, axis: AxisArgument = None) -> Tensor:
    """``log(softmax(x))`` over ``axis``, over all elements if it is None."""
    return reduce.log_softmax(x, axis=axis)
