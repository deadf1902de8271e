"""Functions of layers that draw random numbers while they are trained: dropout, and activations of random slope."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import neural
from jitgrad.ops.activations import leaky_relu
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import asarray
from jitgrad.ops.inplace import assign
from jitgrad.ops.placement import beside
from jitgrad.ops.random import Generator, uniform

_SELU_LIMIT = -1.0507009873554805 * 1.6732632423543772  # what selu tends to on the left


def dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """In training, each element zero with probability ``p``, else scaled by ``1 / (1 - p)``."""
    out = neural.dropout(input, p, training, generator=generator)
    return assign(input, out) if inplace else out


def dropout1d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """:func:`dropout` of whole channels of [n, channels, length]."""
    return dropout2d(input, p, training, inplace, generator=generator)


def dropout2d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """:func:`dropout` of whole channels of [n, channels, ...]."""
    x = asarray(input)
    with beside(x):
        kept = neural.dropout(x.new_ones(_per_channel(x)), p, training, generator=generator)
    return assign(input, x * kept) if inplace else x * kept


def dropout3d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """:func:`dropout` of whole channels of [n, channels, depth, h, w]."""
    return dropout2d(input, p, training, inplace, generator=generator)


def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """In training, each element selu's left limit with probability ``p``, then scaled so that mean 0 and variance 1
    stay (G. Klambauer et al., arXiv:1706.02515)."""
    x = asarray(input)
    return _at_selu_limit(input, x.shape, p, training, inplace, generator)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """:func:`alpha_dropout` of whole channels of [n, channels, ...]. Raises ShapeError for a vector in training."""
    x = asarray(input)
    if x.ndim < 2 and training:
        raise ShapeError(f"feature_alpha_dropout: expected [n, channels, ...], got {x.aval}")
    return _at_selu_limit(input, _per_channel(x), p, training, inplace, generator)


def _per_channel(x: Tensor) -> tuple[int, ...]:
    return (*x.shape[:2], *(1 for _ in x.shape[2:]))


def _at_selu_limit(
    input: Any, shape: tuple[int, ...], p: float, training: bool, inplace: bool, generator: Generator | None
) -> Tensor:
    """Dropout to selu's left limit of ``input``; one choice for each element of ``shape``, which broadcasts to it."""
    x = asarray(input)
    if not training or p == 0.0:
        return x
    with beside(x):
        kept = neural.dropout(x.new_ones(shape), p, True, generator=generator) > 0
    scale = ((1.0 - p) * (1.0 + p * _SELU_LIMIT**2)) ** -0.5 if p < 1.0 else 0.0
    out = where(kept, x, _SELU_LIMIT) * scale - scale * _SELU_LIMIT * p
    return assign(input, out) if inplace else out


def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """``input`` where positive, else times a slope: in training one between ``lower`` and ``upper`` for each element.

    Otherwise the slope is their mean. B. Xu et al., "Empirical evaluation of rectified activations in convolutional
    network", arXiv:1505.00853.

    Raises:
        ArgumentError: ``lower`` is above ``upper``.
    """
    if lower > upper:
        raise ArgumentError(f"rrelu: slopes lie between lower and upper, got lower={lower} above upper={upper}")
    x = asarray(input)
    slope: Any = (lower + upper) / 2
    if training:
        with beside(x):
            slope = uniform(lower, upper, x.shape, dtype=x.dtype if x.dtype.kind == "f" else None, generator=generator)
    out = leaky_relu(x, slope)
    return assign(input, out) if inplace else out
