"""The geometric distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import OfProbability, one_of
from jitgrad.ops.activations import softplus
from jitgrad.ops.arithmetic import maximum
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.rounding import floor
from jitgrad.ops.transcendental import log, log1p


class Geometric(OfProbability):
    """Failures before the first success, of trials that succeed with probability ``probs``, or ``sigmoid(logits)``."""

    arg_constraints: ClassVar[constraints.Conditions] = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(*one_of("Geometric", probs, logits), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return self.probs * 0.0

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        least = float(np.finfo(self.probs.dtype).tiny)
        with no_grad():
            with beside(self.probs):
                u = rand(*self.extended(sample_shape), dtype=self.probs.dtype)
            return floor(log(maximum(u, least)) / log1p(-self.probs))

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return self.logits - (value + 1.0) * softplus(self.logits)

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        return softplus(self.logits) / self.probs - self.logits
