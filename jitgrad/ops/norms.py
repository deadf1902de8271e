"""Norms of vectors."""

from __future__ import annotations

import math

from jitgrad.core.aval import normalize_axes
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops import arithmetic, transcendental
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.comparison import equal, not_equal, where
from jitgrad.ops.complex_parts import is_complex, squared_size
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import SUM, AxisArgument
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import any, in_dtype_of, in_float_dtype, max, min, root, sum


@composed
def vector_norm(
    x: Operand, ord: float | str | None = None, axis: AxisArgument = None, keepdims: bool = False
) -> Tensor:
    """torch's ``norm(p=)``: that of vectors, over any number of axes."""
    axes = normalize_axes("norm", axis, aval_of(SUM, x).ndim)
    return _norm_over(x, ord, axes, keepdims)


@takes_dim(p="ord")
def method_norm(
    self: Tensor, ord: float | str | None = None, axis: AxisArgument = None, keepdims: bool = False
) -> Tensor:
    """``x.norm(2)``: arrays of NumPy have no such method, so it is torch's, of vectors over any number of axes."""
    return vector_norm(self, ord, axis, keepdims)


@takes_dim(vector_norm, p="ord")
@composed
def norm(x: Operand, ord: float | str | None = None, axis: AxisArgument = None, keepdims: bool = False) -> Tensor:
    """The vector norm of order ``ord`` (None and "fro": 2) over ``axis`` (None: of all elements).

    ``ord`` may be any number, inf and -inf, or 0, which counts what is not zero. The gradient at 0 is 0.

    Raises:
        ArgumentError: where NumPy would compute a matrix norm, which this is not (``ord`` given for two axes).
    """
    axes = normalize_axes("norm", axis, aval_of(SUM, x).ndim)
    if isinstance(ord, (int, float)) and len(axes) == 2:
        raise ArgumentError(
            f"norm: ord={ord!r} over two axes would be a matrix norm: take linalg.norm for that, and reshape(-1) or p= for "
            "that of a vector"
        )
    return _norm_over(x, ord, axes, keepdims)


def _norm_over(x: Operand, ord: float | str | None, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    values = x if is_complex(x) else in_float_dtype("norm", x)
    if ord is None or ord in ("fro", 2):
        return in_dtype_of(root(sum(squared_size(values), axes, keepdims)), x)
    if not isinstance(ord, (int, float)):
        raise ArgumentError(f"norm: the order must be a number, None or 'fro', got {shown(ord)}; others are in linalg.norm")
    return in_dtype_of(_p_norm(values, float(ord), axes, keepdims), x)


def _p_norm(values: Operand, order: float, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    size = arithmetic.abs(values)
    if math.isinf(order):
        return (max if order > 0 else min)(size, axes, keepdims)
    if order == 0:
        return sum(astype(not_equal(size, 0), size.dtype), axes, keepdims)
    if order == 1:
        return sum(size, axes, keepdims)
    if order > 1:
        powers = transcendental.pow(size, order)
    else:  # where an element is 0 the slope is infinite: it is kept out; of negative order it makes the norm 0
        zeros = equal(size, 0)
        lost = any(zeros, axes, keepdims=True) if order < 0 else zeros
        powers = where(lost, 0.0, transcendental.pow(where(lost, 1.0, size), order))
    total = sum(powers, axes, keepdims)
    zero = equal(total, 0)
    return where(zero, 0.0, transcendental.pow(where(zero, 1.0, total), 1.0 / order))
