"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import OfTrials
from jitgrad.ops import draws
from jitgrad.ops.activations import softplus
from jitgrad.ops.arithmetic import minimum
from jitgrad.ops.gamma import gammaln
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.rounding import floor


class Binomial(OfTrials):
    """How many of ``total_count`` trials succeed that do so with probability ``probs``, or ``sigmoid(logits)``."""

    arg_constraints: ClassVar[constraints.Conditions] = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real
    }  # fmt: skip

    def __init__(
        self, total_count: Operand = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return minimum(floor((self.total_count + 1.0) * self.probs), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1.0 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self.extended(sample_shape)
        with no_grad():
            return draws.binomial(broadcast_to(self.total_count, shape), broadcast_to(self.probs, shape))

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        n = self.total_count
        ways = gammaln(n + 1.0) - gammaln(value + 1.0) - gammaln(n - value + 1.0)
        return ways + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        """The entropy, in nats: a sum over all counts, whose number must be known while tracing."""
        most = int(np.max(self.total_count.concrete("Binomial.entropy"), initial=0))
        count = np.arange(most + 1, dtype=self.total_count.dtype).reshape(-1, *[1] * len(self.batch_shape))
        inside = count <= self.total_count
        terms = Binomial(self.total_count, logits=self.logits, validate_args=False).log_prob(minimum(count, self.total_count))
        return -(terms.exp() * terms * inside).sum(0)  # type: ignore[no-any-return]
