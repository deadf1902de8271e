"""Products of matrices and tensors: the opaque op matmul and compositions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, broadcast_shapes, normalize_axes, normalize_axis, promote
from jitgrad.core.dispatch import apply_op, aval_of
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.eager.float16 import HALF, SINGLE
from jitgrad.ops.arithmetic import add, astype, conjugated, multiply
from jitgrad.ops.creation import asarray
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import expand_dims, moveaxis, permute_dims, reshape, squeeze
from jitgrad.ops.reduce import sum as sum_


def _matmul_eager(x: Any, y: Any) -> Any:
    if np.result_type(x.dtype, y.dtype) == HALF:  # NumPy's loop for it accumulates in float32, too, and takes sixty times as long
        return _matmul_eager(x.astype(SINGLE), y.astype(SINGLE)).astype(HALF)
    if x.ndim > 2 and y.ndim == 2 and x.flags.c_contiguous:
        # one large product instead of NumPy's loop of small ones
        return np.matmul(x.reshape(prod(x.shape[:-1]), x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[-1])
    return np.matmul(x, y)


def _prepare_matmul(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Any:
    x, y = avals
    return np.matmul if x.ndim == y.ndim == 2 and x.dtype == y.dtype != HALF else None


def _matmul_abstract(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    x, y = avals
    if not x.ndim or not y.ndim:
        raise ShapeError(f"matmul: {x} and {y}: both operands need at least one axis; use multiply for scalars")
    rows, columns = x.shape[-2:-1], y.shape[-1:] if y.ndim > 1 else ()
    inner = y.shape[-2] if y.ndim > 1 else y.shape[-1]
    if x.shape[-1] != inner:
        raise ShapeError(f"matmul: {x} @ {y}: the inner sizes {x.shape[-1]} and {inner} differ")
    batch = broadcast_shapes("matmul (batch axes)", [Aval(x.shape[:-2], x.dtype), Aval(y.shape[:-2], y.dtype)])
    return Aval((*batch, *rows, *columns), promote(x, y))


def matrix_transpose_of(x: Any) -> Tensor:
    """``x`` with its last two axes swapped."""
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint_of(x: Any) -> Tensor:
    """``x`` with its last two axes swapped, and conjugated."""
    return conjugated(matrix_transpose_of(x))  # type: ignore[no-any-return]


def _as_matrices(g: Tensor, x: Any, y: Any) -> Tensor:
    """The gradient of ``x @ y`` with the axes that matmul drops for 1-D operands put back."""
    if y.ndim == 1:
        g = expand_dims(g, -1)
    return expand_dims(g, -2) if x.ndim == 1 else g


def _matmul_vjp_x(g: Tensor, _out: Any, _x: Any, y: Tensor) -> Tensor:
    if _x.ndim == y.ndim == 1:
        return multiply(g, y)
    if y.ndim == 1:  # no sums: BLAS takes many times as long for such a product as for its memory
        return multiply(expand_dims(g, -1), y)
    gx = matmul(_as_matrices(g, _x, y), matrix_transpose_of(y))
    return squeeze(gx, -2) if _x.ndim == 1 else gx


def _matmul_vjp_y(g: Tensor, _out: Any, x: Tensor, _y: Any) -> Tensor:
    if x.ndim == _y.ndim == 1:
        return multiply(g, x)
    if x.ndim == 1:
        return multiply(expand_dims(x, -1), expand_dims(g, -2))
    g = _as_matrices(g, x, _y)
    rows = x
    if rows.ndim > 2 and _y.ndim <= 2:  # the sum over the batch is part of one large product
        total = prod(rows.shape[:-1])
        rows, g = reshape(rows, (total, rows.shape[-1])), reshape(g, (total, g.shape[-1]))
    gy = matmul(matrix_transpose_of(rows), g)
    return squeeze(gy, -1) if _y.ndim == 1 else gy


MATMUL: OpDef = define(
    "matmul(x, y)",
    kind=Kind.OPAQUE,
    contraction=True,
    eager=_matmul_eager,
    prepare=_prepare_matmul,
    abstract=_matmul_abstract,
    vjp=(_matmul_vjp_x, _matmul_vjp_y),
    domain=("matrix", "matrix"),
    takes_complex=True,
)


def matmul(x: Any, y: Any) -> Tensor:
    """``np.matmul``: 1-D operands are vectors; leading axes are batches, which broadcast.

    Raises:
        ShapeError: if an operand is 0-d, the inner sizes differ or the batch axes do not broadcast.
    """
    return apply_op(MATMUL, x, y)  # type: ignore[no-any-return]


@composed
def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """``x @ weight.T + bias`` for x [..., in], weight [out, in] or [in], bias [out], as in torch."""
    weight = asarray(weight)
    aval = aval_of(MATMUL, x)
    if aval.shape[-1:] != weight.shape[-1:]:
        raise ShapeError(f"linear: the last axes of x, {aval}, and of weight, {weight.aval}, must be equally long")
    out = matmul(x, matrix_transpose_of(weight) if weight.ndim > 1 else weight)
    return out if bias is None else add(out, bias)


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Tensor:
    """``x1 @ weight[k] @ x2 + bias[k]`` for each k: x1 [..., in1], x2 [..., in2], weight [out, in1, in2], bias [out]."""
    left, right, weights = asarray(x1), asarray(x2), asarray(weight)
    fits = weights.ndim == 3 and left.ndim and right.ndim and left.shape[:-1] == right.shape[:-1]
    if not fits or weights.shape[1:] != (left.shape[-1], right.shape[-1]):
        raise ShapeError(f"bilinear: {left.aval}, {right.aval} and weight {weights.aval} do not fit together")
    outs, ins, others = weights.shape
    flat = matmul(left, reshape(permute_dims(weights, (1, 0, 2)), (ins, outs * others)))
    mixed = reshape(flat, (*left.shape[:-1], outs, others))
    out = sum_(multiply(mixed, expand_dims(right, -2)), -1)
    return out if bias is None else add(out, bias)


def dot(x: Any, y: Any) -> Tensor:
    """``np.dot``: the inner product of vectors, matmul of matrices; otherwise the last axis of ``x`` with the
    second-to-last (or only) axis of ``y``, and multiply if one operand is 0-d."""
    x, y = asarray(x), asarray(y)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, ([x.ndim - 1], [max(y.ndim - 2, 0)]))


@takes_dim()
def vecdot(x: Any, y: Any, *, axis: int = -1) -> Tensor:
    """The sum of ``conj(x) * y`` over ``axis``; the other axes broadcast (array API ``vecdot``).

    Raises:
        ShapeError: if the operands' sizes along ``axis`` differ.
    """
    x, y = asarray(x), asarray(y)
    kx, ky = normalize_axis("vecdot", axis, x.ndim), normalize_axis("vecdot", axis, y.ndim)
    if not x.ndim or not y.ndim or x.shape[kx] != y.shape[ky]:
        raise ShapeError(f"vecdot: {x.aval} and {y.aval} differ in size along axis {axis}")
    total = sum_(multiply(_to_last(conjugated(x), kx), _to_last(y, ky)), axis=-1)
    dtype = promote(x.aval, y.aval)  # small integers are summed in 64 bits and wrap, as in NumPy
    return total if total.dtype == dtype else astype(total, dtype)


def _to_last(x: Tensor, axis: int) -> Tensor:
    return x if axis == x.ndim - 1 else moveaxis(x, axis, -1)


@composed
def outer(x: Any, y: Any) -> Tensor:
    """``x[i] * y[j]`` for all i, j; operands are flattened, as in ``np.outer``."""
    return multiply(reshape(x, (-1, 1)), reshape(y, (1, -1)))


@takes_dim()
def tensordot(x: Any, y: Any, axes: int | Sequence[Any] = 2) -> Tensor:
    """The sum of products over ``axes``, as ``np.tensordot``.

    Args:
        axes: an int n (the last n axes of ``x`` with the first n of ``y``) or a pair of (axis or axes) lists.

    Raises:
        ShapeError: if the sizes of paired axes differ.
    """
    x, y = asarray(x), asarray(y)
    pairs_x, pairs_y = _paired_axes(x, y, axes)
    if [x.shape[k] for k in pairs_x] != [y.shape[k] for k in pairs_y]:
        raise ShapeError(f"tensordot: axes {pairs_x} of {x.aval} and {pairs_y} of {y.aval} differ in size")
    free_x = [k for k in range(x.ndim) if k not in pairs_x]
    free_y = [k for k in range(y.ndim) if k not in pairs_y]
    inner = prod(x.shape[k] for k in pairs_x)
    shape_x, shape_y = [x.shape[k] for k in free_x], [y.shape[k] for k in free_y]
    left = reshape(permute_dims(x, (*free_x, *pairs_x)), (prod(shape_x), inner))
    right = reshape(permute_dims(y, (*pairs_y, *free_y)), (inner, prod(shape_y)))
    return reshape(matmul(left, right), (*shape_x, *shape_y))


def _paired_axes(x: Tensor, y: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ArgumentError(f"tensordot: axes={axes} of {x.aval} and {y.aval}: too many axes, or a negative number")
        return list(range(x.ndim - int(axes), x.ndim)), list(range(int(axes)))
    listed_x: list[int]
    listed_x, listed_y = ([int(k)] if isinstance(k, (int, np.integer)) else [int(j) for j in k] for k in axes)
    if len(listed_x) != len(listed_y):
        raise ArgumentError(f"tensordot: axes pairs {len(listed_x)} axes of x with {len(listed_y)} of y")
    normalize_axes("tensordot", listed_x, x.ndim)
    normalize_axes("tensordot", listed_y, y.ndim)
    return (
        [normalize_axis("tensordot", k, x.ndim) for k in listed_x],
        [normalize_axis("tensordot", k, y.ndim) for k in listed_y],
    )
