"""``x[i]`` is a number, as in NumPy: changes of ``x`` do not reach it, nor changes of it ``x``; eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.config import set_methods_of
from jitgrad.testing import check_grads


def swap(x: Any) -> Any:
    x = x.copy()
    x[0], x[2] = x[2], x[0]
    kept = x[1]
    x[1] = x[3]
    x[3] = kept
    return x


def change_of_an_element(x: Any) -> Any:
    error = x[0]
    error *= 5.0
    error += 1.0
    return x * error


def element_before_a_change(x: Any) -> Any:
    x = x.copy()
    before, table = x[1], x.reshape(2, 2)
    last = table[1, 1]
    x += 1.0
    x[3] = 9.0
    return x * before + last * table[1, 1]


def loop_over_elements(x: Any) -> Any:
    for v in x:
        v *= 2.0
    return x


def part_of_more_elements(x: Any) -> Any:
    x = x.copy()
    row = x.reshape(2, 2)[0]
    row *= 3.0
    x[0] = 7.0
    return x.sum() * row


@pytest.mark.parametrize("f", [swap, change_of_an_element, element_before_a_change, loop_over_elements, part_of_more_elements])
def test_elements_are_numbers(f: Callable[[Any], Any]) -> None:
    array = np.array([3.0, 1.0, 4.0, 1.5])
    expected = f(array.copy())

    for run in (f, jg.jit(f, backend="python")):
        x = jnp.array(array)
        np.testing.assert_array_equal(run(x).numpy(), expected)
        np.testing.assert_array_equal(x.numpy(), array)
    check_grads(f, [array])


def test_element_of_an_int_array_that_a_float_is_added_to() -> None:
    x = jnp.arange(3)
    x[1] += 2.7

    assert x.tolist() == [0, 3, 2]


def test_element_stays_a_view_for_torch() -> None:
    set_methods_of("torch")
    x = jg.zeros(3)
    part = x[1]
    part += 1.0

    assert x.tolist() == [0.0, 1.0, 0.0]


def test_methods_with_arguments_of_numpy() -> None:
    array = np.array([[1.0, 2.0], [4.0, 8.0]])
    x = jnp.array(array)

    assert x.std(ddof=1).item() == pytest.approx(array.std(ddof=1))
    np.testing.assert_allclose(x.var(axis=0, ddof=1).numpy(), array.var(axis=0, ddof=1))
    assert x.cumsum().tolist() == [1.0, 3.0, 7.0, 15.0]
    assert jnp.arange(4).mean(dtype=np.float32).dtype == np.float32


def test_tensors_as_positions() -> None:
    x = jnp.arange(6).reshape(2, 3)
    one = jnp.array(1)

    assert x[jnp.ix_(jnp.array([1, 0]), jnp.array([True, False, True]))].tolist() == [[3, 5], [0, 2]]
    assert jg.jit(lambda x, i: x[[i, i - 1]], backend="python")(x, one).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert jnp.roll(jnp.arange(3), one).tolist() == [2, 0, 1]
