"""How many owners an object has, by its reference count.

What else counts depends on the interpreter: a local name or an argument may or may not (from CPython 3.14 on most do
not). So the object is always in a list of one, which counts, and the count of an object without other owners is measured
by the function that is asked later. Elements of a deque are counted where they are.
"""

from __future__ import annotations

from collections import deque
from sys import getrefcount
from typing import Any, TypeVar

_Element = TypeVar("_Element")


def _references(held: list[Any]) -> int:
    return getrefcount(held[0])


def _references_of_one_owner() -> int | None:
    """The count of an object that only the list holds; None if counts do not tell owners."""
    held, others = [object()], []
    alone = _references(held)
    for more in (1, 2):
        others.append(held[0])
        if _references(held) != alone + more:
            return None
    others.clear()
    return alone if _references(held) == alone else None


_ONE_OWNER = _references_of_one_owner()


def counts_owners() -> bool:
    """Whether reference counts tell how many owners an object has."""
    return _ONE_OWNER is not None


def has_owners(held: list[Any], others: int = 0) -> bool:
    """Whether the object in the list ``held`` of one has exactly ``others`` more owners; False if nothing can tell.

    A name of the caller may count as an owner or not: there must be none.
    """
    return _ONE_OWNER is not None and _references(held) == _ONE_OWNER + others


def _references_in_deque() -> int:
    """The count of an object that only a deque holds."""
    objects = deque([object()])
    return getrefcount(objects[0])


_IN_DEQUE = _references_in_deque()


def take_unowned(objects: deque[_Element]) -> _Element | None:
    """Take out of ``objects`` one that has no other owner; None if each has.

    The two that came last are looked at first: in a loop these are results of which the caller keeps one, while others
    have come before the loop and stay. Then all, from the first one on; they go to the end.
    """
    if len(objects) > 1:
        for last in (-1, -2):
            if getrefcount(objects[last]) == _IN_DEQUE:
                found = objects[last]
                del objects[last]
                return found
    for _ in range(len(objects)):
        if getrefcount(objects[0]) == _IN_DEQUE:
            return objects.popleft()
        objects.rotate(-1)
    return None
