"""Several distributions as one of more axes."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions.distribution import Distribution
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import sum


class Independent(Distribution):
    """``base_distribution`` with its last ``reinterpreted_batch_ndims`` batch axes as axes of one event."""

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= count <= len(batch):
            raise ArgumentError(f"Independent: {count} axes of the batch shape {batch}; it has {len(batch)}")
        self.base_dist: Any = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        kept = len(batch) - count
        super().__init__(batch[:kept], (*batch[kept:], *base_distribution.event_shape), validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample  # type: ignore[no-any-return]

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance  # type: ignore[no-any-return]

    @property
    def stddev(self) -> Tensor:
        return self.base_dist.stddev  # type: ignore[no-any-return]

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)  # type: ignore[no-any-return]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)  # type: ignore[no-any-return]

    def log_prob(self, value: Operand) -> Tensor:
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        """The sum of the entropies."""
        return self.summed(self.base_dist.entropy())

    def summed(self, x: Tensor) -> Tensor:
        """``x`` summed over the axes of an event."""
        count = self.reinterpreted_batch_ndims
        return sum(x, tuple(range(-count, 0))) if count else x
