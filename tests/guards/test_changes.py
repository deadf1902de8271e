"""Python state that a trace changed is reported and restored."""

from __future__ import annotations

import functools
import random
import time
from collections import deque
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError
from jitgrad.core.tensor import Tensor
from tests.guards.observe import observe

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
        self.weight = self.weight + x

    def append(self, x: Any) -> None:
        self.buffer.append(x)

    def drop(self, x: Any) -> None:
        del self.counter

    def compute(self, name: str) -> None:
        setattr(self, "made_" + name, 1)

    def compute_all(self, name: str) -> None:
        setattr(self, name.upper(), 1)

    def on_the_class(self, x: Any) -> None:
        Cell.steps = 7

    def cache(self, x: Any) -> Any:
        return self.width


def changes_of(function: Any, *args: Any) -> list[str]:
    """The changes that ``function`` makes when it runs; ``restore`` undoes them."""
    environment = observe(function, *args)
    found = environment.changes()
    environment.restore()
    assert environment.changes() == []
    assert environment.guard().check() is None
    return found


def effects_of(function: Any, *args: Any) -> list[str]:
    """The writes of ``function`` to places that it does not read, which are undone."""
    environment = observe(function, *args)
    assert environment.changes() == []
    found = [str(write.path) for write in environment.writes()]
    assert len(environment.effects()) + len(environment.stores()) == len(found)
    environment.restore()
    assert environment.writes() == []
    return found


def test_counter_names_value_line_and_remedy():
    (text,) = changes_of(Cell().count, tensor())

    line = Cell.count.__code__.co_firstlineno + 1
    assert text.startswith(f"`self.counter` (test_changes.py:{line}) changed from 0 to 1; ")
    assert "return the value" in text


def test_a_counter_of_a_class_that_is_read_names_the_object_as_its_place():
    class Counter:
        steps = 0

        def step(self, x):
            type(self).steps += 1
            return x * self.steps

    environment = observe(Counter().step, tensor())
    text = environment.changes()[0]
    environment.restore()

    assert "Counter.steps` (test_changes.py:" in text
    assert text.endswith("keep the number in an attribute of the object, which each call changes, or return it")
    assert Counter.steps == 0


def test_a_tensor_attribute_that_is_read_and_replaced():
    (text,) = changes_of(Cell().replace, tensor())

    assert text.startswith("`self.weight` (test_changes.py:")
    assert text.endswith("Tensor replaced; assign in place (`self.weight[...] = ...`) or return it")


@pytest.mark.parametrize(
    ("method", "place"),
    [
        ("append", "`self.buffer`"),
        ("drop", "`self.counter`"),
        ("on_the_class", "class attribute `Cell.steps`"),
        ("compute", "`self.made_x`"),
        ("compute_all", "`self.X`"),
    ],
)
def test_writes_to_what_is_not_read_are_undone(method, place):
    cell = Cell()

    assert effects_of(getattr(cell, method), "x") == [place]
    assert (cell.counter, cell.buffer, Cell.steps, hasattr(cell, "made_x")) == (0, [], 0, False)


def test_a_cached_property_may_fill_itself():
    cell = Cell()
    environment = observe(cell.cache, 1)

    assert environment.changes() == []


def test_a_value_made_on_first_use_may_be_kept():
    class Masked:
        mask: Any = None

        def __call__(self, x: Any) -> Any:
            if self.mask is None:
                self.mask = np.ones(2)
            return x * self.mask

    layer = Masked()
    environment = observe(layer)
    environment.restore()
    guard = environment.guard([layer.mask]) if layer.mask is not None else environment.guard()
    assert guard.check() is None
    layer(tensor())

    assert "`Masked.mask`" in (guard.check() or "")
    assert observe(layer).guard().check() is None


def test_reading_a_container_after_changing_it():
    held = [1]

    def f(x):
        held.append(2)
        return x * len(held)

    assert "closure cell `held` (test_changes.py:" in changes_of(f, 1.0)[0]


def test_a_timer_may_add_up():
    class Timer:
        total = 0.0

        def __enter__(self) -> None:
            self.start = time.perf_counter()

        def __exit__(self, *_error: Any) -> None:
            self.total += time.perf_counter() - self.start

    timer = Timer()

    def f(x):
        with timer:
            return x * 2

    environment = observe(f, 1.0)
    assert environment.changes() == []
    guard = environment.guard()
    f(1.0)
    assert guard.check() is None
    with pytest.raises(UnguardableError, match="read the clock outside"):
        observe(lambda x: (f(x), x * timer.total), 1.0)


def test_a_memo_is_filled_once():
    memo: dict[int, float] = {}

    def f(x, n):
        if n not in memo:
            memo[n] = 1 / n
        return x * memo[n]

    environment = observe(f, 1.0, 4)
    environment.restore()
    assert environment.changes() == []
    assert memo == {}
    f(1.0, 4)

    assert "memo[4]" in (environment.guard().check() or "")


def test_containers_in_globals_and_closures():
    queue: deque[int] = deque([1])
    names = {"a"}

    def f(x):
        log.append(x)
        seen["x"] = 1
        queue.appendleft(2)
        names.add("b")

    found = effects_of(f, 1)

    assert len(found) == 4
    assert (log, seen, queue, names) == ([], {}, deque([1]), {"a"})


def test_tensor_in_a_list_and_in_a_dict():
    held: list[Any] = [tensor()]
    state: dict[str, Any] = {"h": tensor()}

    def f(x):
        held[0] = held[0] + x
        state["h"] = state["h"] + x

    found = changes_of(f, tensor())

    assert [text.partition(" (")[0] for text in found] == ["closure cell `held[0]`", "closure cell `state['h']`"]
    assert all("; assign in place" in text for text in found)


def test_requires_grad_changed_while_tracing():
    weight = tensor()

    def f():
        weight.requires_grad_()

    assert "weight.requires_grad" in observe(f).changes()[0]


@pytest.mark.parametrize(
    "rng",
    [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)],
    ids=lambda rng: type(rng).__name__,
)
def test_drawing_from_a_generator_that_is_not_ours(rng):
    def f():
        return rng.random() if hasattr(rng, "random") else rng.rand()

    with pytest.raises(UnguardableError, match=r"`rng.*use jitgrad's random functions"):
        observe(f)


def test_array_written_while_tracing():
    values = np.zeros(3)

    def f():
        values[0] = 1

    environment = observe(f)

    assert "`values` changed its contents" in environment.changes()[0]
    environment.restore()
    assert not values.any()


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


def test_a_context_variable_without_a_value_that_is_read_and_set():
    variable: ContextVar[float] = ContextVar("variable", default=1.0)

    def step(x):
        variable.set(variable.get() + 1.0)
        return x * variable.get()

    (text,) = observe(step, tensor()).changes()

    assert "`variable.get()` (test_changes.py:" in text


def test_missing_items_that_are_computed_are_not_stored():
    class Table(dict[str, float]):
        def __missing__(self, key):
            return 2.0

    table = Table()
    step = jg.jit(lambda x: x * table["key"], check="off", backend="python")
    step(jg.ones(2))

    assert step(jg.ones(2)).tolist() == [2.0, 2.0]
    assert table == {}
