"""Rows added at places, in compiled programs: what NumPy gives, in the order of the rows, on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.errors import IndexingError
from jitgrad.jit import jit
from jitgrad.runtime.library_call import LibraryCall

RNG = np.random.default_rng(0)


def calls(f: Any, *args: Any) -> list[LibraryCall]:
    return [s for s in jit(f, check="off").lookup(*args).program.steps if isinstance(s, LibraryCall)]


def added(x: Any, index: Any, rows: Any) -> Any:
    return jg.index_add(x, 0, index, rows)


@pytest.mark.parametrize("dtype", ["f", "d", "i", "l"])
@pytest.mark.parametrize("shape", [(5, 3), (7, 2, 4), (3, 100), (1, 1)])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_what_numpy_gives(dtype: str, shape: tuple[int, ...], count: int) -> None:
    x = RNG.integers(-9, 9, shape).astype(dtype)
    index = RNG.integers(-shape[0], shape[0], count)
    rows = RNG.integers(-9, 9, (count, *shape[1:])).astype(dtype)
    expected = x.copy()
    np.add.at(expected, index, rows)

    function = jit(added, check="off")

    np.testing.assert_array_equal(function(jg.tensor(x), jg.tensor(index), jg.tensor(rows)).numpy(), expected)
    assert all(c.meaning is not c.op.eager for c in calls(added, jg.tensor(x), jg.tensor(index), jg.tensor(rows)))


def test_operands_that_lie_elsewhere() -> None:
    x, rows = RNG.normal(size=(4, 6)).T, RNG.normal(size=(8, 9))[::-1, ::2][:, :4]
    index = RNG.integers(0, 6, 16)[::2].astype(np.int32)
    before = x.copy()

    found = jit(added, check="off")(x, index, rows).numpy()

    np.testing.assert_allclose(found, added(jg.tensor(x), jg.tensor(index), jg.tensor(rows)).numpy(), rtol=1e-13)
    np.testing.assert_array_equal(x, before)


def test_the_same_bits_on_any_number_of_threads() -> None:
    x, index = jg.zeros((20, 300)), jg.tensor(RNG.integers(0, 20, 5000))
    rows = jg.tensor(RNG.normal(size=(5000, 300)).astype("f"))
    function, threads = jit(added, check="off"), jg.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            jg.set_num_threads(count)
            found.append(function(x, index, rows).numpy())
    finally:
        jg.set_num_threads(threads)

    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("lookup", [lambda x, i: jg.take(x, i, axis=0), lambda x, i: x[i]])
def test_gradients_of_lookups(lookup: Any) -> None:
    x, index = jg.tensor(RNG.normal(size=(9, 5))), jg.tensor(RNG.integers(-9, 9, (4, 6)))
    gradient = jg.grad(lambda x: (jg.tanh(lookup(x, index)) ** 2).sum())

    np.testing.assert_allclose(jit(gradient, check="off")(x).numpy(), gradient(x).numpy(), rtol=1e-12)
    assert any(c.meaning is not c.op.eager for c in calls(gradient, x))


@pytest.mark.parametrize("bad", [5, -6])
def test_an_index_out_of_bounds_says_so(bad: int) -> None:
    function = jit(added, check="off")

    with pytest.raises(IndexingError, match="out of bounds for axis 0 of length 5"):
        function(jg.zeros((5, 3)), jg.tensor([0, bad]), jg.ones((2, 3)))


def test_other_forms_are_numpys() -> None:
    x, rows = jg.zeros((5, 3)), jg.ones((5, 2))

    (call,) = calls(lambda x, i, r: jg.index_add(x, 1, i, r), x, jg.tensor([0, 2]), rows)
    assert call.meaning is call.op.eager
    (call,) = calls(added, jg.zeros((5, 3), dtype=jg.int8), jg.tensor([0]), jg.ones((1, 3), dtype=jg.int8))
    assert call.meaning is call.op.eager
