"""Distributions of functions of random variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions.distribution import Distribution
from jitgrad.distributions.transforms import Transform, over_axes
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand


class TransformedDistribution(Distribution):
    """Of ``transforms`` applied, one after the other, to values of ``base_distribution``."""

    def __init__(
        self, base_distribution: Any, transforms: Transform | Sequence[Transform], validate_args: bool | None = None
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if wrong := [part for part in parts if not isinstance(part, Transform)]:
            raise ArgumentError(f"TransformedDistribution: transforms must be a Transform or several, got {wrong[0]!r}")
        self.base_dist: Any = base_distribution
        self.transforms: list[Transform] = parts
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        event = max([len(base_distribution.event_shape), *[part.event_dim for part in parts]])
        super().__init__(shape[: len(shape) - event], shape[len(shape) - event :], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for part in self.transforms:
            x = part(x)
        return x

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        y, event = asarray(value), len(self.event_shape)
        total: Any = 0.0
        for part in reversed(self.transforms):
            x = part.inv(y)
            total = total - over_axes(part.log_abs_det_jacobian(x, y), event - part.event_dim)
            y = x
        return over_axes(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape)) + total  # type: ignore[no-any-return]
