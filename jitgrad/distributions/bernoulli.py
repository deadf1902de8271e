"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from jitgrad.autograd.modes import no_grad
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import OfProbability, one_of
from jitgrad.ops.activations import softplus
from jitgrad.ops.comparison import greater_equal, where
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.random import bernoulli


class Bernoulli(OfProbability):
    """1 with probability ``probs``, or ``sigmoid(logits)``, and else 0."""

    arg_constraints: ClassVar[constraints.Conditions] = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(*one_of("Bernoulli", probs, logits), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.boolean

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
        value = self.checked(value)
        return self.logits * value - softplus(self.logits)

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        return softplus(self.logits) - self.probs * self.logits
