"""The categorical distribution over one-hot vectors, and counts of several draws."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.categorical import Categorical
from jitgrad.distributions.distribution import Distribution
from jitgrad.ops.comparison import equal, logical_and, where
from jitgrad.ops.gamma import gammaln
from jitgrad.ops.neural import one_hot
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import argmax, sum

_BY_WEIGHTS: constraints.Conditions = {"probs": constraints.simplex, "logits": constraints.real_vector}


class OfChoices(Distribution):
    """A distribution over vectors [n] with one element for each of n choices, of the weights of a `Categorical`."""

    arg_constraints: ClassVar[constraints.Conditions] = _BY_WEIGHTS

    def __init__(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self.choice: Categorical = Categorical(probs, logits, validate_args)
        super().__init__(self.choice.batch_shape, self.choice.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities [..., n]; they sum to 1."""
        return self.choice.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms [..., n] of the probabilities."""
        return self.choice.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        return self.choice.param_shape

    def vectors(self, choices: Tensor) -> Tensor:
        """One-hot vectors, in the dtype of the probabilities."""
        return one_hot(choices, self.event_shape[0], dtype=self.probs.dtype)


class OneHotCategorical(OfChoices):
    """1 at a choice and else 0, by weights ``probs`` or by unnormalised logarithms ``logits`` along the last axis."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.one_hot

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self.vectors(argmax(self.probs, -1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.vectors(self.choice.sample(sample_shape))

    def log_prob(self, value: Operand) -> Tensor:
        return self.choice.log_prob(argmax(self.checked(value), -1))

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        return self.choice.entropy()


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical`; the gradient of a sample goes to the probabilities as it is (Y. Bengio et al., 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())  # type: ignore[no-any-return]


class Multinomial(OfChoices):
    """How often each choice comes in ``total_count`` draws, by ``probs`` or ``logits`` along the last axis."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count: int = int(total_count)
        super().__init__(probs, logits, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs) * self.total_count

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return sum(self.vectors(self.choice.sample((self.total_count, *sample_shape))), 0)

    def log_prob(self, value: Operand) -> Tensor:
        counts = self.checked(value)
        impossible = logical_and(equal(counts, 0), equal(self.logits, -np.inf))
        powers = where(impossible, 0.0, self.logits) * counts
        return gammaln(sum(counts, -1) + 1.0) - sum(gammaln(counts + 1.0), -1) + sum(powers, -1)
