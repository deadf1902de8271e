"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions.categorical import Categorical
from jitgrad.distributions.distribution import Distribution
from jitgrad.ops.arithmetic import square
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.movement import broadcast_to, expand_dims, reshape, squeeze
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import log_softmax, logsumexp, sum


class MixtureSameFamily(Distribution):
    """One of the K ``component_distribution`` [..., K], as ``mixture_distribution`` over K chooses.

    Raises ShapeError unless the last batch axis of the components has the length K.
    """

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        mixture, components = mixture_distribution, component_distribution
        count = mixture.param_shape[-1]
        if not components.batch_shape or components.batch_shape[-1] != count:
            raise ShapeError(
                f"MixtureSameFamily: {count} choices need components of a last batch axis of that length, "
                f"got {components!r}"
            )
        self.mixture_distribution: Categorical = mixture
        self.component_distribution: Any = components
        self._axis: int = -1 - len(components.event_shape)
        super().__init__(components.batch_shape[:-1], components.event_shape, validate_args)

    @property
    def support(self) -> Any:
        return self.component_distribution.support

    def _averaged(self, x: Tensor) -> Tensor:
        """The mean of ``x`` over the components."""
        weights = self.mixture_distribution.probs
        return sum(reshape(weights, (*weights.shape, *[1] * len(self.event_shape))) * x, self._axis)

    @property
    def mean(self) -> Tensor:
        return self._averaged(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        parts = self.component_distribution
        return self._averaged(parts.variance) + self._averaged(square(parts.mean - expand_dims(self.mean, self._axis)))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            drawn = self.component_distribution.sample(sample_shape)
            which = self.mixture_distribution.sample(sample_shape)
            index = reshape(which, (*which.shape, *[1] * (len(self.event_shape) + 1)))
            wide = broadcast_to(index, (*drawn.shape[: self._axis], 1, *self.event_shape))
            return squeeze(take_along_axis(drawn, wide, self._axis), self._axis)

    def log_prob(self, value: Operand) -> Tensor:
        parts = self.component_distribution.log_prob(expand_dims(self.checked(value), self._axis))
        return logsumexp(parts + log_softmax(self.mixture_distribution.logits, -1), -1)

    def cdf(self, value: Operand) -> Tensor:
        """The probability of being at most ``value``."""
        parts = self.component_distribution.cdf(expand_dims(self.checked(value), self._axis))
        return sum(parts * self.mixture_distribution.probs, -1)
