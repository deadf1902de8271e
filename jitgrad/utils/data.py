"""torch.utils.data: data sets, and loaders that give batches of them in this process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgrad.core.errors import ArgumentError
from jitgrad.core.missing_names import Lookup, raising
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray, tensor
from jitgrad.ops.joining import stack
from jitgrad.ops.random import Generator, randperm
from jitgrad.utils.samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    batched,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
    "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
    "default_collate", "random_split",
]  # fmt: skip


__path__: list[str] = []  # so that import looks for ``jitgrad.torch.utils.data.sampler``, which is this module


class Dataset:
    """Base class: subclasses define ``__getitem__`` and ``__len__``."""

    def __class_getitem__(cls, _item: Any) -> type[Dataset]:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")


class IterableDataset(Dataset):
    """Base class of data sets without indices: subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class ChainDataset(IterableDataset):
    """The items of several iterable data sets, one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets: Iterable[Any] = datasets

    def __iter__(self) -> Iterator[Any]:
        return (item for dataset in self.datasets for item in dataset)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class StackDataset(Dataset):
    """The items of several data sets of one length beside each other: as tuples, or as dicts of keywords' names.

    Raises:
        ArgumentError: the lengths differ; there is no data set, or some have names and others not.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.datasets: Any = kwargs or args
        parts: list[Any] = [*args, *kwargs.values()]
        if bool(args) == bool(kwargs) or len({len(part) for part in parts}) != 1:
            lengths = [len(part) for part in parts]
            raise ArgumentError(f"StackDataset: data sets of one length, all with names or none; got lengths {lengths}")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple([part[index] for part in self.datasets])

    def __len__(self) -> int:
        return len(next(iter(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)))


class TensorDataset(Dataset):
    """Tuples of the elements of tensors along their first axes."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors: tuple[Tensor, ...] = tuple(map(asarray, tensors))
        if len({t.shape[0] for t in self.tensors}) != 1:
            raise ArgumentError(
                f"TensorDataset: first axes of one length are needed, got {[t.shape for t in self.tensors]}"
            )

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([t[index] for t in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Subset(Dataset):
    """The items of a data set at ``indices``."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """The items of several data sets, one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: at least one data set is needed, got none")
        self.cumulative_sizes: list[int] = np.cumsum([len(d) for d in self.datasets]).tolist()

    def __getitem__(self, index: Any) -> Any:
        """Raises IndexError if there are not so many items."""
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"ConcatDataset: index {index} is out of range for {length} items")
        index %= length
        part = bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Parts of ``lengths``, or of these shares, in random order."""
    total = len(dataset)
    counts = [int(n) for n in lengths]
    if sum(lengths) <= 1.0:
        counts = [int(total * share) for share in lengths]
        for k in range(total - sum(counts)):
            counts[k % len(counts)] += 1
    if sum(counts) != total:
        raise ArgumentError(f"random_split: the lengths {list(lengths)} do not sum to that of the data set, {total}")
    order: list[int] = randperm(total, generator=generator).tolist()
    ends = np.cumsum([0, *counts]).tolist()
    return [Subset(dataset, order[start:stop]) for start, stop in zip(ends[:-1], ends[1:], strict=True)]


def default_collate(batch: Sequence[Any]) -> Any:
    """Items as one batch: tensors and arrays are stacked, numbers become tensors, containers are collated inside."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch))
    if isinstance(first, (np.ndarray, np.generic)):
        return asarray(np.stack([np.asarray(x) for x in batch]))
    if isinstance(first, (bool, int)):
        return tensor(list(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=np.float64)
    if isinstance(first, dict):
        return {key: default_collate([x[key] for x in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[default_collate(part) for part in zip(*batch, strict=True)])
    if isinstance(first, (list, tuple)):
        return [default_collate(part) for part in zip(*batch, strict=True)]
    return list(batch)


class DataLoader:
    """Iterates over batches of ``dataset``, in this process: options about workers are accepted and change nothing.

    ``sampler`` gives the indices in order, and ``batch_sampler`` lists of them; ``batch_size=None`` gives single items.
    An :class:`IterableDataset` gives its own order.

    Raises:
        ArgumentError: a batch size below 1; a data set without indices; options that exclude each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Sequence[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
        **_workers: Any,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ArgumentError(f"DataLoader: batch_size must be at least 1, or None for single examples, got {batch_size}")
        if sampler is not None and shuffle:
            raise ArgumentError("DataLoader: sampler= is an order, and shuffle=True another one; leave one of them out")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ArgumentError("DataLoader: batch_sampler= goes without batch_size, shuffle, sampler and drop_last")
        if isinstance(dataset, IterableDataset):
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ArgumentError("DataLoader: an IterableDataset has its own order; leave shuffle and samplers out")
        elif not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise ArgumentError(f"DataLoader: a data set has len() and dataset[index]; {type(dataset).__name__} has not")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.collate_fn: Callable[[Sequence[Any]], Any] = collate_fn or default_collate
        self.drop_last = drop_last
        self.generator = generator
        ordered = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler: Any = ordered if sampler is None else sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler: Any = batch_sampler

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            items = iter(self.dataset)
            size = self.batch_size
            return items if size is None else map(self.collate_fn, batched(items, size, self.drop_last))
        if self.batch_sampler is None:
            return (self.dataset[k] for k in self.sampler)
        return (self.collate_fn([self.dataset[k] for k in batch]) for batch in self.batch_sampler)


if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.utils.data", globals())
