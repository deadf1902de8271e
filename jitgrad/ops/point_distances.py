"""Euclidean distances of points in blocks, in eager execution: without the differences of all pairs at once.

Compiled functions fuse the differences with what reads them, and do not need these ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import multiply, negative, subtract
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import expand_dims, transpose
from jitgrad.ops.operand import apply
from jitgrad.ops.reduce import root, sum

_BLOCK = 1 << 15  # elements of a temporary, which fit in the second-level cache
_FEW = 32  # coordinates, which are added one after the other
_LEAST = 1 << 15  # differences, of which the ops take longer
_CLOSE = 2.0**-24  # squared distances of a smaller part of the squares have less than 28 correct bits
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def _blocks(count: int, row: int) -> Iterator[slice]:
    """Parts of ``count`` rows, each of so many elements that few rows are a block."""
    step = max(1, _BLOCK // max(1, row))
    return (slice(start, start + step) for start in range(0, count, step))


def _squared_distances(x: Array, y: Array) -> Array:
    out = _by_products(x, y) if x.dtype == np.float32 else None
    return _by_differences(x, y) if out is None else out


def _by_products(x: Array, y: Array) -> Array | None:
    """``|x|^2 - 2 x y + |y|^2`` in float64, rounded once; None where that is not exact.

    Its error is some 2**-52 of the squares. Distances of which that is more than float32 shows, of points that lie close
    together, are computed from differences.
    """
    a, b = x.astype(np.float64), y.astype(np.float64)
    squares_a, squares_b = np.einsum("ij,ij->i", a, a), np.einsum("ij,ij->i", b, b)
    if not (np.isfinite(squares_a).all() and np.isfinite(squares_b).all()):
        return None
    a *= -2.0
    total = a @ b.T
    total += squares_a[:, None]
    total += squares_b
    close = total < ((squares_a + squares_b.max()) * _CLOSE)[:, None]
    out: Array = total.astype(np.float32)
    if close.any():
        rows, columns = np.nonzero(close)
        if 4 * rows.size > close.size:
            return None
        difference = x[rows] - y[columns]
        out[rows, columns] = np.add.reduce(np.multiply(difference, difference, out=difference), -1)
    return out


def _by_differences(x: Array, y: Array) -> Array:
    out: Array = np.zeros((len(x), len(y)), x.dtype)
    few = x.shape[1] <= _FEW
    columns = np.ascontiguousarray(y.T) if few else y
    for part in _blocks(len(x), len(y) if few else y.size):
        total = out[part]
        if few:
            for k, column in enumerate(columns):
                difference = np.subtract(x[part, k, None], column)
                total += np.multiply(difference, difference, out=difference)
        else:
            differences = np.subtract(x[part, None], y)
            np.add.reduce(np.multiply(differences, differences, out=differences), -1, out=total)
    return out


def _weighted_differences(x: Array, y: Array, weights: Array) -> Array:
    if x.dtype == np.float32 and all([np.isfinite(v).all() for v in (x, y, weights)]):
        wide = weights.astype(np.float64)  # in which differences of float32 lose nothing that float32 shows
        total = x * np.add.reduce(wide, 1, keepdims=True) - wide @ y.astype(np.float64)
        return total.astype(np.float32)
    out: Array = np.zeros(x.shape, x.dtype)
    for part in _blocks(len(x), y.size):
        out[part] = np.matmul(weights[part, None], np.subtract(x[part, None], y))[:, 0]
    return out


def _distances_vjp(g: Tensor, _out: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    twice = multiply(g, 2.0)
    return apply(WEIGHTED_DIFFERENCES, x, y, twice), apply(WEIGHTED_DIFFERENCES, y, x, transpose(twice))


def _differences_vjp(g: Tensor, _out: Any, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    differences = subtract(expand_dims(x, 1), expand_dims(y, 0))
    return (
        multiply(g, sum(weights, 1, keepdims=True)),
        negative(matmul(transpose(weights), g)),
        sum(multiply(expand_dims(g, 1), differences), -1),
    )


def _distances_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    x, y = avals
    return Aval((x.shape[0], y.shape[0]), x.dtype)


SQUARED_DISTANCES = define(
    "squared_distances(x, y)",  # of the rows of x [n, d] from those of y [m, d]
    kind=Kind.OPAQUE,
    eager=_squared_distances,
    abstract=_distances_aval,
    vjp=_distances_vjp,
    register=False,
)
WEIGHTED_DIFFERENCES = define(
    "weighted_differences(x, y, weights)",  # of row i of x the sum over j of weights[i, j] * (x[i] - y[j])
    kind=Kind.OPAQUE,
    eager=_weighted_differences,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, avals[0].dtype),
    vjp=_differences_vjp,
    register=False,
)


def distances_in_blocks(x: Any, y: Any) -> Tensor | None:
    """The Euclidean distances of the rows of ``x`` [n, d] from those of ``y`` [m, d]; None for others, and where the
    differences of all pairs are to be computed at once."""
    if current_interpreter.other() is not None or type(x) is not Tensor or type(y) is not Tensor:
        return None
    a, b = x._data, y._data
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.ndim != 2 or b.ndim != 2:
        return None
    if a.dtype != b.dtype or a.dtype not in _FLOATS or a.shape[1] != b.shape[1] or len(a) * b.size < _LEAST:
        return None
    return root(apply(SQUARED_DISTANCES, x, y))
