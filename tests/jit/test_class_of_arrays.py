"""Array arguments, for which a trace has tensors: code that asks for their class gives eager's result with every ``check``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
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


ASKING = [by_isinstance, by_isinstance_of_tensor, by_type, by_class, by_attribute, by_match, called]


@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("function", ASKING, ids=lambda f: f.__name__)
def test_a_branch_by_the_class_is_eagers(function: Callable[[Any], Any], check: str) -> None:
    compiled, x = jg.jit(function, check=check), np.array([1.0])
    with pytest.warns(MismatchWarning):
        compiled(x)

    for _ in range(3):
        assert compiled(x).item() == function(x).item()


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
