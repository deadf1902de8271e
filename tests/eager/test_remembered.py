"""Small arrays of numbers alone are kept and copied, and every call gives what the first one gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.eager import remembered as module
from jitgrad.eager.remembered import remembered

CALLS: list[Callable[[], Any]] = [
    lambda: jg.eye(3),
    lambda: jg.eye(2, 3, k=1, dtype=jg.int64),
    lambda: jg.arange(5),
    lambda: jg.arange(5.0),
    lambda: jg.arange(1, 2, 0.25),
    lambda: jg.linspace(0, 1, 7),
    lambda: jg.linspace(-0.0, -0.0, 2),
    lambda: jg.linspace(0.0, 0.0, 2),
    lambda: jg.full((2, 3), 1.5),
    lambda: jg.full((2, 3), 1),
    lambda: jg.full((2, 3), True),
    lambda: jg.full((), -0.0),
    lambda: jg.full((2,), 2.5, requires_grad=True),
]


@pytest.mark.parametrize("call", CALLS)
def test_later_calls_give_the_same_in_memory_of_their_own(call: Callable[[], Any]) -> None:
    with jg.disable_jit():
        first, second = call(), call()
    assert second._data.tobytes() == first._data.tobytes()
    assert (second.aval, second.requires_grad) == (first.aval, first.requires_grad)
    assert second.is_leaf

    second.detach().fill_(1)
    assert call()._data.tobytes() == first._data.tobytes()


def test_the_default_dtype_is_part_of_a_call() -> None:
    calls = [lambda: jg.eye(4), lambda: jg.linspace(0, 1, 4), lambda: jg.full((4,), 0.5), lambda: jg.zeros(4), lambda: jg.ones(4)]
    assert {call().dtype for call in calls} == {np.dtype("f4")}
    jg.set_default_dtype(jg.float64)
    try:
        assert {call().dtype for call in calls} == {np.dtype("f8")}
    finally:
        jg.set_default_dtype(jg.float32)


def test_numbers_of_other_types_and_signs_are_other_calls() -> None:
    assert jg.full((2,), 1).dtype == np.dtype("i8")
    assert jg.full((2,), 1.0).dtype == np.dtype("f4")
    assert jg.full((2,), True).dtype == np.dtype("?")
    assert not np.signbit(jg.full((2,), 0.0).numpy()).any()
    assert np.signbit(jg.full((2,), -0.0).numpy()).all()


def test_traces_record_ops_and_large_arrays_are_not_kept() -> None:
    jg.eye(3)
    f = jg.jit(lambda x: x + jg.eye(3) * x.sum(), backend="python", check="off")
    np.testing.assert_array_equal(f(jg.ones(3, 3)).numpy(), 1 + 9 * np.eye(3))

    made: list[int] = []

    @remembered
    def numbers(n: int) -> jg.Tensor:
        made.append(n)
        return jg.zeros(n, dtype=jg.uint8)

    large = module._LARGEST + 1
    for n in (3, 3, large, large):
        numbers(n)
    assert made == [3, large, large]
    for n in range(module._MOST + 9):
        numbers(n)
    numbers(module._MOST + 8)
    assert made.count(module._MOST + 8) == 1
