"""Changes around a traced function, and whether its guard notices them, without running the function."""

from __future__ import annotations

import argparse
import contextvars
import functools
import math
import sys
from collections import deque, namedtuple
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError
from jitgrad.core.tensor import Tensor
from jitgrad.guards.guard import behaves_alike
from tests.guards.observe import guard_of, observe

scale: Any = 0.5
table: dict[str, Any] = {"a": 1, "b": 2.0}
history: list[Any] = [1, 2, 3]
option = contextvars.ContextVar("option", default=1)
arguments = argparse.Namespace(rate=0.1, unused=1)


def tensor(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


def uses_scale(x: Any) -> Any:
    return x * scale


def calls_uses_scale(x: Any) -> Any:
    return [uses_scale(y) for y in x]


# --- globals, cells, defaults ----------------------------------------------------------------------------------------


def test_changed_global_names_the_line_and_both_values(monkeypatch):
    guard = guard_of(uses_scale)

    monkeypatch.setattr(sys.modules[__name__], "scale", 0.7)

    line = uses_scale.__code__.co_firstlineno + 1
    assert guard.check() == f"global `scale` (test_guards.py:{line}) changed from 0.5 to 0.7"


@pytest.mark.parametrize("function", [calls_uses_scale, lambda x: [uses_scale(x)], functools.partial(uses_scale, 1)])
def test_global_of_a_called_function(function, monkeypatch):
    guard = guard_of(function)

    monkeypatch.setattr(sys.modules[__name__], "scale", 0.7)

    assert "`scale`" in guard.check()


def test_deleted_global(monkeypatch):
    guard = guard_of(uses_scale)

    monkeypatch.delattr(sys.modules[__name__], "scale")

    assert "to nothing" in guard.check()


def test_equal_value_under_another_identity_is_no_change_and_is_remembered(monkeypatch):
    guard = guard_of(uses_scale)

    monkeypatch.setattr(sys.modules[__name__], "scale", float("0.5"))

    assert guard.check() is None
    assert any(value is scale for value in guard.check.__globals__.values())


@pytest.mark.parametrize(
    ("old", "new"),
    [(1, 1.0), (1, True), (0.0, -0.0), ((1, 2), (1, 2.0)), ("a", b"a"), ({1}, {True}), (np.float32(1), np.float64(1))],
)
def test_equal_but_not_the_same(old, new):
    assert not behaves_alike(new, old)


@pytest.mark.parametrize(
    "make",
    [lambda: float("nan"), lambda: np.float32("nan"), lambda: complex(math.nan, -0.0), lambda: [1, (2, {"k": 0.5})]],
)
def test_the_same_under_another_identity(make):
    assert behaves_alike(make(), make())


def test_same_ends_on_cycles():
    a: list[Any] = [1]
    b: list[Any] = [1]
    a.append(a)
    b.append(b)

    assert behaves_alike(a, b)


def test_closure_cell():
    rate = 0.1

    def f(x):
        return x * rate

    guard = guard_of(f)
    rate = 0.2

    assert (
        guard.check() == f"closure cell `rate` (test_guards.py:{f.__code__.co_firstlineno + 1}) changed from 0.1 to 0.2"
    )


def test_closure_cell_read_by_an_inner_function_only():
    rate = 0.1

    def f(x):
        def inner(y):
            return [z * rate for z in y]

        return inner(x)

    guard = guard_of(f)
    rate = 0.2

    assert "closure cell `rate`" in guard.check()


def test_defaults():
    def f(x, rate=0.5, *, power=2):
        return x * rate**power

    guard = guard_of(f)
    f.__defaults__ = (0.7,)
    assert "changed from (0.5) to (0.7)" in guard.check()

    guard = guard_of(f)
    f.__kwdefaults__["power"] = 3
    assert "changed from 2 to 3" in guard.check()


def test_swapped_code():
    def f(x):
        return x

    guard = guard_of(f)
    f.__code__ = (lambda x: -x).__code__

    assert "__code__" in guard.check()


def test_a_global_that_hides_a_builtin(monkeypatch):
    guard = guard_of(lambda x: len(x))

    monkeypatch.setattr(sys.modules[__name__], "len", lambda x: 3, raising=False)

    assert "global `len`" in guard.check()


def test_recursion_between_functions():
    rate = 1

    def even(n):
        return rate if n == 0 else odd(n - 1)

    def odd(n):
        return 0 if n == 0 else even(n - 1)

    guard = guard_of(even, 4)
    rate = 2

    assert "closure cell `rate`" in guard.check()


def test_a_new_function_of_equal_code_and_closure_is_the_same():
    def make(rate):
        return lambda x: x * rate

    inner = make(0.5)

    def f(x):
        return inner(x)

    guard = guard_of(f)
    inner = make(0.5)
    assert guard.check() is None
    inner = make(0.6)
    assert guard.check() is not None


def test_wrapped_functions(monkeypatch):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*xs):
            return function(*xs)

        return wrapper

    for function in (decorate(uses_scale), functools.lru_cache(uses_scale)):
        monkeypatch.setattr(sys.modules[__name__], "scale", 0.5)
        guard = guard_of(lambda x, function=function: function(x))
        monkeypatch.setattr(sys.modules[__name__], "scale", 0.7)
        assert "`scale`" in guard.check()


