"""Array arguments, for which a trace has tensors: code that asks for their class gives eager's result with every ``check``."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax
from jitgrad.core.errors import MismatchWarning


def by_isinstance(x: Any) -> Any:
    return x * 2.0 if isinstance(x, np.ndarray) else x * 3.0


def by_isinstance_of_tensor(x: Any) -> Any:
    return x * 2.0 if isinstance(x, jg.Tensor) else x * 3.0


def by_type(x: Any) -> Any:
    return x * 2.0 if type(x) is np.ndarray else x * 3.0


def by_class(x: Any) -> Any:
    return x * 2.0 if x.__class__ is np.ndarray else x * 3.0


def by_attribute(x: Any) -> Any:
    return x * 2.0 if hasattr(x, "requires_grad") else x * 3.0


def by_match(x: Any) -> Any:
    match x:
        case np.ndarray():
            return x * 2.0
        case _:
            return x * 3.0


@functools.singledispatch
def by_dispatch(x: Any) -> Any:
    return x * 3.0


@by_dispatch.register
def _(x: np.ndarray) -> Any:
    return x * 2.0


def called(x: Any) -> Any:
    return by_dispatch(x)


def by_class_of_result(x: Any) -> Any:
    y = x * 1.0
    return x * 2.0 if isinstance(y, np.ndarray) else x * 3.0


def by_class_of_element(x: Any) -> Any:
    return x * 2.0 if hasattr(x[0] * 2, "byteswap") else x * 3.0


def by_class_of_sum(x: Any) -> Any:
    y = x.sum()
    return x * 2.0 if isinstance(y, np.float64) else x * 3.0


def by_class_in_a_turn(x: Any) -> Any:
    return lax.fori_loop(0, 20, lambda i, c: c * 0.5 + (1 if isinstance(x, np.ndarray) else 2), jg.zeros(()))


def by_another_name_of_a_sum(x: Any) -> Any:
    s = t = x.sum()  # NumPy's scalars do not change
    t += 1
    return s * 1.0


ASKING = [
    *(by_isinstance, by_isinstance_of_tensor, by_type, by_class, by_attribute, by_match, called, by_class_of_result),
    *(by_class_of_element, by_class_of_sum, by_class_in_a_turn, by_another_name_of_a_sum),
]


@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("function", ASKING, ids=lambda f: f.__name__)
def test_a_branch_by_the_class_is_eagers(function: Callable[[Any], Any], check: str) -> None:
    compiled, x = jg.jit(function, check=check), np.array([1.0])
    with pytest.warns(MismatchWarning):
        compiled(x)

    for _ in range(3):
        assert compiled(x).item() == function(x).item()


@pytest.mark.parametrize("number", [2.0, 2, np.float32(2.0), np.float64(2.0)], ids=lambda x: type(x).__name__)
def test_a_branch_by_the_class_of_a_computed_number_is_eagers(number: Any) -> None:
    def f(x: Any, k: Any) -> Any:
        twice = k * 2
        if isinstance(twice, float) or type(k * 2) is int:
            return x * twice
        return x * 3.0 if isinstance(k * 2, np.float32) else x

    x = jg.tensor([1.0])
    compiled = jg.jit(f, check="off")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MismatchWarning)
        for k in (number, number * 2, number):
            assert compiled(x, k).item() == f(x, k).item()


@pytest.mark.filterwarnings("error")
def test_code_that_only_converts_stays_compiled() -> None:
    def f(x: Any) -> Any:
        if not isinstance(x, jg.Tensor):
            x = jg.asarray(x)
        return x * 2.0

    compiled = jg.jit(f, check="off")
    for _ in range(3):
        assert compiled(np.array([1.0])).item() == 2.0
    assert (compiled.cache_info().traces, compiled.cache_info().fallbacks) == (1, 0)
