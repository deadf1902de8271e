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

__all__ = ["ConcatDataset", "DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "random_split"]


class Dataset:
    """Base class: subclasses define ``__getitem__`` and ``__len__``."""

    def __class_getitem__(cls, _item: Any) -> type[Dataset]:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")


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

    Raises ArgumentError for a sampler, which is not supported.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Sequence[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
        **_workers: Any,
    ) -> None:
        if sampler is not None or batch_sampler is not None:
            raise ArgumentError(
                "DataLoader: samplers are not supported; iterate over lists of indices, dataset[indices]"
            )
        if batch_size is not None and batch_size < 1:
            raise ArgumentError(f"DataLoader: batch_size must be at least 1, or None for single examples, got {batch_size}")
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise ArgumentError(f"DataLoader: a data set has len() and dataset[index]; {type(dataset).__name__} has not")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.collate_fn: Callable[[Sequence[Any]], Any] = collate_fn or default_collate
        self.drop_last = drop_last
        self.generator = generator

    def __len__(self) -> int:
        size, count = self.batch_size or 1, len(self.dataset)
        return count // size if self.drop_last else -(-count // size)

    def __iter__(self) -> Iterator[Any]:
        count, size = len(self.dataset), self.batch_size
        order: list[int] = randperm(count, generator=self.generator).tolist() if self.shuffle else list(range(count))
        if size is None:
            yield from (self.dataset[k] for k in order)
            return
        for k in range(len(self)):
            yield self.collate_fn([self.dataset[i] for i in order[k * size : (k + 1) * size]])

if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.utils.data", globals())