# --- containers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda: table.update(a=3),
        lambda: table.pop("b"),
        lambda: table.update(c=1),
        lambda: table.update(a=table.pop("a")),
    ],
    ids=["value", "fewer", "more", "order"],
)
def test_dict(change):
    before = dict(table)
    guard = guard_of(lambda: list(table.items()))
    try:
        change()
        assert "global `table" in guard.check()
    finally:
        table.clear()
        table.update(before)


@pytest.mark.parametrize("size", [3, 50])
@pytest.mark.parametrize("make", [list, deque, lambda x: dict.fromkeys(x, 0), lambda x: {k: object() for k in x}])
def test_containers_of_any_size(make, size):
    held = make(range(size))

    def f():
        return held

    guard = guard_of(f)
    held[2] = 1.5

    assert "closure cell `held[2]`" in guard.check()


def test_list_length():
    values = [1, 2]
    guard = guard_of(lambda: values)
    values.append(3)

    assert "has 3 items, had 2" in guard.check()


def test_set_and_bytearray_and_nested_tuple():
    names, raw, nested = {"a"}, bytearray(b"x"), (1, [2])
    for held, change in (
        (names, lambda: names.add("b")),
        (raw, lambda: raw.append(1)),
        (nested, lambda: nested[1].append(1)),
    ):
        guard = guard_of(lambda held=held: held)
        change()
        assert guard.check() is not None


def test_a_list_that_holds_itself():
    values: list[Any] = [1]
    values.append(values)
    guard = guard_of(lambda: values)
    values[0] = 2

    assert "values[0]" in guard.check()


def test_rebuilding_an_equal_container_is_no_change():
    weight = tensor(1)
    held = [weight, {"k": 1.5}]

    def f():
        return held

    guard = guard_of(f)
    held = [weight, {"k": 1.5}]
    assert guard.check() is None
    held = [tensor(1), {"k": 1.5}]
    assert guard.check() is not None


def test_namedtuple_paths():
    pair = namedtuple("pair", "weight bias")(tensor(1), tensor(2))

    assert list(observe(lambda: pair).tensors()) == ["pair.weight", "pair.bias"]


def test_too_many_items_is_an_error():
    words = dict.fromkeys(range(30_000))

    with pytest.raises(UnguardableError, match=r"words.*30000 items"):
        observe(lambda: list(words))


def test_one_item_and_the_length_of_a_large_container():
    words = dict.fromkeys(range(1_000_000), 1)
    names = list(range(1_000_000))
    guard = guard_of(lambda k: words[k] + words.get(7, 0) + names[-1] + len(names) + (5 in words), 3)

    words[4] = names[3] = 9
    assert guard.check() is None
    words[3] = 2
    assert "words[3]" in guard.check()
    words[3] = 1
    names.append(2)
    assert "names" in guard.check()


# --- tensors and arrays ----------------------------------------------------------------------------------------------


def test_replaced_tensor_and_requires_grad():
    held = {"w": tensor(1, 2)}
    guard = guard_of(lambda: held["w"])
    held["w"].requires_grad_()
    assert "requires_grad` changed" in guard.check()

    guard = guard_of(lambda: held["w"])
    held["w"] = tensor(1, 2)
    assert "from a tensor f32[2] to a tensor f32[2]" in guard.check()


def test_tensor_data_is_an_input_not_a_guard():
    weight = tensor(1, 2)
    guard = guard_of(lambda: weight)
    weight._data[0] = 7

    assert guard.check() is None


def test_tensor_of_another_shape():
    weight = tensor(1, 2)
    guard = guard_of(lambda: weight)
    weight._data, weight._aval = np.zeros(3, np.float32), None

    assert "to f32[3]" in guard.check()


# --- cost ------------------------------------------------------------------------------------------------------------


def test_one_comparison_per_read():
    rate, power = 0.1, 2
    guard = guard_of(lambda x: x * rate**power * scale)

    assert len(guard.checks) == 4  # two cells, one global, the function's code
    assert guard.source.count("is not") == 4


def test_functions_of_jitgrad_cost_one_check():
    guard = guard_of(lambda x: jg.exp(jg.tanh(x) * 2 + x) * jg.sin(x))

    assert len(guard.checks) == 3  # the code, the name jg, and that nothing in jitgrad was replaced


def test_what_is_asked_of_many_tensors_is_one_comparison():
    tensors = [jg.ones(3) for _ in range(100)]
    guard = guard_of(lambda: sum(t.sum() for t in tensors))

    assert guard.source.count("h._requires_grad") == guard.source.count("h._aval") == 1
    tensors[7].requires_grad_()
    assert "tensors[7].requires_grad changed from False to True" in (guard.check() or "").replace("`", "")
    tensors[7].requires_grad_(False)
    assert guard.check() is None
    tensors[70]._aval = None
    assert guard.check() is None and guard.check() is None
    tensors[70]._data, tensors[70]._aval = np.ones(4), None
    assert "tensors[70]" in (guard.check() or "")


def test_a_hundred_thousand_nested_lists_need_no_recursion():
    nested: list[Any] = []
    for _ in range(20_000):
        nested = [nested]

    assert guard_of(lambda: nested).check() is None
