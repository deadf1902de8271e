"""Objects behind weak references that die, and callable objects with an ``==`` of their own."""

from __future__ import annotations

import weakref
from typing import Any

import jitgrad as jg


def test_an_object_that_died_after_its_attribute_changed_is_traced_again() -> None:
    class Config:
        rate: Any = 1.0

    held = [Config()]
    held[0].rate = 2.0
    reference = weakref.ref(held[0])

    def f(x: Any) -> Any:
        config = reference()
        return x * (7.0 if config is None else config.rate)

    compiled, x = jg.jit(f, backend="python"), jg.tensor([1.0])
    found = [compiled(x).item()]
    for rate in (3.0, 4.0):
        held[0].rate = rate
        found.append(compiled(x).item())
    held[0].rate = 5.0
    held.clear()  # no record of a trace holds it
    assert [*found, compiled(x).item(), compiled(x).item()] == [2.0, 3.0, 4.0, 7.0, 7.0]


def test_callable_objects_are_not_compared() -> None:
    class Scale:
        def __call__(self, x: Any) -> Any:
            return x * 3.0

        def __eq__(self, other: object) -> bool:
            raise TypeError("of scales alone")

        __hash__ = None  # type: ignore[assignment]

    scale = Scale()
    compiled = jg.jit(lambda x: scale(x), backend="python")
    assert [compiled(jg.tensor([k])).item() for k in (1.0, 2.0)] == [3.0, 6.0]
