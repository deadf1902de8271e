"""Random numbers in the shape of another tensor."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.ops.creation import asarray
from jitgrad.ops.placement import beside, placed_on
from jitgrad.ops.random import Generator, rand, randint, randn


def rand_like(
    x: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Generator | None = None
) -> Tensor:
    """:func:`rand` in the shape of ``x``, and in its dtype and where it is unless ``dtype`` or ``device`` is given."""
    like = asarray(x)
    with beside(like) if device is None else placed_on(device):
        return rand(like.shape, dtype=dtype or like.dtype, requires_grad=requires_grad, generator=generator)


def randn_like(
    x: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Generator | None = None
) -> Tensor:
    """:func:`randn` in the shape of ``x``, and in its dtype and where it is unless ``dtype`` or ``device`` is given."""
    like = asarray(x)
    with beside(like) if device is None else placed_on(device):
        return randn(like.shape, dtype=dtype or like.dtype, requires_grad=requires_grad, generator=generator)


def randint_like(
    x: Any,
    low: int,
    high: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Integers in [low, high), or [0, low), in the shape and dtype of ``x``, and where it is, unless these are given."""
    like = asarray(x)
    start, stop = (0, low) if high is None else (low, high)
    wanted = like.dtype if dtype is None else check_supported("randint_like", dtype)
    with beside(like) if device is None else placed_on(device):
        return randint(start, stop, like.shape, dtype=wanted, generator=generator)
