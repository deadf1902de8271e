"""JAX's updates by index: values, gradients and errors, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, IndexingError
from jitgrad.testing import check_grads

A = np.random.default_rng(0).normal(size=(4, 5)) + 3.0
V = np.arange(1.0, 6.0)
I = np.array([0, 2, 2])  # noqa: E741
BEYOND = np.array([1, 9, -1, -7])
MASK = A > 3.0
ROWS = np.array([True, False, True, False])

# what JAX gives, by NumPy's functions that count equal indices
UPDATES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "set": (lambda x: x.at[1].set(V), lambda a: a.__setitem__(1, V)),
    "set number": (lambda x: x.at[..., 2].set(9.0), lambda a: a.__setitem__((..., 2), 9.0)),
    "set rows": (lambda x: x.at[I[:2]].set(V), lambda a: a.__setitem__(I[:2], V)),
    "set mask": (lambda x: x.at[MASK].set(0.0), lambda a: a.__setitem__(MASK, 0.0)),
    "add": (lambda x: x.at[1:3].add(V), lambda a: np.add.at(a, np.s_[1:3], V)),
    "add equal": (lambda x: x.at[I].add(V), lambda a: np.add.at(a, I, V)),
    "add pairs": (lambda x: x.at[I, I].add(2.0), lambda a: np.add.at(a, (I, I), 2.0)),
    "add column": (lambda x: x.at[:, I].add(1.0), lambda a: np.add.at(a, np.s_[:, I], 1.0)),
    "add part": (lambda x: x.at[1:, I].add(1.0), lambda a: np.add.at(a[1:], np.s_[:, I], 1.0)),
    "add int beside": (lambda x: x.at[1, I].add(1.0), lambda a: np.add.at(a, (1, I), 1.0)),
    "add mask": (lambda x: x.at[MASK].add(1.5), lambda a: np.add.at(a, MASK, 1.5)),
    "add mask of rows": (lambda x: x.at[ROWS].add(V), lambda a: np.add.at(a, ROWS, V)),
    "subtract": (lambda x: x.at[I].subtract(V), lambda a: np.subtract.at(a, I, V)),
    "multiply": (lambda x: x.at[:, 1].multiply(2.0), lambda a: np.multiply.at(a, np.s_[:, 1], 2.0)),
    "mul mask": (lambda x: x.at[MASK].mul(2.0), lambda a: np.multiply.at(a, MASK, 2.0)),
    "divide": (lambda x: x.at[0].divide(V), lambda a: np.divide.at(a, 0, V)),
    "power": (lambda x: x.at[0].power(2.0), lambda a: np.power.at(a, 0, 2.0)),
    "multiply equal": (lambda x: x.at[I].multiply(V), lambda a: np.multiply.at(a, I, V)),
    "divide equal": (lambda x: x.at[:, I].divide(2.0), lambda a: np.divide.at(a, np.s_[:, I], 2.0)),
    "power equal": (lambda x: x.at[I, I].power(2.0), lambda a: np.power.at(a, (I, I), 2.0)),
    "min equal": (lambda x: x.at[I, 1].min(3.0), lambda a: np.minimum.at(a, (I, 1), 3.0)),
    "max equal": (lambda x: x.at[1:, I].max(V[:3]), lambda a: np.maximum.at(a[1:], np.s_[:, I], V[:3])),
    "drop": (lambda x: x.at[BEYOND].set(V, mode="drop"), lambda a: a.__setitem__([1, 3], V)),
    "drop int": (lambda x: x.at[9].set(1.0, mode="fill"), lambda a: None),
    "drop pairs": (lambda x: x.at[BEYOND, 1].add(2.0, mode="drop"), lambda a: np.add.at(a, ([1, 3], 1), 2.0)),
    "clip": (lambda x: x.at[BEYOND].add(V, mode="clip"), lambda a: np.add.at(a, [1, 3, 3, 0], V)),
    "clip mul": (lambda x: x.at[:, BEYOND].mul(2.0, mode="clip"), lambda a: np.multiply.at(a, np.s_[:, [1, 4, 4, 0]], 2.0)),
    "min": (lambda x: x.at[0].min(3.0), lambda a: np.minimum.at(a, 0, 3.0)),
    "max": (lambda x: x.at[::-2].max(3.0), lambda a: np.maximum.at(a, np.s_[::-2], 3.0)),
}


@pytest.mark.parametrize("name", UPDATES)
def test_values_gradients_and_operands(name: str) -> None:
    update, change = UPDATES[name]
    expected = A.copy()
    change(expected)
    x = jg.tensor(A)

    for f in (update, jg.jit(update, backend="python")):
        np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-15)
    np.testing.assert_array_equal(x.numpy(), A)
    check_grads(update, [A], order=2)


def test_gradients_reach_the_values() -> None:
    x, index = jg.zeros(4, dtype=np.float64), np.array([1, 1, 3])
    check_grads(lambda v: x.at[index].add(v) ** 2 + x.at[index[1:]].set(v[:2]) ** 2, [np.array([1.0, 2.0, 3.0])], order=2)


def test_get_and_hints() -> None:
    x = jg.tensor(A)

    assert x.at[1, 2].get().item() == A[1, 2]
    np.testing.assert_array_equal(x.at[I[:2]].set(0.0, unique_indices=True, indices_are_sorted=True)[0].numpy(), np.zeros(5))


def test_a_traced_mask_needs_no_values() -> None:
    f = jg.jit(lambda x: x.at[x > 3.0].add(1.0), backend="python")

    np.testing.assert_allclose(f(jg.tensor(A)).numpy(), A + MASK)


def test_errors() -> None:
    x = jg.tensor(A)
    with pytest.raises(IndexingError, match="apply of arrays of integers, which may repeat"):
        x.at[I].apply(jg.sin)
    with pytest.raises(ArgumentError, match="mode is None"):
        x.at[7].set(1.0, mode="wrap")
    with pytest.raises(IndexingError, match="7"):
        x.at[7].set(1.0)


def test_get_beyond_the_bounds() -> None:
    x = jg.tensor(A)

    for f in (lambda g: g, lambda g: jg.jit(g, backend="python")):
        filled = f(lambda x: x.at[BEYOND].get(mode="fill"))(x).numpy()
        np.testing.assert_array_equal(filled, np.stack([A[1], np.full(5, np.nan), A[3], np.full(5, np.nan)]))
        np.testing.assert_array_equal(f(lambda x: x.at[:, BEYOND].get(mode="clip"))(x).numpy(), A[:, [1, 4, 4, 0]])
        np.testing.assert_array_equal(f(lambda x: x.at[5, 1].get(mode="fill", fill_value=-1.0))(x).numpy(), -1.0)
    assert jg.arange(3).at[7].get(mode="fill").item() == np.iinfo(np.int64).min
    check_grads(lambda x: x.at[BEYOND].get(mode="fill", fill_value=0.0) ** 2, [A], order=2)


def test_extremes_of_integers_at_equal_indices() -> None:
    counts = jg.zeros(3, dtype=jg.int64)

    np.testing.assert_array_equal(counts.at[I].max(np.array([3, 5, 4])).numpy(), [3, 0, 5])
    np.testing.assert_array_equal(counts.at[I].min(np.array([-3, -5, 4])).numpy(), [-3, 0, -5])
