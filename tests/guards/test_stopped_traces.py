"""Functions that cannot be compiled use up nothing before they run eagerly: no items, lines or random numbers."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import FallbackWarning


def _of_iterator() -> Callable[[Any], Any]:
    numbers = iter(range(10))
    return lambda x: x * next(numbers)


def _of_loop() -> Callable[[Any], Any]:
    numbers = (float(k) for k in range(10))

    def f(x: Any) -> Any:
        for k in numbers:
            return x * k

    return f


def _of_zip() -> Callable[[Any], Any]:
    numbers = iter(range(20))
    return lambda x: x * sum(a * b for a, b in zip([1, 2], numbers, strict=False))


def _of_lines() -> Callable[[Any], Any]:
    file = io.StringIO("1\n2\n3\n4\n5\n")
    return lambda x: x * float(file.readline())


def _of_generator() -> Callable[[Any], Any]:
    generator = np.random.default_rng(5)
    return lambda x: x * generator.random()


def _of_random_modules() -> Callable[[Any], Any]:
    np.random.seed(3)
    random.seed(3)
    return lambda x: x * np.random.rand() + random.random()


MAKERS = [_of_iterator, _of_loop, _of_zip, _of_lines, _of_generator, _of_random_modules]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_what_the_first_call_takes_is_what_eager_code_takes(make: Callable[[], Callable[[Any], Any]]) -> None:
    x = jg.ones(2)
    eager = make()
    expected = [eager(x).tolist() for _ in range(4)]
    f = jg.jit(make(), backend="python", fallback="eager")
    with pytest.warns(FallbackWarning):
        found = [f(x).tolist() for _ in range(4)]
    assert found == expected


def test_handlers_of_errors_do_not_see_the_end() -> None:
    numbers, caught = iter([1.0, 2.0]), []

    @jg.jit(backend="python", fallback="eager")
    def f(x: Any) -> Any:
        try:
            return x * next(numbers)
        except Exception as error:
            caught.append(error)
            return x

    with pytest.warns(FallbackWarning):
        assert f(jg.ones(1)).tolist() == [1.0]
    assert not caught
