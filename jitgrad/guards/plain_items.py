"""The items of containers as these store them, without running methods of the user's classes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from jitgrad.guards.denylist import is_python_class
from jitgrad.guards.object_state import lookup

_PLAIN = (dict, list, tuple, set, frozenset, deque)
_METHODS = (
    "__getitem__", "__setitem__", "__iter__", "__len__", "__contains__", "get", "keys", "values", "items", "pop", "clear",
    "extend", "update",
)  # fmt: skip


class PlainItems:
    """``container`` with the methods of ``base``, its first class that is no Python code."""

    __slots__ = ("_base", "_container")

    def __init__(self, container: Any, base: Any) -> None:
        self._container = container
        self._base = base

    def __getitem__(self, key: Any) -> Any:
        return self._base.__getitem__(self._container, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._base.__setitem__(self._container, key, value)

    def __iter__(self) -> Iterator[Any]:
        items: Iterator[Any] = self._base.__iter__(self._container)
        return items

    def __len__(self) -> int:
        return int(self._base.__len__(self._container))

    def __contains__(self, key: Any) -> bool:
        return bool(self._base.__contains__(self._container, key))

    def get(self, key: Any, default: Any = None) -> Any:
        return self._base.get(self._container, key, default)

    def keys(self) -> Any:
        return self._base.keys(self._container)

    def values(self) -> Any:
        return self._base.values(self._container)

    def items(self) -> Any:
        return self._base.items(self._container)

    def pop(self, *key: Any) -> Any:
        return self._base.pop(self._container, *key)

    def clear(self) -> None:
        self._base.clear(self._container)

    def extend(self, items: Iterable[Any]) -> None:
        self._base.extend(self._container, items)

    def update(self, items: Any) -> None:
        self._base.update(self._container, items)


_bases: WeakKeyDictionary[type, type | None] = WeakKeyDictionary()


def plain_items(container: Any) -> Any:
    """``container``, or its `PlainItems` if its class has methods of its own for items."""
    cls = type(container)
    if cls in _PLAIN or not isinstance(container, _PLAIN):
        return container
    if cls not in _bases:
        own = any(isinstance(lookup(cls, name), FunctionType) for name in _METHODS)
        _bases[cls] = next(c for c in cls.__mro__ if not is_python_class(c)) if own else None
    base = _bases[cls]
    return container if base is None else PlainItems(container, base)
