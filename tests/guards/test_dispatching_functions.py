"""Functions of functools that choose a function by class, and wrappers whose code is the standard library's."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jitgrad as jg


def test_a_function_that_is_registered_later() -> None:
    @functools.singledispatch
    def scaled(x: Any) -> Any:
        return x * 2

    scaled(jg.ones(1))  # fills the cache of classes
    direct, called = (jg.jit(f, backend="python", check="off") for f in (scaled, lambda x: scaled(x)))
    for f in (direct, called, direct):
        assert f(jg.ones(1)).tolist() == [2.0]
    scaled.register(jg.Tensor, lambda x: x * 5)
    for f in (direct, called, direct):
        assert f(jg.ones(1)).tolist() == [5.0]


def test_attributes_behind_methods_that_functools_makes() -> None:
    class Scale:
        """A factor, by a method for tensors and a partial one."""

        factor = 1.0

        @functools.singledispatchmethod
        def times(self, x: Any) -> Any:
            return x

        @times.register
        def _(self, x: jg.Tensor) -> Any:
            return x * self.factor

        def plus(self, offset: float, x: Any) -> Any:
            return x * self.factor + offset

        plus_five = functools.partialmethod(plus, 5.0)

    scale = Scale()
    times, plus = (jg.jit(f, backend="python", check="off") for f in (scale.times, scale.plus_five))
    for k in range(4):
        scale.factor = float(k)
        assert times(jg.ones(1)).tolist() == [float(k)]
        assert plus(jg.ones(1)).tolist() == [k + 5.0]


def test_a_wrapper_of_contextlib() -> None:

    settings = SimpleNamespace(scale=1.0)

    @contextlib.contextmanager
    def nothing() -> Iterator[None]:
        yield

    f = jg.jit(nothing()(lambda x: x * settings.scale), backend="python", check="off")
    for k in range(4):
        settings.scale = float(k)
        assert f(jg.ones(1)).tolist() == [float(k)]
