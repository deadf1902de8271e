"""Our `dataclass` does what the standard library's does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from jitgrad.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Two numbers, and what follows from them."""

    x: int
    y: float = 2.0
    rest: list[int] = field(default_factory=list, compare=False)
    total: float = field(default=0.0, init=False, repr=False)
    kinds: ClassVar[int] = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)


@dataclass(slots=True)
class Counter:
    count: int = 0
    seen: dict[str, int] = field(default_factory=dict, init=False)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Identity:
    name: str


@dataclass(frozen=True)
class Base:
    a: int


@dataclass(frozen=True)
class Derived(Base):
    b: int = 1


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, repr=False)
class Named:  # noqa: PLW1641
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def test_objects_have_fields_defaults_and_text() -> None:
    p = Point(1, rest=[4])

    assert (p.x, p.y, p.rest, p.total, Point.kinds) == (1, 2.0, [4], 3.0, 3)
    assert repr(p) == "Point(x=1, y=2.0, rest=[4])"
    assert Point(1).rest is not Point(1).rest
    assert Counter().seen is not Counter().seen
    assert repr(Nothing()) == "Nothing()"
    assert repr(Derived(1)) == "Derived(a=1, b=1)"
    assert repr(Named("n")) == "<n>"


def test_arguments_are_checked() -> None:
    for wrong in (lambda: Point(), lambda: Point(1, z=2), lambda: Point(1, total=2), lambda: Nothing(1)):  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            wrong()


def test_frozen_objects_are_keys_and_do_not_change() -> None:
    p = Point(1)

    assert p == Point(1, rest=[7])
    assert hash(p) == hash(Point(1, rest=[7]))
    assert {p: 1}[Point(1, 2.0)] == 1
    assert p != Point(2)
    assert p != (1, 2.0, 3.0)
    assert Nothing() == Nothing()
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        p.x = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del p.x
    with pytest.raises((AttributeError, TypeError)):
        p.other = 3  # type: ignore[attr-defined]


def test_objects_that_change_are_no_keys() -> None:
    c = Counter(2)
    c.count += 1

    assert c == Counter(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(c)


def test_objects_without_comparison_are_themselves() -> None:
    a = Identity("a")

    assert a != Identity("a")
    assert {a: 1}[a] == 1


def test_not_a_number_equals_itself_as_in_a_tuple() -> None:
    one = dataclass(frozen=True)(type("One", (), {"__annotations__": {"x": float}, "__module__": __name__}))
    nan = float("nan")

    assert one(nan) == one(nan)


@pytest.mark.parametrize("x", [Point(1, 5.0, [2]), Counter(4), Identity("a"), Derived(1, 2), Nothing()], ids=str)
def test_copies_and_pickles(x: Any) -> None:
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), dataclasses.replace(x)):
        assert type(other) is type(x)
        assert repr(other) == repr(x)


@pytest.mark.parametrize("cls", [Point, Counter, Identity, Derived, Nothing])
def test_the_library_knows_the_class(cls: Any) -> None:
    p = cls.__dataclass_params__

    assert dataclasses.is_dataclass(cls)
    assert (p.frozen, p.eq, p.repr) == (cls is not Counter, cls is not Identity, True)
    assert cls.__match_args__ == tuple([f.name for f in dataclasses.fields(cls) if f.init])


def test_nothing_is_compiled_before_the_first_object() -> None:
    compiled = dataclass(frozen=True, slots=True)(type("Later", (), {"__annotations__": {"x": int}, "__module__": __name__}))
    before = compiled.__init__

    compiled(1)

    assert compiled.__init__ is not before
    assert compiled.__init__.__code__.co_varnames == ("self", "x")
