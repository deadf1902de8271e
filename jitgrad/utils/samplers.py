"""torch.utils.data's samplers: the order in which a loader takes the items of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray
from jitgrad.ops.random import Generator, multinomial, randint, randperm

_Item_co = TypeVar("_Item_co", covariant=True)


class Sampler(Generic[_Item_co]):
    """Base class: subclasses define ``__iter__``, which gives indices, or lists of them; and ``__len__`` if they can."""

    def __iter__(self) -> Iterator[_Item_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class SequentialSampler(Sampler[int]):
    """The indices of a data set in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source: Any = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices of a data set in random order: ``num_samples`` of them, by default as many as there are items.

    With ``replacement`` each is drawn from all; without it all come once before one of them comes again.

    Raises:
        ArgumentError: ``num_samples`` is not positive.
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if num_samples is not None:
            _check_positive("RandomSampler", "num_samples", num_samples)
        self.data_source: Any = data_source
        self.replacement: bool = replacement
        self.generator: Generator | None = generator
        self._wanted: int | None = num_samples

    @property
    def num_samples(self) -> int:
        """The number of indices; a data set may grow."""
        return len(self.data_source) if self._wanted is None else self._wanted

    def __iter__(self) -> Iterator[int]:
        count = len(self.data_source)
        if not count:
            return iter(())
        if self.replacement:
            return iter(randint(0, count, (self.num_samples,), generator=self.generator).tolist())
        rounds = range(-(-self.num_samples // count))
        drawn = (k for _ in rounds for k in randperm(count, generator=self.generator).tolist())
        return islice(drawn, self.num_samples)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices: Sequence[int] = indices
        self.generator: Generator | None = generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[k] for k in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """``num_samples`` indices of ``weights``, each drawn with a probability in proportion to its weight.

    Raises:
        ArgumentError: ``num_samples`` is not positive, or the weights are not a vector.
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _check_positive("WeightedRandomSampler", "num_samples", num_samples)
        self.weights: Tensor = asarray(weights).double()
        if self.weights.ndim != 1:
            raise ArgumentError(f"WeightedRandomSampler: the weights must be a vector, got {self.weights.aval}")
        self.num_samples: int = num_samples
        self.replacement: bool = replacement
        self.generator: Generator | None = generator

    def __iter__(self) -> Iterator[int]:
        return iter(multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler; ``drop_last`` leaves a shorter one at the end out.

    Raises:
        ArgumentError: ``batch_size`` is not positive.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_positive("BatchSampler", "batch_size", batch_size)
        self.sampler: Iterable[int] = sampler
        self.batch_size: int = batch_size
        self.drop_last: bool = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        return batched(self.sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]  # a sampler without a length has no number of batches
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def batched(items: Iterable[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Lists of ``size`` items; a shorter one at the end unless ``drop_last``."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        if len(batch) == size or not drop_last:
            yield batch


def _check_positive(what: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{what}: {name} must be an int of at least 1, got {shown(value)}")
