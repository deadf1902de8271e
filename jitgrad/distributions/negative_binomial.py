"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from jitgrad.autograd.modes import no_grad
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import OfTrials
from jitgrad.ops import draws
from jitgrad.ops.activations import logsigmoid
from jitgrad.ops.arithmetic import maximum
from jitgrad.ops.gamma import gammaln
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.rounding import floor
from jitgrad.ops.transcendental import exp, sigmoid


class NegativeBinomial(OfTrials):
    """How many trials succeed, each with probability ``probs`` or ``sigmoid(logits)``, before ``total_count`` have failed."""

    arg_constraints: ClassVar[constraints.Conditions] = {
        "total_count": constraints.nonnegative, "probs": constraints.unit_interval, "logits": constraints.real
    }  # fmt: skip

    def __init__(self, total_count: Operand, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return maximum(floor((self.total_count - 1.0) * exp(self.logits)), 0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / sigmoid(-self.logits)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self.extended(sample_shape)
        with no_grad():
            rate = draws.standard_gamma(broadcast_to(self.total_count, shape)) * exp(self.logits)
            return draws.poisson(rate)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        n = self.total_count
        ways = gammaln(n + value) - gammaln(value + 1.0) - gammaln(n)
        return ways + n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
