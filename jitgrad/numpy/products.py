"""NumPy's products of vectors, matrices and tensors, and sums of diagonals."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from jitgrad.core.aval import Dtype
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.numpy.arguments import in_dtype, tensor_of, tensors_of
from jitgrad.numpy.output import takes_out
from jitgrad.numpy.shapes import ravel
from jitgrad.ops import diagonals, linalg, reduce
from jitgrad.ops import einsum as einsum_
from jitgrad.ops.arithmetic import conjugated, multiply, subtract
from jitgrad.ops.joining import stack
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import expand_dims, moveaxis, reshape
from jitgrad.ops.placement import beside_operands

_Product = TypeVar("_Product", bound=Callable[..., Tensor])


def takes_precision(product: _Product) -> _Product:
    """``product`` with jax's ``precision``, which changes nothing, and ``preferred_element_type``.

    In that dtype the operands meet where it is longer than theirs, and the result has it.
    """

    @wraps(product)
    def with_precision(*operands: Any, precision: Any = None, preferred_element_type: Any = None, **options: Any) -> Tensor:
        if preferred_element_type is None:
            return product(*operands, **options)
        wanted = np.dtype(preferred_element_type)
        met = [_met(x, wanted) if isinstance(x, (Tensor, np.ndarray)) else x for x in operands]
        return in_dtype(product(*met, **options), wanted)

    return with_precision  # type: ignore[return-value]


def _met(x: Any, wanted: Dtype) -> Tensor:
    given = tensor_of(x)
    return in_dtype(given, np.promote_types(given.dtype, wanted))


@takes_out
@takes_precision
def dot(a: Any, b: Any, out: Any = None) -> Tensor:
    """The inner product of vectors, the product of matrices; otherwise over the last axis of ``a``."""
    return linalg.dot(tensor_of(a), tensor_of(b))


@takes_out
@takes_precision
def matmul(x1: Any, x2: Any, /, out: Any = None) -> Tensor:
    """The product of matrices; leading axes broadcast, and vectors are rows or columns."""
    return linalg.matmul(tensor_of(x1), tensor_of(x2))


@takes_out
@takes_dim()
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1) -> Tensor:
    """The inner products of vectors along ``axis``."""
    return linalg.vecdot(tensor_of(x1), tensor_of(x2), axis=axis)


@takes_out
def matvec(x1: Any, x2: Any, /, out: Any = None) -> Tensor:
    """Matrices times vectors, over the last axes; leading axes broadcast."""
    return linalg.matmul(tensor_of(x1), expand_dims(tensor_of(x2), -1))[..., 0]


@takes_out
def vecmat(x1: Any, x2: Any, /, out: Any = None) -> Tensor:
    """Vectors, of complex numbers their conjugates, times matrices, over the last axes; leading axes broadcast."""
    return linalg.matmul(expand_dims(conjugated(tensor_of(x1)), -2), tensor_of(x2))[..., 0, :]


@takes_precision
@composed
def vdot(a: Any, b: Any, /) -> Tensor:
    """The inner product of the flattened arrays, of complex ones with the conjugates of ``a``."""
    return linalg.matmul(conjugated(ravel(a)), ravel(b))


@takes_precision
@composed
def inner(a: Any, b: Any, /) -> Tensor:
    """The sum of products over the last axes."""
    x, y = tensor_of(a), tensor_of(b)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    return linalg.tensordot(x, y, ([x.ndim - 1], [y.ndim - 1]))


@takes_out
def outer(a: Any, b: Any, out: Any = None) -> Tensor:
    """The products of every element of ``a`` with every one of ``b``."""
    return linalg.outer(tensor_of(a), tensor_of(b))


@takes_precision
@beside_operands
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """The sum of products over ``axes``."""
    return linalg.tensordot(tensor_of(a), tensor_of(b), axes)


@takes_out
@takes_precision
def einsum(*operands: Any, out: Any = None, dtype: Any = None, optimize: Any = False, casting: Any = None) -> Tensor:
    """Einstein's summation convention; contractions are always ordered (``optimize`` changes nothing)."""
    if isinstance(operands[0], str):
        return in_dtype(einsum_.einsum(operands[0], *tensors_of(operands[1:])), dtype)
    return in_dtype(einsum_.einsum(*operands), dtype)


@composed
@beside_operands
def kron(a: Any, b: Any) -> Tensor:
    """Kronecker's product: blocks ``a[i, j] * b``."""
    x, y = tensor_of(a), tensor_of(b)
    ndim = max(x.ndim, y.ndim)
    left, right = ((1,) * (ndim - v.ndim) + v.shape for v in (x, y))
    wide = reshape(x, tuple(n for length in left for n in (length, 1)))
    return reshape(
        multiply(wide, reshape(y, tuple(n for length in right for n in (1, length)))),
        tuple(n * m for n, m in zip(left, right, strict=True)),
    )


@takes_dim()
@composed
@beside_operands
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """The cross products of vectors of length 3 along an axis."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(tensor_of(a), axisa, -1), moveaxis(tensor_of(b), axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ShapeError(f"cross: the vectors must have three components, got {x.aval} and {y.aval}")
    parts = [
        subtract(multiply(x[..., i], y[..., j]), multiply(x[..., j], y[..., i])) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return stack(parts, axisc if axisc >= 0 else parts[0].ndim + 1 + axisc)


@takes_out
@composed
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Tensor:
    """The sum of a diagonal."""
    return reduce.sum(diagonals.diagonal(tensor_of(a), offset, axis1, axis2), -1, dtype=dtype)


@takes_dim(dim1="axis1", dim2="axis2")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """A diagonal over two axes, as the last axis."""
    return diagonals.diagonal(tensor_of(a), offset, axis1, axis2)
