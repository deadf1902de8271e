"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.tensor import Tensor
from jitgrad.distributions.distribution import Distribution, one_of
from jitgrad.ops.activations import softplus
from jitgrad.ops.arithmetic import clip
from jitgrad.ops.comparison import greater_equal, where
from jitgrad.ops.entropy import logit
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.random import bernoulli
from jitgrad.ops.transcendental import sigmoid


class Bernoulli(Distribution):
    """1 with probability ``probs``, or ``sigmoid(logits)``, and else 0."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._probs, self._logits = one_of("Bernoulli", probs, logits)
        super().__init__((self._probs if self._probs is not None else self._logits).shape)  # type: ignore[union-attr]

    @property
    def probs(self) -> Tensor:
        return sigmoid(self._logits) if self._probs is None else self._probs  # type: ignore[arg-type]

    @property
    def logits(self) -> Tensor:
        if self._logits is not None:
            return self._logits
        least = float(np.finfo(self.probs.dtype).eps)
        return logit(clip(self.probs, least, 1.0 - least))

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    @property
    def mode(self) -> Tensor:
        return where(greater_equal(self.probs, 0.5), 1.0, 0.0).to(self.probs.dtype)  # type: ignore[no-any-return]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return bernoulli(broadcast_to(self.probs, self.extended(sample_shape)), dtype=self.probs.dtype)

    def log_prob(self, value: Operand) -> Tensor:
        return self.logits * value - softplus(self.logits)

    def entropy(self) -> Tensor:
        """In nats."""
        return softplus(self.logits) - self.probs * self.logits
