"""Stores in objects that only the interpreter sees, and stores that other code makes: each call makes them again."""

from __future__ import annotations

import operator
import time
import warnings
import weakref
from collections import ChainMap, deque
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError


class Box:
    def __init__(self) -> None:
        self.kept: Any = None
        self.count: int = 0


class Slotted:
    __slots__ = ("count", "kept")

    def __init__(self) -> None:
        self.kept: Any = None
        self.count: int = 0


class BySuper(Box):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)


class ByObject(Box):
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class ByVars(Box):
    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)[name] = value


class OwnModule(jg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kept: Any = None
        self.count: int = 0

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)


class Descriptor:
    def __set_name__(self, owner: type, name: str) -> None:
        self.name: str = f"_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        return getattr(instance, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, self.name, value)


class ByDescriptor:
    kept: Any = Descriptor()
    count: Any = Descriptor()

    def __init__(self) -> None:
        self.kept = None
        self.count = 0


def new_place() -> SimpleNamespace:
    return SimpleNamespace(
        boxes=[Box(), Box()], named={"a": Box()}, pair=(Box(), Box()), queue=deque([Box(), Box()]), box=Box(), nothing=None,
        slots=[Slotted(), Slotted()], by_super=BySuper(), by_object=ByObject(), by_vars=ByVars(), module=OwnModule(),
        by_descriptor=ByDescriptor(), nested=[[Box()], [Box()]],
    )  # fmt: skip


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "a computed index": lambda p: p.boxes[abs(-1)],
    "a last index": lambda p: p.boxes[len(p.boxes) - 1],
    "a computed key": lambda p: p.named["A".lower()],
    "get": lambda p: p.named.get("A".lower()),
    "next": lambda p: next(iter(p.boxes)),
    "a generator": lambda p: next(box for box in p.boxes if box is not None),
    "a comprehension": lambda p: [box for box in p.boxes][0],  # noqa: RUF015
    "max": lambda p: max(p.boxes, key=lambda box: 1),
    "sorted": lambda p: sorted(p.boxes, key=lambda box: 1)[0],
    "a default": lambda p: getattr(p, "missing", p.box),
    "a computed name": lambda p: getattr(p, "BOX".lower()),
    "values": lambda p: list(p.named.values())[0],  # noqa: RUF015
    "a weak reference": lambda p: weakref.ref(p.box)(),
    "a tuple": lambda p: p.pair[abs(1)],
    "a deque": lambda p: p.queue[abs(1)],
    "zip": lambda p: list(zip(p.boxes, p.boxes, strict=True))[0][0],  # noqa: RUF015
    "map": lambda p: list(map(lambda box: box, p.boxes))[0],  # noqa: RUF015
    "nested": lambda p: p.nested[abs(1)][0],
    "a partial": lambda p: partial(lambda box: box, p.box)(),
    "a set": lambda p: next(iter({p.box})),
    "a chain of maps": lambda p: ChainMap(p.named)["a"],
    "a slot": lambda p: p.slots[abs(1)],
    "super().__setattr__": lambda p: p.by_super,
    "object.__setattr__": lambda p: p.by_object,
    "vars": lambda p: p.by_vars,
    "a module's __setattr__": lambda p: p.module,
    "a descriptor": lambda p: p.by_descriptor,
}


def store_tensor(place: Any, holder: Any, loss: Any) -> Any:
    holder(place).kept = loss
    return loss


def store_by_setattr(place: Any, holder: Any, loss: Any) -> Any:
    setattr(holder(place), "kept", loss)  # noqa: B010
    return loss


def store_text(place: Any, holder: Any, loss: Any) -> Any:
    holder(place).kept = "trained"
    return loss


def store_and_read(place: Any, holder: Any, loss: Any) -> Any:
    holder(place).kept = loss * 2.0
    return holder(place).kept + loss


def count(place: Any, holder: Any, loss: Any) -> Any:
    holder(place).count += 1
    return loss


def count_and_read(place: Any, holder: Any, loss: Any) -> Any:
    holder(place).count = holder(place).count + 1
    return loss * holder(place).count


STORES = [store_tensor, store_by_setattr, store_text, store_and_read, count, count_and_read]


