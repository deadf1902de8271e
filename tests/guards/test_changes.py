"""Python state that a trace changed is reported and restored."""

from __future__ import annotations

import functools
import random
from collections import deque
from typing import Any

import numpy as np
import pytest

from jitgrad.core.tensor import Tensor
from jitgrad.guards.environment import Environment

log: list[Any] = []
seen: dict[str, Any] = {}


def tensor() -> Tensor:
    return Tensor(np.zeros(2, np.float32))


class Cell:
    steps = 0

    def __init__(self) -> None:
        self.counter = 0
        self.weight = tensor()
        self.buffer: list[Any] = []

    @functools.cached_property
    def width(self) -> int:
        return 2

    def count(self, x: Any) -> None:
        self.counter += 1

    def keep(self, x: Any) -> None:
        self.hidden = x

    def replace(self, x: Any) -> None:
        self.weight = x

    def append(self, x: Any) -> None:
        self.buffer.append(x)

    def drop(self, x: Any) -> None:
        del self.counter

    def compute(self, name: str) -> None:
        setattr(self, "made_" + name, 1)

    def on_the_class(self, x: Any) -> None:
        Cell.steps = 7

    def cache(self, x: Any) -> Any:
        return self.width


def changes_of(function: Any, *args: Any) -> list[str]:
    """Run ``function`` between picture and comparison, and check that ``restore`` undoes it."""
    environment = Environment.capture(function)
    assert environment.changes() == []
    function(*args)
    found = environment.changes()
    environment.restore()
    assert environment.changes() == []
    assert environment.guard().check() is None
    return found


def test_counter_names_value_line_and_remedy():
    (text,) = changes_of(Cell().count, tensor())

    line = Cell.count.__code__.co_firstlineno + 1
    assert text.startswith(f"`self.counter` (test_changes.py:{line}) changed from 0 to 1; ")
    assert "return the value" in text


@pytest.mark.parametrize(("method", "verb"), [("keep", "stored"), ("replace", "replaced")])
def test_tensor_attributes(method, verb):
    name = {"keep": "hidden", "replace": "weight"}[method]
    (text,) = changes_of(getattr(Cell(), method), tensor())

    assert text.startswith(f"`self.{name}` (test_changes.py:")
    assert text.endswith(f"Tensor {verb}; assign in place (`self.{name}[...] = ...`) or return it")


@pytest.mark.parametrize(
    ("method", "part"),
    [
        ("append", "`self.buffer` "),
        ("drop", "`self.counter` "),
        ("on_the_class", "class attribute `Cell.steps` "),
        ("compute", "`self.made_x` "),
    ],
)
def test_other_side_effects(method, part):
    found = changes_of(getattr(Cell(), method), "x")

    assert any(part in text for text in found), found


def test_a_cached_property_may_fill_itself():
    cell = Cell()
    environment = Environment.capture(cell.cache)
    cell.cache(1)

    assert environment.changes() == []


def test_containers_in_globals_and_closures():
    queue: deque[int] = deque([1])
    names = {"a"}

    def f(x):
        log.append(x)
        seen["x"] = 1
        queue.appendleft(2)
        names.add("b")

    found = changes_of(f, 1)

    assert len(found) == 4
    assert (log, seen, queue, names) == ([], {}, deque([1]), {"a"})


def test_tensor_in_a_list_and_in_a_dict():
    held: list[Any] = [tensor()]
    state: dict[str, Any] = {"h": tensor()}

    def f(x):
        held[0] = x
        state["h"] = x

    found = changes_of(f, tensor())

    assert [text.partition(" (")[0] for text in found] == ["closure cell `held[0]`", "closure cell `state['h']`"]
    assert all("Tensor replaced; assign in place" in text for text in found)


def test_requires_grad_changed_while_tracing():
    weight = tensor()

    def f():
        weight.requires_grad_()

    environment = Environment.capture(f)
    f()

    assert "weight.requires_grad" in environment.changes()[0]


@pytest.mark.parametrize(
    "rng",
    [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)],
    ids=lambda rng: type(rng).__name__,
)
def test_drawing_from_a_generator_that_is_not_ours(rng):
    def f():
        return rng.random() if hasattr(rng, "random") else rng.rand()

    environment = Environment.capture(f)
    assert environment.changes() == []
    f()

    assert "`rng` was drawn from" in environment.changes()[0]


def test_array_written_while_tracing():
    values = np.zeros(3)

    def f():
        values[0] = 1

    environment = Environment.capture(f)
    f()

    assert "`values` changed its contents" in environment.changes()[0]


def test_function_attributes():
    def f(x):
        f.calls += 1

    f.calls = 0

    assert "f.calls" in changes_of(f, 1)[0]


def test_an_object_without_side_effects_reports_nothing():
    cell = Cell()

    def f(x):
        local = Cell()
        local.counter += 1
        local.hidden = x
        return cell.weight, [local.counter for _ in range(3)]

    assert changes_of(f, tensor()) == []
