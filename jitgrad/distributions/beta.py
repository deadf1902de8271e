"""The beta distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.dirichlet import Dirichlet
from jitgrad.distributions.distribution import Distribution, floating
from jitgrad.ops.arithmetic import square
from jitgrad.ops.joining import stack
from jitgrad.ops.operand import Operand


class Beta(Distribution):
    """Of probabilities, with density in proportion to ``x**(concentration1 - 1) * (1 - x)**(concentration0 - 1)``."""

    arg_constraints: ClassVar[constraints.Conditions] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive
    }  # fmt: skip
    has_rsample = True

    def __init__(self, concentration1: Operand, concentration0: Operand, validate_args: bool | None = None) -> None:
        ones, zeros = floating(concentration1, concentration0)
        self.concentration1: Tensor = ones
        self.concentration0: Tensor = zeros
        self._pair: Dirichlet = Dirichlet(stack([ones, zeros], -1), validate_args=False)
        super().__init__(ones.shape, (), validate_args, {"concentration1": ones, "concentration0": zeros})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.unit_interval

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a * b / (square(a + b) * (a + b + 1.0))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples, whose gradients have no gradients of their own."""
        return self._pair.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        return self._pair.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return self._pair.entropy()
