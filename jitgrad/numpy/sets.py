"""NumPy's sets: vectors of distinct elements in order.

Their lengths depend on the values: a @jit function raises TracedValueError.
"""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import refuse, tensor_of
from jitgrad.numpy.joining import concatenate
from jitgrad.numpy.shapes import ravel
from jitgrad.ops import sorting
from jitgrad.ops.comparison import logical_not
from jitgrad.ops.integers import isin


def _distinct(x: Any, assume_unique: bool = False) -> Tensor:
    return ravel(x) if assume_unique else sorting.unique(tensor_of(x))


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The elements of either."""
    return _distinct(concatenate([ravel(ar1), ravel(ar2)], 0))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Tensor:
    """The elements of both."""
    refuse("intersect1d", return_indices=return_indices or None)
    first = _distinct(ar1)
    return first[isin(first, tensor_of(ar2))]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements of the first alone; with ``assume_unique`` in their own order."""
    first = _distinct(ar1, assume_unique)
    return first[logical_not(isin(first, tensor_of(ar2)))]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements of one of the two alone."""
    return union1d(setdiff1d(ar1, ar2), setdiff1d(ar2, ar1))
