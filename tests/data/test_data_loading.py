"""torch.utils: data sets, loaders and checkpoints."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError
from jitgrad.utils.checkpoint import checkpoint
from jitgrad.utils.data import DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split

Pair = namedtuple("Pair", ["x", "y"])


class Squares(Dataset):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, k: int) -> Any:
        return {"x": np.full(2, k, np.float32), "label": k * k, "name": f"item {k}", "pair": Pair(jg.ones(1) * k, 0.5)}


def test_batches_of_items_in_containers() -> None:
    batches = list(DataLoader(Squares(), batch_size=2, num_workers=0, pin_memory=True))
    assert len(batches) == len(DataLoader(Squares(), batch_size=2)) == 3
    assert batches[1]["x"].tolist() == [[2.0, 2.0], [3.0, 3.0]]
    assert (batches[1]["label"].tolist(), batches[1]["label"].dtype) == ([4, 9], jg.int64)
    assert batches[2]["name"] == ["item 4"]
    assert (batches[1]["pair"].x.shape, batches[1]["pair"].y.dtype) == ((2, 1), jg.float64)
    assert len(list(DataLoader(Squares(), batch_size=2, drop_last=True))) == 2


def test_shuffled_batches_have_all_items() -> None:
    data = TensorDataset(jg.arange(7), jg.arange(7) * 2)
    loader = DataLoader(data, batch_size=3, shuffle=True, generator=jg.Generator(1))
    first, second = ([y.tolist() for _, y in loader] for _ in range(2))
    assert sorted(k for part in first for k in part) == [2 * k for k in range(7)]
    assert first != second


def test_random_split() -> None:
    parts = random_split(TensorDataset(jg.arange(10)), [0.7, 0.3], generator=jg.Generator(0))
    assert list(map(len, parts)) == [7, 3]
    assert all(isinstance(part, Subset) for part in parts)
    assert sorted(int(x) for part in parts for (x,) in part) == list(range(10))
    with pytest.raises(ArgumentError, match="do not sum"):
        random_split(TensorDataset(jg.arange(4)), [1, 2])


def test_a_function_collates() -> None:
    batches = list(DataLoader([1, 2, 3], batch_size=2, collate_fn=sum))
    assert batches == [3, 3]
    assert default_collate([(1.0, 2), (3.0, 4)])[1].tolist() == [2, 4]


def test_samplers_give_the_order() -> None:
    data = jg.utils.data
    order = [2, 0, 3]
    assert [b.tolist() for b in DataLoader([10, 11, 12, 13], 2, sampler=order)] == [[12, 10], [13]]
    assert [b.tolist() for b in DataLoader([10, 11, 12, 13], batch_sampler=[[0, 1, 2], [3]])] == [[10, 11, 12], [13]]
    assert list(DataLoader([10, 11, 12], None, sampler=order[:2])) == [12, 10]
    assert list(data.BatchSampler(data.SequentialSampler(range(5)), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, True)) == 2 and len(data.BatchSampler(range(5), 2, False)) == 3
    assert sorted(data.SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]


def test_random_samplers_draw_as_many_as_asked() -> None:
    data, g = jg.utils.data, jg.Generator(3)
    twice = list(data.RandomSampler(range(4), num_samples=6, generator=g))
    assert sorted(twice[:4]) == [0, 1, 2, 3] and len(set(twice[4:])) == 2
    assert set(data.RandomSampler(range(3), replacement=True, num_samples=100, generator=g)) == {0, 1, 2}
    assert list(data.RandomSampler([])) == [] and len(data.RandomSampler(range(7))) == 7
    drawn = list(data.WeightedRandomSampler([0.0, 1.0, 3.0], 4000, generator=g))
    assert len(drawn) == 4000 and 0 not in drawn and 2700 < drawn.count(2) < 3300
    assert sorted(data.WeightedRandomSampler([0.5, 1.0, 3.0], 3, replacement=False, generator=g)) == [0, 1, 2]
    with pytest.raises(ArgumentError, match="num_samples must be an int of at least 1, got 0"):
        data.WeightedRandomSampler([1.0], 0)
    with pytest.raises(ArgumentError, match="the weights must be a vector"):
        data.WeightedRandomSampler([[1.0]], 1)


def test_options_of_loaders_that_exclude_each_other() -> None:
    with pytest.raises(ArgumentError, match="leave one of them out"):
        DataLoader([1], shuffle=True, sampler=[0])
    with pytest.raises(ArgumentError, match="batch_sampler= goes without"):
        DataLoader([1], 2, batch_sampler=[[0]])
    with pytest.raises(ArgumentError, match="has its own order"):
        DataLoader(jg.utils.data.ChainDataset([]), shuffle=True)


def test_data_sets_without_indices_and_beside_each_other() -> None:
    data = jg.utils.data

    class Counting(data.IterableDataset):  # type: ignore[name-defined,misc]
        def __iter__(self) -> Any:
            return iter(range(3))

        def __len__(self) -> int:
            return 3

    chain = data.ChainDataset([Counting(), Counting()])
    assert [b.tolist() for b in DataLoader(chain, 4)] == [[0, 1, 2, 0], [1, 2]]
    assert len(chain) == 6 and list(DataLoader(chain, None)) == [0, 1, 2] * 2 and len(DataLoader(chain, 4)) == 2
    assert data.StackDataset([1, 2], "ab")[1] == (2, "b")
    assert data.StackDataset(x=[1, 2], y="ab")[0] == {"x": 1, "y": "a"} and len(data.StackDataset(x=[1, 2])) == 2
    with pytest.raises(ArgumentError, match=r"got lengths \[1, 2\]"):
        data.StackDataset([1], [1, 2])


def test_checkpoint_computes_the_same_gradient() -> None:
    x = jg.tensor([0.3, 0.7], requires_grad=True)
    checkpoint(lambda y, scale: (y * scale).tanh(), x, 2.0, use_reentrant=False).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2.0 / np.cosh(2.0 * x.detach().numpy()) ** 2, rtol=1e-5)


def test_data_sets_one_after_the_other() -> None:
    data = jg.utils.data
    both = data.ConcatDataset([data.TensorDataset(jg.arange(3)), [7, 8], data.TensorDataset(jg.arange(2))])
    assert len(both) == 7 and both.cumulative_sizes == [3, 5, 7]
    assert [int(both[k][0]) if k not in (3, 4) else both[k] for k in range(7)] == [0, 1, 2, 7, 8, 0, 1]
    assert both[-3] == 8
    with pytest.raises(IndexError, match="index 7 is out of range for 7 items"):
        _ = both[7]
    with pytest.raises(jg.errors.ArgumentError, match="at least one data set"):
        data.ConcatDataset([])
