"""Tables of ordinary user code, and of what may change between two calls of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Make = Callable[[], Any]


def new_table() -> tuple[dict[str, Make], Callable[[Make], Make]]:
    """A table, and the decorator that adds a function to it by its name."""
    cases: dict[str, Make] = {}

    def case(make: Make) -> Make:
        cases[make.__name__.strip("_")] = make
        return make

    return cases, case
