"""The distribution of ``exp`` of a normal variable."""

from __future__ import annotations

from typing import ClassVar

from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution
from jitgrad.distributions.normal import Normal
from jitgrad.distributions.transformed_distribution import TransformedDistribution
from jitgrad.distributions.transforms import ExpTransform
from jitgrad.ops.arithmetic import square
from jitgrad.ops.operand import Operand
from jitgrad.ops.transcendental import exp, expm1


class LogNormal(TransformedDistribution):
    """``exp`` of a normal variable of mean ``loc`` and standard deviation ``scale``."""

    arg_constraints: ClassVar[constraints.Conditions] = Normal.arg_constraints

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=False)
        super().__init__(base, ExpTransform(), validate_args)
        self.loc: Tensor = base.loc
        self.scale: Tensor = base.scale
        Distribution.__init__(self, base.batch_shape, (), validate_args, {"loc": base.loc, "scale": base.scale})

    @property
    def support(self) -> constraints.Constraint:
        return constraints.positive

    @property
    def mean(self) -> Tensor:
        return exp(self.loc + 0.5 * square(self.scale))

    @property
    def mode(self) -> Tensor:
        return exp(self.loc - square(self.scale))

    @property
    def variance(self) -> Tensor:
        spread = square(self.scale)
        return expm1(spread) * exp(2.0 * self.loc + spread)

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return Normal(self.loc, self.scale, False).entropy() + self.loc