def content(box: Any) -> tuple[Any, Any]:
    return box.kept.tolist() if isinstance(box.kept, jg.Tensor) else box.kept, box.count


@pytest.mark.parametrize("store", STORES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("where", HOLDERS)
def test_each_call_stores_in_an_object_that_has_no_name(where: str, store: Any) -> None:
    eager, compiled, holder = new_place(), new_place(), HOLDERS[where]
    step = jg.jit(lambda x: store(compiled, holder, (x * x).sum()), backend="python")

    for k in range(4):
        x = jg.tensor([1.0 + k, 2.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = step(x)
        assert float(found) == float(store(eager, holder, (x * x).sum())), f"call {k}"
        assert content(holder(compiled)) == content(holder(eager)), f"call {k}"
        if k % 2:
            for place in (eager, compiled):
                holder(place).kept = "changed between calls"

    assert step.cache_info().traces <= 4


@pytest.mark.parametrize("number", range(3))
def test_a_computed_name_is_stored_by_each_call(number: int) -> None:
    box, name = Box(), ["kept", "count", "new"][number]
    step = jg.jit(lambda x: setattr(box, name.upper().lower(), x * 2.0), backend="python")

    for k in range(4):
        step(jg.tensor([1.0 + k]))
        assert getattr(box, name).tolist() == [2.0 + 2.0 * k]


def test_a_reading_of_a_clock_that_setattr_stores_is_new_on_each_call() -> None:
    box = Box()

    @partial(jg.jit, backend="python")
    def step(x: Any) -> Any:
        setattr(box, "kept", time.perf_counter())  # noqa: B010
        return x * box.kept

    with pytest.raises(UnguardableError, match="may give something else on every call"):
        step(jg.ones(2))


def change_by_key(lists: Any, dicts: Any, loss: Any) -> None:
    next(iter(lists))[0] = loss


def change_a_slice(lists: Any, dicts: Any, loss: Any) -> None:
    lists[abs(-1)][0:1] = [loss]


def append(lists: Any, dicts: Any, loss: Any) -> None:
    lists[abs(-1)].append(loss)


def add_in_place(lists: Any, dicts: Any, loss: Any) -> None:
    lists[abs(-1)] += [loss]


def insert(lists: Any, dicts: Any, loss: Any) -> None:
    lists[abs(-1)].insert(0, loss)


def pop(lists: Any, dicts: Any, loss: Any) -> None:
    lists[abs(-1)].pop()


def set_by_function(lists: Any, dicts: Any, loss: Any) -> None:
    operator.setitem(next(iter(lists)), 0, loss)


def set_a_key(lists: Any, dicts: Any, loss: Any) -> None:
    dicts[abs(-1)]["a"] = loss


def set_a_new_key(lists: Any, dicts: Any, loss: Any) -> None:
    dicts[abs(-1)]["NEW".lower()] = loss


def update(lists: Any, dicts: Any, loss: Any) -> None:
    dicts[abs(-1)].update(a=loss)


def delete(lists: Any, dicts: Any, loss: Any) -> None:
    del dicts[abs(-1)]["a"]


CHANGES = [
    change_by_key, change_a_slice, append, add_in_place, insert, pop, set_by_function, set_a_key, set_a_new_key, update, delete
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_change_of_a_container_that_has_no_name_is_made_or_refused(change: Any) -> None:
    def place() -> tuple[list[Any], list[Any]]:
        return [[jg.ones(1), jg.ones(1)] for _ in range(2)], [{"a": jg.ones(1), "b": 1} for _ in range(2)]

    def contents(place: Any) -> Any:
        lists, dicts = place
        return [[x.tolist() for x in row] for row in lists], [
            {key: getattr(x, "tolist", lambda x=x: x)() for key, x in row.items()} for row in dicts
        ]

    eager, compiled = place(), place()
    step = jg.jit(lambda x: change(*compiled, (x * x).sum()), backend="python")
    try:
        for k in range(2):
            step(jg.tensor([1.0 + k]))
            change(*eager, jg.tensor((1.0 + k) ** 2))
            assert contents(compiled) == contents(eager), f"call {k}"
    except UnguardableError as error:
        assert "@jit" in str(error) and "test_unseen_stores.py" in str(error)
        assert contents(compiled) == contents(eager)
