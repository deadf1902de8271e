"""torch's constructors whose memory layout is an argument: the shape is theirs, the layout is not chosen here."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.config import get_default_dtype
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray, tensor, zeros
from jitgrad.ops.movement import reshape
from jitgrad.ops.operand import Operand


def _lengths(what: str, name: str, size: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    if len(size) != len(other):
        raise ArgumentError(f"{what}: {len(size)} sizes and {len(other)} of {name}: give one for each axis")
    return tuple(operator.index(n) for n in size)


def empty_strided(size: Sequence[int], stride: Sequence[int], *, layout: Any = None, pin_memory: bool = False,
                  **options: Any) -> Tensor:  # fmt: skip
    """Zeros of the shape ``size``; ``options`` are ``dtype``, ``device`` and ``requires_grad``."""
    return zeros(_lengths("empty_strided", "stride", size, stride), **options)


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, layout: Any = None, pin_memory: bool = False,
                   **options: Any) -> Tensor:  # fmt: skip
    """Zeros of the shape ``size``; ``options`` are ``dtype``, ``device`` and ``requires_grad``."""
    shape = _lengths("empty_permuted", "physical_layout", size, physical_layout)
    if sorted(physical_layout) != list(range(len(shape))):
        raise ArgumentError(f"empty_permuted: physical_layout={tuple(physical_layout)} must name each of {len(shape)} axes once")
    return zeros(shape, **options)


def scalar_tensor(s: Any, *, dtype: Any = None, layout: Any = None, pin_memory: bool = False, **options: Any) -> Tensor:
    """The number ``s`` as a 0-d tensor, in the default dtype unless ``dtype`` names one."""
    return tensor(s, dtype=dtype or get_default_dtype(), **options)


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """The bytes of ``buffer`` from ``offset`` on as a vector of ``count`` (-1: all) elements of ``dtype``, in its memory."""
    out = asarray(np.frombuffer(buffer, np.dtype(dtype), count, offset))
    return out.requires_grad_() if requires_grad else out


def resized(what: str, x: Tensor, shape: Sequence[int]) -> Tensor:
    """A view of ``x`` with the first elements that ``shape`` has room for. Raises ArgumentError if it has room for more."""
    lengths = tuple(operator.index(n) for n in shape)
    count = math.prod(lengths)
    if count > x.size:
        raise ArgumentError(
            f"{what} of {x.aval} to {lengths}: {count - x.size} elements would have no value; make a new tensor with "
            "jitgrad.empty, or pad this one with jitgrad.nn.functional.pad"
        )
    row = reshape(x, (-1,)) if x.size else x
    return reshape(row if count == x.size else row[:count], lengths)


def sum_to_size(x: Operand, *size: Any) -> Tensor:
    """``x`` summed over the axes that ``size``, to which it would broadcast from there, does not have or has length 1 of."""
    from_shape, shape = asarray(x), tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else size
    missing = from_shape.ndim - len(shape)
    fits = missing >= 0 and all(n in (1, m) for n, m in zip(shape, from_shape.shape[missing:], strict=True))
    if not fits:
        raise ArgumentError(f"sum_to_size: {from_shape.aval} is no broadcast of the shape {shape}")
    axes = [*range(missing), *(k + missing for k, n in enumerate(shape) if n == 1 and from_shape.shape[k + missing] != 1)]
    return reshape(from_shape.sum(tuple(axes)), shape) if axes else from_shape
