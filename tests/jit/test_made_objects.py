"""Objects that a compiled function makes and returns are new on every call; those from outside are themselves."""

from __future__ import annotations

import fractions
import re
import threading
import types
import weakref
from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError


@pytest.fixture(autouse=True)
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


class Items(list):  # type: ignore[type-arg]
    """Runs code of its own where items are added, which a copy must not."""

    def append(self, x: Any) -> None:
        raise AssertionError

    extend = __iadd__ = append  # type: ignore[assignment]


class Table(dict):  # type: ignore[type-arg]
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value * 2)


class Space(types.SimpleNamespace):
    """Unlike its base never an argument, which is taken apart and may not be returned."""


class Plain:
    def __init__(self, *items: Any) -> None:
        self.items = list(items)

    def add(self, x: Any) -> None:
        self.items.append(x)


class Slots:
    __slots__ = ("first", "second")

    def __init__(self, first: Any) -> None:
        self.first = first


@dataclass
class Record:
    count: int
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    names: list[str]


class Pair(NamedTuple):
    first: Any
    second: Any


class Loop:
    def __init__(self) -> None:
        self.me = self
        self.parts = [self]


def counter() -> Callable[[], int]:
    n = 0

    def count() -> int:
        nonlocal n
        n += 1
        return n

    return count


def two_with_one_set() -> Any:
    shared = {1}
    return Pair(Plain(shared), Plain(shared))


# (what the function returns, what the caller does with it, what it shows)
MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "set": (lambda: {1, 2}, lambda a: a.add(3), sorted),
    "bytearray": (lambda: bytearray(b"a"), lambda a: a.extend(b"b"), bytes),
    "array": (lambda: array("i", [1]), lambda a: a.append(2), list),
    "list subclass": (lambda: Items([1]), lambda a: list.append(a, 2), list),
    "dict subclass": (lambda: Table(a=1), lambda a: a.update(b=1), dict),
    "Counter": (lambda: Counter("ab"), lambda a: a.update("a"), dict),
    "deque": (lambda: deque([1, 2], 2), lambda a: a.append(3), lambda a: (list(a), a.maxlen)),
    "UserDict": (lambda: UserDict(a=1), lambda a: a.update(b=2), dict),
    "ChainMap": (lambda: ChainMap({"a": 1}), lambda a: a.update(b=2), dict),
    "namespace": (lambda: Space(a=1, b=[2]), lambda a: a.b.append(3), vars),
    "plain": (lambda: Plain(1), lambda a: a.add(2), lambda a: a.items),
    "slots": (lambda: Slots([1]), lambda a: a.first.append(2), lambda a: (a.first, hasattr(a, "second"))),
    "dataclass": (lambda: Record(1), lambda a: a.names.append("b"), vars),
    "frozen dataclass": (lambda: Frozen(["a"]), lambda a: a.names.append("b"), vars),
    "nested": (lambda: Plain({"a": Plain({1})}), lambda a: a.items[0]["a"].items[0].add(2), lambda a: a.items[0]["a"].items),
    "in a tuple": (lambda: (1, {"k": {2}}), lambda a: a[1]["k"].add(3), lambda a: a[1]["k"]),
    "frozenset": (lambda: Plain(frozenset([Frozen.__name__])), lambda a: a.add(1), lambda a: a.items),
    "nested containers": (
        lambda: Plain(OrderedDict(a=[1]), defaultdict(list), deque([1])),
        lambda a: (a.items[0]["a"].append(2), a.items[1]["b"].append(2), a.items[2].append(2)),
        lambda a: a.items,
    ),
    "array in an object": (
        lambda: Plain(np.arange(6).reshape(2, 3)),
        lambda a: a.items[0].fill(0),
        lambda a: a.items[0].tolist(),
    ),
    "texts in an array": (lambda: np.array(["a", "b"]), lambda a: a.fill("c"), lambda a: a.tolist()),
    "closure": (counter, lambda a: a(), lambda a: a()),
    "method": (lambda: Plain(1).add, lambda a: a(2), lambda a: a.__self__.items),
    "partial": (lambda: partial(sum, [1]), lambda a: a.args[0].append(2), lambda a: a()),
    "attribute of a function": (lambda: lambda: 1, lambda a: setattr(a, "x", 1), vars),
    "default of a function": (lambda: lambda x=[1]: x, lambda a: a().append(2), lambda a: a()),
    "one in two": (two_with_one_set, lambda a: a.first.items[0].add(2), lambda a: (a.first.items, a.second.items)),
    "cycle": (Loop, lambda a: a.parts.append(1), lambda a: (a.me is a, a.parts[0] is a, len(a.parts))),
    "sentinel": (object, lambda a: None, type),
}  # fmt: skip


@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("case", MADE)
def test_each_call_has_its_own(case: str, check: str) -> None:
    make, change, shown = MADE[case]

    def f(x: Any) -> Any:
        return x * 2, make()

    compiled, expected = jg.jit(f, check=check), []
    for g in (f, compiled):
        seen = []
        for _ in range(4):
            made = g(jg.ones(1))[1]
            before = repr(shown(made))
            change(made)
            seen.append((before, repr(shown(made))))
        assert seen[1:] == seen[:-1]
        expected.append((type(made), seen))

    assert expected[0] == expected[1]
    assert compiled.cache_info().traces == 1


OUTSIDE = [{1}, bytearray(b"a"), Record(1), array("i", [1]), Counter("ab"), Plain(1), [1], {"a": 1}, deque([1]), Items([1])]
TENSORS = {"w": jg.ones(2)}


