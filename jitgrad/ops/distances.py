"""Lengths, angles and distances of vectors along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import broadcast_shapes
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, divide, maximum, multiply, sqrt, subtract
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexing import as_constant, take
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.norms import norm
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import sum as sum_


@takes_dim(p="ord")
@composed
def normalize(x: Operand, ord: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    """``x`` divided by its norm of order ``ord`` along ``axis``, or by ``eps`` where that is larger."""
    length = norm(x, None if ord == 2 else ord, axis, keepdims=True)
    return divide(x, maximum(length, eps))


@takes_dim()
@composed
def cosine_similarity(x: Operand, y: Operand, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along ``axis``; their lengths count as ``eps`` at least."""
    left, right = asarray(x), asarray(y)
    shape = broadcast_shapes("cosine_similarity", [left.aval, right.aval])
    left, right = broadcast_to(left, shape), broadcast_to(right, shape)
    product = sum_(multiply(left, right), axis)
    lengths = (sum_(multiply(v, v), axis) for v in (left, right))
    a, b = (sqrt(maximum(square, eps * eps)) for square in lengths)
    return divide(product, multiply(a, b))


@takes_dim(p="ord", keepdim="keepdims")
def pairwise_distance(x: Any, y: Any, ord: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Tensor:
    """The norm of ``x - y + eps`` along the last axis."""
    return norm(add(subtract(x, y), eps), None if ord == 2 else ord, -1, keepdims)


@composed
def pdist(x: Any, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows of ``x`` [n, d]: [n * (n - 1) / 2], those of row 0 first."""
    rows = asarray(x)
    if rows.ndim != 2:
        raise ShapeError(f"pdist: expected a matrix of rows, got {rows.aval}")
    first, second = np.triu_indices(rows.shape[0], 1)
    difference = subtract(take(rows, as_constant(first), 0), take(rows, as_constant(second), 0))
    return norm(difference, None if p == 2 else p, -1)
