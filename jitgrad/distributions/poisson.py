"""The Poisson distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from jitgrad.autograd.modes import no_grad
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops import draws
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import gammaln
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.rounding import floor


class Poisson(Distribution):
    """Counts of independent events, of which ``rate`` are expected."""

    arg_constraints: ClassVar[constraints.Conditions] = {"rate": constraints.nonnegative}

    def __init__(self, rate: Operand, validate_args: bool | None = None) -> None:
        (expected,) = floating(rate)
        self.rate: Tensor = expected
        super().__init__(expected.shape, (), validate_args, {"rate": expected})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return draws.poisson(broadcast_to(self.rate, self.extended(sample_shape)))

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return xlogy(value, self.rate) - self.rate - gammaln(value + 1.0)
