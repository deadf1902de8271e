"""Numbers as they are after quantisation: torch.fake_quantize_per_tensor_affine and its form per channel."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, astype, clip, divide, multiply, subtract
from jitgrad.ops.comparison import greater_equal, less_equal, logical_and, where
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.movement import reshape
from jitgrad.ops.rounding import round


def fake_quantize_per_tensor_affine(input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Tensor:
    """``input`` rounded to a multiple of ``scale`` of which ``zero_point`` more is in ``quant_min .. quant_max``.

    The gradient passes where the bounds change nothing. Raises ArgumentError if the bounds are in the wrong order.
    """
    return _quantized(asarray(input), scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a ``scale`` and a ``zero_point`` for each index of ``axis``.

    Raises ShapeError if they are not vectors of its length.
    """
    x, scales, zeros = asarray(input), asarray(scale), asarray(zero_point)
    if scales.shape != (x.shape[axis],) or zeros.shape != scales.shape:
        raise ShapeError(
            f"fake_quantize_per_channel_affine of {x.aval} along axis {axis}: expected vectors of that axis's length, "
            f"got {scales.aval} and {zeros.aval}"
        )
    shape = [1] * x.ndim
    shape[axis] = -1
    return _quantized(x, reshape(scales, shape), reshape(zeros, shape), quant_min, quant_max)


def _quantized(x: Tensor, scale: Any, zero: Any, low: int, high: int) -> Tensor:
    if low > high:
        raise ArgumentError(f"fake_quantize: quant_min {low} is larger than quant_max {high}")
    still, scale, zero = detached(x), detached(_like(scale, x)), detached(_like(zero, x))
    number = add(round(multiply(still, divide(1.0, scale))), zero)
    inside = logical_and(greater_equal(number, low), less_equal(number, high))
    value = multiply(subtract(clip(number, low, high), zero), scale)
    return add(value, where(inside, subtract(x, still), 0.0))  # that is zero, and has the gradient


def _like(number: Any, x: Tensor) -> Tensor:
    return astype(asarray(number), x.dtype)
