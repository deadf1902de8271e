"""Names of parameters are those that `inspect.signature` lists."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.parameters import parameters_of


def _plain(a, b=1, /, c=2, *rest, d, e=3, **more):
    f = g = a
    return f, g


@functools.wraps(_plain)
def _wrapper(*args: Any, **kwargs: Any) -> Any:
    return _plain(*args, **kwargs)


class _Callable:
    def __call__(self, x: Any, *, y: Any) -> None:
        """Nothing."""

    def method(self, x: Any) -> None:
        """Nothing."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "plain": _plain,
    "wrapper": _wrapper,
    "lambda": lambda g, _out, x, *, axis: g,
    "without any": lambda: None,
    "keywords alone": lambda *, a, **more: None,
    "partial": functools.partial(_plain, 1, d=2),
    "callable object": _Callable(),
    "method": _Callable().method,
    "builtin": divmod,
    "class": _Callable,
    "op": jg.softmax,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_names_and_kinds_are_those_of_the_signature(name: str):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    found = parameters_of(FUNCTIONS[name])

    assert found.names == list(parameters)
    assert list(found.keyword_only) == [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert [found.rest] * bool(found.rest) == [p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL]