@lru_cache
def cached(k: int) -> Any:
    return {k}


def _default(x: Any, k: int, mark: Any = OUTSIDE[0], rest: Any = OUTSIDE[6]) -> Any:
    return mark, rest, OUTSIDE[k]


@pytest.mark.parametrize("k", range(len(OUTSIDE)))
@pytest.mark.parametrize(
    "find",
    [
        lambda x, k: OUTSIDE[k],
        lambda x, k: [*OUTSIDE][k],
        lambda x, k: OUTSIDE.copy()[k],
        lambda x, k: next(iter(OUTSIDE[k:])),
        lambda x, k: sorted(OUTSIDE, key=id)[k],
        lambda x, k: [*map(lambda o: o, OUTSIDE)][k],
        lambda x, k: OUTSIDE.__getitem__(k),
        lambda x, k: {"a": [OUTSIDE[k], Plain(OUTSIDE[k]).items[0]]},
        lambda x, k: cached(k),
        lambda x, k: (TENSORS, TENSORS["w"]),
        _default,
    ],
)
def test_what_existed_is_returned_itself(find: Callable[..., Any], k: int) -> None:
    compiled = jg.jit(find, static_argnames="k")
    for _ in range(3):
        a, b = find(jg.ones(1), k), compiled(jg.ones(1), k=k)
        if isinstance(a, dict) and "a" in a and type(a["a"]) is list:
            a, b = tuple(a["a"]), tuple(b["a"])
        assert a is b or (type(a) is tuple and all(p is q for p, q in zip(a, b, strict=True)))


def test_an_object_that_is_made_holds_what_existed() -> None:
    f = jg.jit(lambda x: (x * 2, Plain(OUTSIDE[0], TENSORS, TENSORS["w"])))
    made = [f(jg.ones(1))[1] for _ in range(3)]
    assert made[1] is not made[2]
    for each in made:
        assert all(a is b for a, b in zip(each.items, (OUTSIDE[0], TENSORS, TENSORS["w"]), strict=True))


def test_weak_proxies_are_refused() -> None:
    outside = Plain(1)
    proxy = weakref.proxy(outside)
    with pytest.raises(UnguardableError, match=r"`proxy` is a weakref\.proxy, and @jit does not see.*use the object itself"):
        jg.jit(lambda x: (x * 2, proxy))(jg.ones(1))
    with pytest.raises(UnguardableError, match="an instance of ProxyType, which it makes and of which"):
        jg.jit(lambda x: (x * 2, weakref.proxy(outside)))(jg.ones(1))


def test_a_function_that_is_made_shares_outer_variables() -> None:
    n = 0

    @jg.jit
    def f(x: Any) -> Any:
        def count() -> int:
            nonlocal n
            n += 1
            return n

        return x * 2, count

    first, second = [f(jg.ones(1))[1] for _ in range(3)][1:]
    assert first is not second
    assert [first(), second(), n] == [1, 2, 2]


@pytest.mark.parametrize(
    "make", [lambda: re.compile("a"), lambda: fractions.Fraction(1, 2), lambda: range(3), lambda: 1j, lambda: Path("a"),
             lambda: np.float32(1), lambda: np.dtype("f4"), lambda: slice(1, 2), lambda: frozenset([1])],
)  # fmt: skip
def test_values_that_never_change_are_returned(make: Callable[[], Any]) -> None:
    f = jg.jit(lambda x: (x, make()))
    assert [f(jg.ones(1))[1] for _ in range(3)] == [make()] * 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: memoryview(bytearray(b"a")), "an instance of memoryview, which it makes and of which later calls cannot"),
        (lambda: Plain(memoryview(bytearray(b"a"))), r"Plain, whose \.items\[0\] is an instance of memoryview, of"),
        (lambda: Plain({"a": threading.Lock()}), r"whose \.items\[0\]\['a'\] is an instance of lock"),
        (lambda: ValueError("a"), "an instance of ValueError, which it makes"),
        (lambda: np.array([[1], None], dtype=object), "an instance of ndarray, which it makes"),
        (lambda: [a := np.zeros(3), Plain(a[:2], a[1:])][1], r"Plain, whose \.items\[1\] is an instance of ndarray"),
    ],
)
def test_what_cannot_be_copied_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UnguardableError, match=f"{message}.*make it outside of the function, or return its parts"):
        jg.jit(lambda x: (x * 2, make()))(jg.ones(1))


FIELDS = ["first", "second"]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_class_of_named_tuples_may_be_made_by_each_call(at_once: bool) -> None:
    @jg.jit
    def call(x: Any) -> Any:
        if at_once:
            return namedtuple("Both", "first second")(x + 1.0, [x * 2.0])
        names = namedtuple("Both", FIELDS)
        both = names(x + 1.0, [x * 2.0])
        return both, getattr(both, FIELDS[0]).sum()

    x = jg.tensor([1.0, 2.0])
    for _ in range(3):
        both = call(x) if at_once else call(x)[0]
        assert type(both).__name__ == "Both" and both._fields == ("first", "second")
        assert both.first.tolist() == [2.0, 3.0] and both.second[0].tolist() == [2.0, 4.0]
    assert call.cache_info().traces == 1
    if not at_once:
        FIELDS[1] = "other"
        try:
            assert call(x)[0].other[0].tolist() == [2.0, 4.0]
        finally:
            FIELDS[1] = "second"
