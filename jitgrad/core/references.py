"""How many owners an object has, by its reference count.

What else counts depends on the interpreter: a local name or an argument may or may not (from CPython 3.14 on most do
not). So the object is always in a list of one, which counts, and the count of an object without other owners is measured
by the function that is asked later.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any


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
