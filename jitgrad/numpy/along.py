"""NumPy's functions that call a function for each line, or for each axis, of an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of, tensors_of
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import expand_dims, moveaxis, reshape


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """``func1d(line, *args, **kwargs)`` of each line along ``axis``; the axes of the results take its place.

    The function is called for each line: one that only computes is quicker under ``jg.vmap``.
    """
    given = tensor_of(arr)
    if not given.size:
        raise ShapeError(f"apply_along_axis: {given.aval} has no lines, or empty ones")
    along = normalize_axis("apply_along_axis", axis, given.ndim)
    moved = moveaxis(given, along, -1)
    others = moved.shape[:-1]
    lines = reshape(moved, (math.prod(others), moved.shape[-1]))
    results = tensors_of([func1d(lines[k], *args, **kwargs) for k in range(lines.shape[0])])
    own = results[0].shape
    out = reshape(stack(results), (*others, *own))
    first = len(others)
    return moveaxis(out, tuple(range(first, first + len(own))), tuple(range(along, along + len(own)))) if own else out


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Tensor:
    """``func(a, axis)`` for one axis after the other, each of which stays, with length 1 if ``func`` takes it away."""
    out = tensor_of(a)
    ndim = out.ndim
    for axis in np.atleast_1d(axes).tolist():
        along = normalize_axis("apply_over_axes", axis, ndim)
        result = tensor_of(func(out, along))
        out = expand_dims(result, along) if result.ndim == ndim - 1 else result
        if out.ndim != ndim:
            raise ShapeError(f"apply_over_axes: the function made {result.aval} of {ndim} axes")
    return out
