"""Functions under the names that torch has for them, composed of the others."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, is_number_of_trace, normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, DtypeError, IndexingError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.eager.single_ops import single_op
from jitgrad.ops.arithmetic import add, divide, maximum, minimum, multiply, subtract
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexing import as_constant, elements_at, take, take_along_axis
from jitgrad.ops.joining import chunked
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import (
    RESHAPE,
    SLICE,
    AxisArgument,
    broadcast_to,
    cut,
    expand_dims,
    flatten,
    permute_dims,
    reshape,
    squeeze,
    transpose,
)
from jitgrad.ops.norms import norm
from jitgrad.ops.operand import Operand, ValuesAndIndices
from jitgrad.ops.point_distances import distances_in_blocks
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import mean, std, var
from jitgrad.ops.reduce import min as min_
from jitgrad.ops.running_extremes import running_position
from jitgrad.ops.sorting import argsort
from jitgrad.ops.subscript import get_item
from jitgrad.ops.view_lists import lists_views

# --- products ----------------------------------------------------------------------------------------------------


def _product(what: str, x: Operand, y: Operand, axes: tuple[int, int]) -> Tensor:
    a, b = aval_of(RESHAPE, x), aval_of(RESHAPE, y)
    if (a.ndim, b.ndim) != axes or (axes == (3, 3) and a.shape[0] != b.shape[0]):
        same = ", with equally many matrices in both" if axes == (3, 3) else ""
        raise ShapeError(f"{what}: {a} and {b}: expected {axes[0]} and {axes[1]} axes{same}; matmul broadcasts")
    return matmul(x, y)


@op_sequence
def mm(x: Operand, y: Operand) -> Tensor:
    """The product of two matrices. Raises ShapeError for other operands."""
    return _product("mm", x, y, (2, 2))


@op_sequence
def mv(x: Operand, y: Operand) -> Tensor:
    """The product of a matrix and a vector. Raises ShapeError for other operands."""
    return _product("mv", x, y, (2, 1))


@op_sequence
def bmm(x: Operand, y: Operand) -> Tensor:
    """The products of the matrices in [n, rows, inner] and [n, inner, columns]. Raises ShapeError for other operands."""
    return _product("bmm", x, y, (3, 3))


def _plus(x: Operand, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * x + alpha * product``; ``x`` does not count at all if ``beta`` is 0, as in torch."""
    scaled = product if isinstance(alpha, (int, float)) and alpha == 1 else multiply(product, alpha)
    if isinstance(beta, (int, float)) and beta in (0, 1):
        return add(x, scaled) if beta else scaled
    return add(multiply(x, beta), scaled)


