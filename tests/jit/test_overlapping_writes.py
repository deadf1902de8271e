"""Slices of an array that are assigned to other slices of it: the old elements are read first, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import jitgrad as jg
from jitgrad.core.errors import UnguardableError


def reverse(t: Any) -> None:
    t[::-1] = t


def reverse_view(t: Any) -> None:
    view = t[::-1]
    view[...] = t


def shift_up(t: Any) -> None:
    t[1:] = t[:-1]


def shift_down(t: Any) -> None:
    t[:-2] = t[2:]


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
@pytest.mark.parametrize("write", [reverse, reverse_view, shift_up, shift_down], ids=lambda f: f.__name__)
def test_the_old_elements_are_read_first(write: Any, backend: str) -> None:
    buffer, a = jg.arange(40.0), np.arange(12.0, dtype="f4").reshape(6, 2)

    def temporary(x: Any) -> Any:
        t = jg.sum(x * jg.ones((3, 6, 2)), axis=0)
        write(t)
        return t

    def state(x: Any) -> Any:
        write(buffer)
        return x * 1.0

    found = jg.jit(temporary, check="off", backend=backend)(jg.tensor(a))
    np.testing.assert_array_equal(found.numpy(), temporary(jg.tensor(a)).numpy())

    expected, f = jg.arange(40.0), jg.jit(state, check="off", backend=backend)
    for _ in range(3):
        f(jg.tensor(a))
        write(expected)
        np.testing.assert_array_equal(buffer.numpy(), expected.numpy())


VIEWS: dict[str, Any] = {
    "repeated rows": lambda a: as_strided(a, (4, 4), (0, 8)),
    "windows": lambda a: as_strided(a, (4, 4), (8, 8)),
    "interleaved": lambda a: as_strided(a, (4, 4), (24, 16)),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("write", [reverse, lambda t: t.add_(1.0)], ids=["reverse", "add_"])
def test_elements_that_share_memory_are_not_written(name: str, write: Any) -> None:
    f = jg.jit(lambda t: [write(t), t * 1.0][1], backend="python", check="off")
    array = np.arange(40.0)
    with pytest.raises(UnguardableError, match="several elements share memory"):
        f(jg.asarray(VIEWS[name](array)))
    np.testing.assert_array_equal(array, np.arange(40.0))
    f(jg.asarray(array[:16].reshape(4, 4)))
    with pytest.raises(UnguardableError, match="several elements share memory"):
        f(jg.asarray(VIEWS[name](array)))


def test_strided_elements_apart_from_each_other_are_written() -> None:
    f = jg.jit(lambda t: t.add_(1.0) * 2.0, backend="python", check="off")
    for view in (lambda a: a[::2, 1::2], lambda a: a.T, lambda a: a[::-1, ::-1], lambda a: as_strided(a, (4, 2), (16, 72))):
        for _ in range(2):
            array, expected = np.arange(64.0).reshape(8, 8), np.arange(64.0).reshape(8, 8)
            view(expected)[...] += 1.0
            f(jg.asarray(view(array)))
            np.testing.assert_array_equal(array, expected)
