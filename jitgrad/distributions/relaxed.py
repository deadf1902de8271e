"""Continuous distributions near Bernoulli and categorical ones, whose samples have gradients."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution, OfProbability, one_of
from jitgrad.distributions.one_hot_categorical import OfChoices
from jitgrad.ops.activations import softplus
from jitgrad.ops.arithmetic import clip
from jitgrad.ops.creation import asarray
from jitgrad.ops.entropy import logit
from jitgrad.ops.movement import expand_dims, reshape
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.random import rand
from jitgrad.ops.reduce import log_softmax, softmax, sum
from jitgrad.ops.transcendental import log, sigmoid


def _uniform(distribution: Distribution, like: Tensor, sample_shape: Any) -> Tensor:
    """Uniform numbers for samples of ``sample_shape``, without 0 and 1."""
    with beside(like):
        drawn = rand(*distribution.extended(sample_shape), dtype=like.dtype)
    least = float(np.finfo(like.dtype).eps)
    return clip(drawn, least, 1.0 - least)


def _temperature(what: str, given: Operand) -> Tensor:
    """``given`` as a tensor without axes, as it is the same for all. Raises ArgumentError for several."""
    temperature = asarray(given)
    if temperature.size != 1:
        raise ArgumentError(f"{what}: one temperature for all, got {temperature.aval}")
    return reshape(temperature, ())


class RelaxedBernoulli(OfProbability):
    """``sigmoid((logits + logistic noise) / temperature)``; the lower the temperature, the nearer to 0 and 1.

    C. J. Maddison et al., "The Concrete Distribution", 2017, appendix B.
    """

    arg_constraints: ClassVar[constraints.Conditions] = {"probs": constraints.unit_interval, "logits": constraints.real}
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature: Tensor = _temperature("RelaxedBernoulli", temperature)
        super().__init__(*one_of("RelaxedBernoulli", probs, logits), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.unit_interval

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return sigmoid((self.logits + logit(_uniform(self, self.logits, sample_shape))) / self.temperature)

    def log_prob(self, value: Operand) -> Tensor:
        odds = logit(self.checked(value))
        away = self.logits - odds * self.temperature
        density = log(self.temperature) + away - 2.0 * softplus(away)
        return density + softplus(odds) + softplus(-odds)


class RelaxedOneHotCategorical(OfChoices):
    """``softmax((logits + Gumbel noise) / temperature)``: probabilities near one-hot vectors, if that is low.

    C. J. Maddison et al., "The Concrete Distribution", 2017, equation 6; E. Jang et al., "Categorical
    Reparameterization with Gumbel-Softmax", 2017.
    """

    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature: Tensor = _temperature("RelaxedOneHotCategorical", temperature)
        super().__init__(probs, logits, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.simplex

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        logits = self.logits
        return softmax((logits - log(-log(_uniform(self, logits, sample_shape)))) / self.temperature, -1)

    def log_prob(self, value: Operand) -> Tensor:
        logarithms, count = log(self.checked(value)), self.event_shape[0]
        scores = log_softmax(self.logits - logarithms * expand_dims(self.temperature, -1), -1)
        return sum(scores - logarithms, -1) + (math.lgamma(count) + log(self.temperature) * (count - 1.0))
