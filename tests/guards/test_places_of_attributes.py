"""Attributes and items that each call stores by itself: they must still lie there, and be stored without other code."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg


class Store:
    """An object with a counter and a tensor."""

    def __init__(self) -> None:
        self.count, self.total = 0, jg.zeros(2)


class Items(list[Any]):
    """A list whose class may get other methods."""


def _step(store: Any, items: Any, x: Any) -> Any:
    store.count += 1
    store.total = store.total + x
    items.append(x * store.count)
    return x * store.count


def _new_dict(store: Any, cls: Any) -> None:
    store.__dict__ = {"count": 100, "total": jg.ones(2)}


def _setattr(store: Any, cls: Any) -> None:
    cls.__setattr__ = lambda self, name, value: object.__setattr__(self, name, value * 10)


def _getattribute(store: Any, cls: Any) -> None:
    own = object.__getattribute__
    cls.__getattribute__ = lambda self, name: 50 if name == "count" else own(self, name)


def _property(store: Any, cls: Any) -> None:
    cls.count = property(lambda self: 7, lambda self, value: None)


def _append(store: Any, cls: Any) -> None:
    store.items_class.append = lambda self, value: list.append(self, value * 10)


@pytest.mark.parametrize("change", [_new_dict, _setattr, _getattribute, _property, _append], ids=lambda f: f.__name__)
def test_a_store_goes_where_eager_code_stores(change: Callable[[Any, Any], None]) -> None:
    results = []
    for compiled in (False, True):
        cls, items_class = type("Store", (Store,), {}), type("Items", (Items,), {})
        store, items = cls(), items_class()
        cls.items_class = items_class  # type: ignore[attr-defined]

        def step(x: Any, store: Any = store, items: Any = items) -> Any:
            return _step(store, items, x)

        f = jg.jit(step, backend="python", check="off") if compiled else step
        found = []
        for k in range(6):
            if k == 3:
                change(store, cls)
            found.append((f(jg.ones(2) * k).tolist(), store.count, store.total.tolist(), [t.tolist() for t in items]))
        results.append(found)
    assert results[0] == results[1]


def test_each_thread_has_its_own_attributes() -> None:
    def calls(compiled: bool) -> list[Any]:
        local, found = threading.local(), list[Any]()

        def step(x: Any) -> Any:
            local.count = getattr(local, "count", 0) + 1
            return x * local.count

        f = jg.jit(step, backend="python", check="off") if compiled else step

        def run() -> None:
            for _ in range(2):
                found.append((f(jg.ones(1)).tolist(), local.count))

        for _ in range(3):
            run()
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        return found

    assert calls(True) == calls(False)


def test_an_attribute_that_another_thread_lacks() -> None:
    local = threading.local()
    local.scale = 2.0
    f = jg.jit(lambda x: x * getattr(local, "scale", 9.0), backend="python", check="off")
    found = list[float]()
    for _ in range(3):
        found.append(f(jg.ones(())).item())
        thread = threading.Thread(target=lambda: found.append(f(jg.ones(())).item()))
        thread.start()
        thread.join()
    assert found == [2.0, 9.0] * 3
