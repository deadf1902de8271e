"""The base class of distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.aval import Shape
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.transcendental import exp


def parameters(*operands: Operand) -> tuple[Tensor, ...]:
    """``operands``, of which some may be numbers, as tensors of their common shape."""
    from_numbers = [x if isinstance(x, Tensor) else asarray(x) for x in operands]
    shape = np.broadcast_shapes(*[x.shape for x in from_numbers])
    return tuple([x if x.shape == shape else broadcast_to(x, shape) for x in from_numbers])


def one_of(what: str, probs: Any, logits: Any) -> tuple[Tensor | None, Tensor | None]:
    """``probs`` and ``logits`` as tensors. Raises ArgumentError unless one of them alone is given."""
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{what}: give probs or logits, and not both")
    return (None, asarray(logits)) if probs is None else (asarray(probs), None)


class Distribution:
    """A batch of distributions of ``batch_shape``, whose samples have ``event_shape`` after that.

    Values of parameters are not checked: ``validate_args`` is accepted and changes nothing.
    """

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        self.batch_shape = batch_shape
        self.event_shape = event_shape

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of ``sample_shape`` before the shape of the distribution, through which gradients flow."""
        raise ArgumentError(f"{type(self).__name__}.rsample: no gradient flows through samples of it; use sample()")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """`rsample` without a history."""
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Operand) -> Tensor:
        """The logarithm of the density, or of the probability, of ``value``."""
        raise ArgumentError(f"{type(self).__name__} defines no log_prob")

    def prob(self, value: Operand) -> Tensor:
        """The density or the probability of ``value``."""
        return exp(self.log_prob(value))

    def extended(self, sample_shape: Any) -> Shape:
        """The shape of samples of ``sample_shape``."""
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={self.batch_shape}, event_shape={self.event_shape})"
