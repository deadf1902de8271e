"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, one_of
from jitgrad.ops.arithmetic import astype, clip, maximum
from jitgrad.ops.comparison import greater_equal, where
from jitgrad.ops.creation import full
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.movement import broadcast_to, expand_dims, moveaxis, reshape, squeeze
from jitgrad.ops.operand import Operand
from jitgrad.ops.random import multinomial
from jitgrad.ops.reduce import all, argmax, log_softmax, softmax, sum
from jitgrad.ops.transcendental import log


class Categorical(Distribution):
    """Over 0, ..., n - 1, by weights ``probs`` or by unnormalised logarithms ``logits`` along the last axis."""

    arg_constraints: ClassVar[constraints.Conditions] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        weights, scores = one_of("Categorical", probs, logits)
        given: Any = weights if weights is not None else scores
        if not given.ndim:
            raise ShapeError("Categorical: probs and logits have an axis of the choices, got a number")
        self._probs: Tensor | None = None if weights is None else weights / sum(weights, -1, keepdims=True)
        self._scores: Tensor | None = scores
        self._count: int = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args, {"probs": self._probs, "logits": scores})
        if self._probs is not None and self.gives_nan:
            self._probs = where(all(greater_equal(self._probs, 0.0), -1, keepdims=True), self._probs, math.nan)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._count - 1)

    @property
    def probs(self) -> Tensor:
        """The probabilities; they sum to 1."""
        return softmax(self._scores, -1) if self._probs is None else self._probs  # type: ignore[arg-type]

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        if self._probs is None:
            return log_softmax(self._scores, -1)  # type: ignore[arg-type]
        least = float(np.finfo(self._probs.dtype).eps)
        return log(clip(self._probs, least, 1.0 - least))

    @property
    def param_shape(self) -> tuple[int, ...]:
        return (*self.batch_shape, self._count)

    @property
    def mean(self) -> Tensor:
        """NaN: choices have no order."""
        return full(self.batch_shape, math.nan, dtype=self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        """NaN, as the mean."""
        return self.mean

    @property
    def mode(self) -> Tensor:
        return argmax(self.probs, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        count = math.prod(sample_shape)
        with no_grad():
            drawn = multinomial(reshape(self.probs, (-1, self._count)), count, replacement=True)
            return reshape(moveaxis(drawn, -1, 0), self.extended(sample_shape))

    def _with_nan(self, value: Tensor) -> Tensor:
        return value  # a number of a choice, which NaN is not: the logarithm gets it

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        index = expand_dims(astype(value, np.int64), -1)
        shape = np.broadcast_shapes(index.shape[:-1], self.batch_shape)
        logits = broadcast_to(self.logits, (*shape, self._count))
        found = squeeze(take_along_axis(logits, broadcast_to(index, (*shape, 1)), -1), -1)
        valid = self.valid(value) if self.gives_nan else None
        return found if valid is None else where(valid, found, math.nan)

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        least = float(np.finfo(self.probs.dtype).min)
        return -sum(maximum(self.logits, least) * self.probs, -1)
