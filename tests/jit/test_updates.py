"""Assignments at indices in compiled functions change the tensor in place, completely or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import IndexingError
from jitgrad.jit.decorator import jit

ROWS = 4000  # so many elements at indices are the work of machine code, a few are NumPy's


@pytest.fixture(params=["python", "cpu"], autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)


def put(x: Any, i: Any) -> None:
    x[i] = 2.0


def put_rows(x: Any, i: Any) -> None:
    x[i] = x[i] * 0.5 + 1.0


def put_columns(x: Any, i: Any) -> None:
    j = i[:20] % 3
    x[:, j] = x[:, j + 1] * 0.5


def put_elements(x: Any, i: Any) -> None:
    x[i, i % 5] = jg.astype(i, jg.float32)


def add(x: Any, i: Any) -> None:
    x[i] += 1.5


def put_a_view(x: Any, i: Any) -> None:
    x[i] = x[: i.shape[0]]


def put_itself(x: Any, i: Any) -> None:
    x[(i - i[0]) % x.shape[0]] = x[0]


def twice(x: Any, i: Any) -> None:
    x[i] = 1.0
    x[i % 2] *= 3.0


UPDATES: list[Callable[[Any, Any], None]] = [put, put_rows, put_columns, put_elements, add, put_a_view, put_itself, twice]
IN_PLACE = [put, put_rows, put_columns, put_elements, add]


def operands(count: int, seed: int = 0) -> tuple[jg.Tensor, jg.Tensor]:
    rng = np.random.default_rng(seed)
    x = jg.tensor(rng.standard_normal((count + 3, 5)).astype(np.float32))
    return x, jg.tensor(rng.integers(0, count + 3, count))


@pytest.mark.parametrize("update", UPDATES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [3, ROWS])
def test_updates_are_those_of_eager(update: Callable[[Any, Any], None], count: int) -> None:
    compiled = jit(update)
    for seed in range(3):
        x, i = operands(count, seed)
        expected = jg.tensor(x.numpy().copy())
        update(expected, i)
        before = x.numpy()

        compiled(x, i)

        np.testing.assert_array_equal(x.numpy(), expected.numpy())
        assert x.numpy().ctypes.data == before.ctypes.data


@pytest.mark.parametrize("update", IN_PLACE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [3, ROWS])
def test_the_tensor_is_changed_where_it_lies(update: Callable[[Any, Any], None], count: int) -> None:
    compiled = jit(update, check="off").lookup(*operands(count))

    assert compiled.overwritten == (0,)


@pytest.mark.parametrize("count", [3, ROWS])
@pytest.mark.parametrize("update", [f for f in IN_PLACE if f is not put_columns], ids=lambda f: f.__name__)
def test_an_index_out_of_bounds_leaves_everything_as_it_was(update: Callable[[Any, Any], None], count: int) -> None:
    compiled = jit(update, check="off")
    x, i = operands(count)
    for _ in range(3):
        compiled(x, i)
    wrong = i.numpy().copy()
    wrong[-1] = count + 1000
    before = x.numpy().copy()

    for _ in range(2):
        with pytest.raises((IndexingError, IndexError)):
            compiled(x, jg.tensor(wrong))
        np.testing.assert_array_equal(x.numpy(), before)


def test_a_later_step_that_fails_leaves_everything_as_it_was() -> None:
    def update(x: Any, y: Any, i: Any, j: Any) -> None:
        x[i] = 2.0
        y[j] = 3.0

    compiled = jit(update, check="off")
    (x, i), (y, j) = operands(ROWS, 1), operands(ROWS, 2)
    for _ in range(2):
        compiled(x, y, i, j)
    before = x.numpy().copy(), y.numpy().copy()

    with pytest.raises((IndexingError, IndexError)):
        compiled(x, y, i * 0, j + ROWS)
    np.testing.assert_array_equal(x.numpy(), before[0])
    np.testing.assert_array_equal(y.numpy(), before[1])


def test_memory_that_lies_otherwise() -> None:
    compiled, (_, i) = jit(add), operands(30)
    base = np.arange(800, dtype=np.float32).reshape(80, 10)
    for view in (np.s_[::2, ::2], np.s_[::-2, 5:], np.s_[:40, :5]):
        mine, theirs = base.copy(), base.copy()
        for _ in range(3):
            compiled(jg.from_numpy(mine)[view], i)
            add(jg.from_numpy(theirs)[view], i)
        np.testing.assert_array_equal(mine, theirs)