def addmm(x: Operand, mat1: Operand, mat2: Operand, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * x + alpha * (mat1 @ mat2)`` for matrices."""
    return _plus(x, mm(mat1, mat2), beta, alpha)


def addmv(x: Operand, mat: Operand, vec: Operand, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * x + alpha * (mat @ vec)`` for a matrix and a vector."""
    return _plus(x, mv(mat, vec), beta, alpha)


def baddbmm(x: Operand, batch1: Operand, batch2: Operand, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * x + alpha * bmm(batch1, batch2)``."""
    return _plus(x, bmm(batch1, batch2), beta, alpha)


@composed
def addcmul(x: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
    """``x + value * tensor1 * tensor2``."""
    return _plus(x, multiply(tensor1, tensor2), 1, value)


@composed
def addcdiv(x: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
    """``x + value * tensor1 / tensor2``."""
    return _plus(x, divide(tensor1, tensor2), 1, value)


def cdist(
    x: Operand, y: Operand, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norms [..., n, m] of the differences of the rows of [..., n, d] and [..., m, d].

    From the differences themselves, whatever ``compute_mode`` says: the way by products loses half of the digits of
    small distances.
    """
    if p == 2 and (found := distances_in_blocks(x, y)) is not None:
        return found
    return _norms_of_differences(x, y, None if p == 2 else p)


@composed
def _norms_of_differences(x: Operand, y: Operand, order: float | None) -> Tensor:
    return norm(subtract(expand_dims(x, -2), expand_dims(y, -3)), order, -1)


# --- selections --------------------------------------------------------------------------------------------------


@composed
def masked_fill(x: Operand, mask: Operand, value: Operand) -> Tensor:
    """``x`` with ``value`` where ``mask``, which is of bools, is true."""
    if aval_of(RESHAPE, mask).dtype != np.bool_:
        raise DtypeError(f"masked_fill: the mask must be of bools, got {aval_of(RESHAPE, mask)}; compare it with 0")
    dtype = aval_of(RESHAPE, x).dtype
    # in the dtype of x, whatever that of a 0-d value is
    constant = isinstance(value, (bool, int, float)) and not is_number_of_trace(value)
    return where(mask, as_constant(np.asarray(value, dtype)) if constant else asarray(value).astype(dtype), x)


def masked_select(x: Operand, mask: Operand) -> Tensor:
    """The elements of ``x`` where ``mask`` is true, on one axis; the two broadcast.

    The shape depends on the values: a @jit function has a program for each number of elements.
    """
    shape = np.broadcast_shapes(aval_of(RESHAPE, x).shape, aval_of(RESHAPE, mask).shape)
    return get_item(broadcast_to(x, shape), broadcast_to(mask, shape))


@op_sequence
@takes_dim()
def index_select(x: Operand, axis: int, index: Operand | Sequence[int]) -> Tensor:
    """The slices of ``x`` along ``axis`` at the 1-D ``index``."""
    positions = asarray(index)
    if positions.ndim > 1:
        raise ShapeError(f"index_select: the index must be 1-D, got {positions.aval}; take() accepts more axes")
    return take(x, positions if positions.ndim else expand_dims(positions, 0), axis)


@takes_dim()
def take_along_dim(x: Operand, indices: Operand | Sequence[Any], axis: int | None = None) -> Tensor:
    """:func:`jitgrad.take_along_axis`; without ``axis`` the elements of the flattened ``x``, in a vector, as in torch."""
    if axis is None:
        return take_along_axis(flatten(x), flatten(asarray(indices)), 0)
    return take_along_axis(x, indices, axis)


@single_op
@takes_dim()
def narrow(x: Operand, axis: int, start: Any, length: int) -> Tensor:
    """``x[start : start + length]`` along one axis; a view. Raises IndexError if that leaves the axis."""
    aval = aval_of(SLICE, x)
    k = normalize_axis("narrow", axis, aval.ndim)
    first, count, n = operator.index(start), operator.index(length), aval.shape[k]
    first += n if first < 0 else 0
    if not 0 <= first <= first + count <= n:
        raise IndexingError(f"narrow: start={start} and length={length} leave axis {axis} of {aval}")
    return cut(x, k, first, first + count)


@op_sequence
@takes_dim()
def select(x: Operand, axis: int, index: int) -> Tensor:
    """``x[index]`` along one axis, without that axis; a view. Raises IndexError if it is out of bounds."""
    aval = aval_of(SLICE, x)
    k = normalize_axis("select", axis, aval.ndim)
    i, n = operator.index(index), aval.shape[k]
    if not -n <= i < n:
        raise IndexingError(f"select: index {i} is out of bounds for axis {axis} of {aval}")
    return squeeze(cut(x, k, i % n, i % n + 1), k)


@takes_dim()
@lists_views
def chunk(x: Operand, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``axis`` into ``chunks`` pieces of one size, of which the last is shorter; fewer if they suffice."""
    count = operator.index(chunks)
    if count < 1:
        raise ArgumentError(f"chunk: the number of chunks must be positive, got {chunks}")
    shape = aval_of(SLICE, x).shape
    n = shape[normalize_axis("chunk", axis, len(shape))] if shape else 0
    return chunked(x, -(-n // count) if n else [0] * count, axis)


# --- shapes ------------------------------------------------------------------------------------------------------


def _one_sequence(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Several ints, or one sequence of them."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], Iterable) else given


def permute(x: Operand, *axes: Any, dims: Sequence[int] | None = None) -> Tensor:
    """:func:`jitgrad.permute_dims`, to which each axis may be an argument of its own."""
    return permute_dims(x, _one_sequence(axes) if dims is None else dims)


@single_op
def expand(x: Operand, *sizes: Any) -> Tensor:
    """:func:`jitgrad.broadcast_to`, to which each length may be an argument of its own; -1 keeps a length."""
    aval, shape = aval_of(RESHAPE, x), _one_sequence(sizes)
    missing = len(shape) - aval.ndim
    if missing < 0 or -1 in shape[:missing]:
        raise ArgumentError(f"expand: sizes {shape} do not fit a tensor {aval}")
    return broadcast_to(x, tuple(aval.shape[k - missing] if n == -1 else n for k, n in enumerate(shape)))


def t(x: Operand) -> Tensor:
    """The transpose of a matrix; anything with fewer axes as it is. Raises ShapeError for more axes."""
    aval = aval_of(RESHAPE, x)
    if aval.ndim > 2:
        raise ShapeError(f"t: expected at most two axes, got {aval}; use .mT, or transpose(x, i, j)")
    return transpose(x)


@takes_dim()
def unflatten(x: Operand, axis: int, sizes: Sequence[int]) -> Tensor:
    """``x`` with one axis as several, of the lengths ``sizes``, one of which may be -1."""
    shape = aval_of(RESHAPE, x).shape
    k = normalize_axis("unflatten", axis, len(shape))
    known = prod(n for n in sizes if n != -1)
    lengths = [shape[k] // known if n == -1 and known else n for n in sizes]
    return reshape(x, (*shape[:k], *lengths, *shape[k + 1 :]))


# --- reductions --------------------------------------------------------------------------------------------------


@takes_dim()
def amax(x: Operand, axis: AxisArgument = None, keepdims: bool = False) -> Tensor:
    """The largest element over ``axis``, without its position. Equal largest elements share the gradient."""
    return max_(x, axis, keepdims)


@takes_dim()
def amin(x: Operand, axis: AxisArgument = None, keepdims: bool = False) -> Tensor:
    """The smallest element over ``axis``, without its position. Equal smallest elements share the gradient."""
    return min_(x, axis, keepdims)


def _correction(correction: float | None, unbiased: bool) -> float:
    return float(unbiased) if correction is None else correction


@takes_dim()
def var_mean(
    x: Operand, axis: AxisArgument = None, keepdims: bool = False, correction: float | None = None, unbiased: bool = True
) -> tuple[Tensor, Tensor]:
    """The variance and the mean over ``axis``; unbiased by default, as in torch."""
    return var(x, axis, keepdims, correction=_correction(correction, unbiased)), mean(x, axis, keepdims)


@takes_dim()
def std_mean(
    x: Operand, axis: AxisArgument = None, keepdims: bool = False, correction: float | None = None, unbiased: bool = True
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over ``axis``; unbiased by default, as in torch."""
    return std(x, axis, keepdims, correction=_correction(correction, unbiased)), mean(x, axis, keepdims)


@op_sequence
@takes_dim()
def kthvalue(x: Operand, k: int, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """The ``k``-th smallest element along ``axis``, counted from 1, and its position."""
    aval = aval_of(SLICE, x)
    a = normalize_axis("kthvalue", axis, aval.ndim)
    if not aval.ndim or not 1 <= operator.index(k) <= aval.shape[a]:
        raise ArgumentError(f"kthvalue: k={k} of axis {axis} of {aval}; it must be between 1 and the axis's length")
    indices = cut(argsort(x, a), a, k - 1, k)
    if keepdims:
        return ValuesAndIndices(take_along_axis(x, indices, a), indices)
    positions = squeeze(indices, a)
    return ValuesAndIndices(elements_at(x, positions, a), positions)


@op_sequence
@takes_dim()
def cummax(x: Operand, axis: int) -> ValuesAndIndices:
    """The largest element so far along ``axis``, and its position: the last of equals; NaN stays."""
    return _running_extremum("cummax", x, axis, largest=True)


@op_sequence
@takes_dim()
def cummin(x: Operand, axis: int) -> ValuesAndIndices:
    """The smallest element so far along ``axis``, and its position: the last of equals; NaN stays."""
    return _running_extremum("cummin", x, axis, largest=False)


def _running_extremum(what: str, x: Operand, axis: int, largest: bool) -> ValuesAndIndices:
    given = asarray(x)
    k = normalize_axis(what, axis, given.ndim)
    indices = running_position(given, k, largest)
    return ValuesAndIndices(take_along_axis(given, indices, k), indices)


# --- limits ------------------------------------------------------------------------------------------------------


def clamp_min(x: Operand, min: Operand) -> Tensor:
    """``max(x, min)`` per element."""
    return maximum(x, min)


def clamp_max(x: Operand, max: Operand) -> Tensor:
    """``min(x, max)`` per element."""
    return minimum(x, max)


# --- questions ---------------------------------------------------------------------------------------------------


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a Tensor."""
    return isinstance(x, Tensor)


def is_floating_point(x: Operand) -> bool:
    """Whether ``x`` has a floating dtype."""
    return aval_of(RESHAPE, x).dtype.kind == "f"


def numel(x: Operand) -> int:
    """The number of elements."""
    aval: Aval = aval_of(RESHAPE, x)
    return aval.size
