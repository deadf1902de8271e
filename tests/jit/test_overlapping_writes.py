"""Slices of an array that are assigned to other slices of it: the old elements are read first, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg


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
