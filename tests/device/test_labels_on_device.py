"""Eager calls with labels on a device: a kernel checks them, and the host waits for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import IndexingError
from jitgrad.nn import functional as F
from jitgrad.testing.fake_driver import FakeDriver

RNG = np.random.default_rng(2)
SCORES, TABLE = RNG.normal(size=(6, 5)).astype(np.float32), RNG.normal(size=(5, 3)).astype(np.float32)
LABELS = np.array([0, 4, 2, 2, 1, 3])
CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "one_hot": lambda x, table, y: jg.one_hot(y, 5),
    "embedding": lambda x, table, y: F.embedding(y, table),
    "embedding with padding": lambda x, table, y: F.embedding(y, table, padding_idx=1),
    "embedding_bag": lambda x, table, y: F.embedding_bag(y.reshape(2, 3), table),
    "cross_entropy": lambda x, table, y: jg.cross_entropy(x, y),
    "cross_entropy, smoothed": lambda x, table, y: F.cross_entropy(x, y, label_smoothing=0.1),
    "cross_entropy, weighted": lambda x, table, y: F.cross_entropy(x, y, weight=abs(table[:, 0])),
    "nll_loss": lambda x, table, y: F.nll_loss(jg.log_softmax(x, 1), y),
    "multi_margin_loss": lambda x, table, y: F.multi_margin_loss(x, y),
}


def operands(labels: Any, device: str = "cuda") -> tuple[Any, ...]:
    return tuple(jg.tensor(x, device=device) for x in (SCORES, TABLE, np.asarray(labels)))


@pytest.mark.parametrize("name", CASES)
def test_labels_are_checked_without_waiting(name: str, driver: FakeDriver) -> None:
    xs = operands(LABELS)
    before = driver.counts.copies_to_host
    found = CASES[name](*xs)

    assert driver.counts.copies_to_host == before
    np.testing.assert_allclose(found.cpu().numpy(), CASES[name](*operands(LABELS, "cpu")).numpy(), rtol=1e-5)


@pytest.mark.parametrize("wrong", [5, -1])
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_label_is_an_error_when_a_value_is_read(name: str, wrong: int, driver: FakeDriver) -> None:
    labels = LABELS.copy()
    labels[3] = wrong
    result = CASES[name](*operands(labels))

    with pytest.raises(IndexingError, match="out of bounds"):
        result.cpu()
    assert CASES[name](*operands(LABELS)).cpu().numpy().shape == result.shape  # the device goes on


def test_ignored_labels_are_no_error(driver: FakeDriver) -> None:
    labels = np.array([0, -100, 2, -100, 1, 3])
    found = jg.cross_entropy(*operands(labels)[::2])
    np.testing.assert_allclose(found.item(), jg.cross_entropy(*operands(labels, "cpu")[::2]).item(), rtol=1e-6)


def test_one_hot_of_no_stated_number_of_classes_waits_once(driver: FakeDriver) -> None:
    y = operands(LABELS)[2]
    before = driver.counts.copies_to_host

    assert jg.one_hot(y).shape == (6, 5)
    assert driver.counts.copies_to_host == before + 1


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_labels_of_short_integers(dtype: str, driver: FakeDriver) -> None:
    y = LABELS.astype(dtype)
    found = jg.cross_entropy(*operands(y)[::2]).item()
    np.testing.assert_allclose(found, jg.cross_entropy(*operands(y, "cpu")[::2]).item(), rtol=1e-6)
