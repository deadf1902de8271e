"""Arithmetic under torch's names where it differs from NumPy's, and a few sums and products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Array, Shape, normalize_axis
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.ops.arithmetic import add, astype, divide, multiply, sign, subtract
from jitgrad.ops.comparison import less, logical_and, logical_xor, not_equal
from jitgrad.ops.creation import asarray, full, ones
from jitgrad.ops.indexing import take
from jitgrad.ops.joining import concat
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.linalg import matmul, outer
from jitgrad.ops.movement import AxisArgument, cut, flatten
from jitgrad.ops.norms import norm
from jitgrad.ops.operand import Operand, as_result, host_array
from jitgrad.ops.placement import beside
from jitgrad.ops.positions import true_positions
from jitgrad.ops.reduce import any as any_
from jitgrad.ops.reduce import cumulative_sum
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import min as min_
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.rounding import floor_divide, trunc
from jitgrad.ops.sorting import searchsorted
from jitgrad.ops.transcendental import logaddexp


@composed
def div(x: Operand, y: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """``x / y``; with ``rounding_mode`` "floor" or "trunc" rounded so, and integers stay integers."""
    if rounding_mode is None:
        return divide(x, y)
    if rounding_mode == "floor":
        return floor_divide(x, y)
    if rounding_mode != "trunc":
        raise ArgumentError(f"div: rounding_mode must be None, 'floor' or 'trunc', got {shown(rounding_mode)}")
    left, right = asarray(x), asarray(y)
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        return trunc(divide(x, y))
    down = floor_divide(left, right)
    rest = not_equal(multiply(down, right), left)
    return add(down, logical_and(rest, logical_xor(less(left, 0), less(right, 0))))


def rsub(x: Operand, other: Operand, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * x``."""
    return subtract(other, x if isinstance(alpha, int) and alpha == 1 else multiply(x, alpha))


def frac(x: Operand) -> Tensor:
    """``x`` without its whole part, with its sign."""
    return subtract(x, trunc(x))


def sgn(x: Operand) -> Tensor:
    """The sign of ``x``: -1, 0 or 1."""
    return sign(x)


@composed
def dist(x: Operand, y: Operand, p: float = 2.0) -> Tensor:
    """The p-norm of all elements of ``x - y``."""
    return norm(subtract(x, y).flatten(), None if p == 2 else p)


@composed
def addr(x: Operand, vec1: Operand, vec2: Operand, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * x + alpha * outer(vec1, vec2)``; ``x`` does not count at all if ``beta`` is 0."""
    return _plus(x, outer(vec1, vec2), beta, alpha)


@composed
def addbmm(x: Operand, batch1: Operand, batch2: Operand, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * x + alpha * sum(batch1 @ batch2)`` over the first axis; ``x`` does not count if ``beta`` is 0."""
    return _plus(x, sum_(matmul(batch1, batch2), 0), beta, alpha)


def _plus(x: Operand, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    scaled = product if isinstance(alpha, (int, float)) and alpha == 1 else multiply(product, alpha)
    if isinstance(beta, (int, float)) and beta == 0:
        return scaled
    return add(x if isinstance(beta, (int, float)) and beta == 1 else multiply(x, beta), scaled)


class Extremes(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


@op_sequence
@takes_dim()
def aminmax(x: Operand, *, axis: AxisArgument = None, keepdims: bool = False) -> Extremes:
    """The smallest and the largest element over ``axis`` (None: all)."""
    return Extremes(min_(x, axis, keepdims), max_(x, axis, keepdims))


@op_sequence
def bucketize(x: Operand, boundaries: Operand, *, right: bool = False, out_int32: bool = False) -> Tensor:
    """The number of boundaries, a sorted vector, that are less than each element; with ``right`` also those equal to it."""
    return searchsorted(asarray(boundaries), asarray(x), right=right, out_int32=out_int32)


@takes_dim()
@composed
def logcumsumexp(x: Operand, axis: int) -> Tensor:
    """``log(cumsum(exp(x)))`` along ``axis`` without overflow, by doubling (W. D. Hillis, G. L. Steele, "Data parallel
    algorithms", 1986)."""
    total = asarray(x)
    k = normalize_axis("logcumsumexp", axis, total.ndim)
    n, step = total.shape[k], 1
    while step < n:
        late, early = cut(total, k, step, n), cut(total, k, 0, n - step)
        total = concat([cut(total, k, 0, step), logaddexp(late, early)], k)
        step *= 2
    return total


class Runs(NamedTuple):
    """Elements of which each differs from the one before, and what else was asked for."""

    output: Tensor
    inverse: Tensor | None
    counts: Tensor | None


def unique_consecutive(
    x: Operand, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The flattened ``x`` without repetitions next to each other; on request with the place of each element in the
    result, and the lengths of the repetitions. With ``dim`` that of the slices along this axis.

    The shape depends on the values: a @jit function has a program for each number of elements that remain.
    """
    given = asarray(x)
    line = flatten(given) if dim is None else given
    k = 0 if dim is None else normalize_axis("unique_consecutive", dim, given.ndim)
    if (data := host_array(line)) is not None:
        shape = given.shape if dim is None else (line.shape[k],)
        return _runs_at_once(line, data, k, shape, (return_inverse, return_counts))
    length, first = line.shape[k], min(line.shape[k], 1)
    differs = not_equal(cut(line, k, first, length), cut(line, k, 0, length - first))
    with beside(given):
        begins = concat([ones((first,), dtype=np.bool_), any_(differs, [j for j in range(line.ndim) if j != k])], 0)
        (starts,) = true_positions(begins, "unique_consecutive")
        ends = concat([cut(starts, 0, first, starts.size), full((first,), length, dtype=np.int64)], 0)
    inverse = subtract(cumulative_sum(astype(begins, np.int64), 0), 1)
    runs = Runs(take(line, starts, k), inverse.reshape(given.shape) if dim is None else inverse, subtract(ends, starts))
    wanted = [True, return_inverse, return_counts]
    chosen = tuple(part for part, asked in zip(runs, wanted, strict=True) if asked)
    return chosen if len(chosen) > 1 else chosen[0]


def _runs_at_once(line: Tensor, data: Array, axis: int, shape: Shape, asked: tuple[bool, bool]) -> Any:
    """`unique_consecutive` along ``axis`` of ``data``, the elements of ``line``; ``shape`` is that of the places."""
    slices = np.moveaxis(data, axis, 0)
    begins = np.ones(len(slices), np.bool_)
    differs = slices[1:] != slices[:-1]
    begins[1:] = differs if differs.ndim == 1 else differs.any(tuple(range(1, differs.ndim)))
    (starts,) = begins.nonzero()
    chosen = [take(line, as_result(starts), axis) if line._requires_grad else as_result(data.take(starts, axis))]
    if asked[0]:
        chosen.append(as_result((np.cumsum(begins) - 1).reshape(shape)))
    if asked[1]:
        chosen.append(as_result(np.diff(starts, append=len(slices))))
    return tuple(chosen) if len(chosen) > 1 else chosen[0]
