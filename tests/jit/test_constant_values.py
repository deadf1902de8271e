"""Values of tensors that depend on no input of a trace: Python code may read them, as in eager execution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import TracedValueError

SCALE = jg.tensor(2.0)


def pairs_apart(x: Any) -> Any:
    """Contrastive losses leave out the diagonal like this."""
    n = x.shape[0]
    similar = x @ x.mT
    return similar[~jg.eye(n, dtype=jg.bool)].reshape(n, n - 1).logsumexp(axis=1).sum()


def same_class(x: Any) -> Any:
    labels = jg.concat([jg.arange(2), jg.arange(2)])
    positive = (labels[:, None] == labels[None, :]) & ~jg.eye(4, dtype=jg.bool)
    rows, columns = jg.nonzero(positive)
    return (x[rows] * x[columns]).sum()


def upper(x: Any) -> Any:
    y = x * 1.0
    y[jg.tril(jg.ones((4, 4))) == 0] = 0.0
    return (y * y).sum()


def branches(x: Any) -> Any:
    total = jg.tensor([0.5, 1.5]).sum()
    steps = 0
    while total < 20:
        total, steps = total * 2.0, steps + 1
    return (x * total.item() * steps + int(jg.tensor(3)) + float(jg.arange(4)[2])).sum()


def parts(x: Any) -> Any:
    values, counts = jg.unique(jg.tensor([3, 1, 1, 2]), return_counts=True)
    return (x[values] * counts[:, None]).sum() + jg.repeat(x, jg.arange(4), 0).sum()


@pytest.mark.parametrize("function", [pairs_apart, same_class, upper, branches, parts])
def test_constants_have_values(function: Any) -> None:
    compiled = jg.jit(jg.value_and_grad(function))
    for k in range(3):
        x = jg.tensor(np.random.default_rng(k).normal(size=(4, 4)))
        for a, b in zip(compiled(x), jg.value_and_grad(function)(x), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    assert compiled.cache_info().traces == 1
    assert compiled.cache_info().fallbacks == 0


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x * float(x[0] > 0),
        lambda x: x * float(SCALE),
        lambda x: x * float(jg.rand(3).sum()),
        lambda x: x * float((jg.zeros(3) * x).sum()),
        lambda x: x * np.asarray(jg.ones(3)),  # later changes of the tensor would have to show in the array
    ],
    ids=["argument", "outside", "random", "both", "shared memory"],
)
def test_other_values_are_asked_for_in_vain(read: Any) -> None:
    with pytest.raises(TracedValueError):
        jg.jit(read)(jg.tensor([1.0, -2.0, 3.0]))


def test_a_constant_that_was_changed_in_place_has_its_present_value() -> None:
    @jg.jit
    def function(x: Any) -> Any:
        mask = jg.zeros(3, dtype=jg.bool)
        mask[1] = True
        row = mask[1:]
        row[1] = True
        return x[mask]

    changed = jg.jit(_changed_by_argument)
    assert function(jg.tensor([1.0, 2.0, 3.0])).tolist() == [2.0, 3.0]
    assert changed(jg.tensor([1.0, 2.0, 3.0])).tolist() == [2.0, 3.0]
    assert changed(jg.tensor([2.0, 1.0, 3.0])).tolist() == [2.0, 3.0]


def _changed_by_argument(x: Any) -> Any:
    mask = jg.zeros(3, dtype=jg.bool)
    mask[:] = x > 1.0
    return x[mask]


def test_an_index_of_a_numpy_array_says_to_make_that_a_tensor() -> None:
    table = np.arange(5.0)
    with pytest.raises(TracedValueError, match=r"jitgrad\.asarray\(array\)\[index\]"):
        jg.jit(lambda k: table[k])(jg.tensor([1, 2]))
