"""Values that only the interpreter sees, of which it is known in which containers they lie.

A loop, an unpacking or a C function gives items that no name is bound to. What is read of such an
item is read of all items that it may be.
"""

from __future__ import annotations

from collections.abc import ItemsView, KeysView
from dataclasses import dataclass
from types import CodeType
from typing import Any

from jitgrad.guards.reads import is_container, viewed

_FRESH = (zip, enumerate)  # their items are new tuples of items
_SAVED: tuple[type, ...] = (  # iterators whose `__reduce__` shows what they iterate over, without a step
    *_FRESH, map, filter, reversed, type(iter([])), type(iter(())), type(iter(set())), type(reversed([])),
    type(iter({})), type(iter({}.values())), type(iter({}.items())),
    type(reversed({})), type(reversed({}.values())), type(reversed({}.items())),
)  # fmt: skip
_VIEWS: tuple[type, ...] = (type({}.items()), type({}.keys()), type({}.values()))


@dataclass(frozen=True, slots=True)
class Parts:
    """A container that the instructions just made of these values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MadeFunction:
    """A function that the instructions just made."""

    __code__: CodeType


@dataclass(frozen=True, slots=True)
class PartOf:
    """One of the values ``depth`` containers deep in ``sources``.

    Below 0 it is a new container, such as the pairs of ``zip``, and 0 stands for an item of that.
    """

    sources: tuple[Any, ...]
    depth: int

    def item(self) -> PartOf:
        """One of its items."""
        return PartOf(self.sources, self.depth + 1)

    def around(self, levels: int = 1) -> PartOf:
        """A new container of such values."""
        return PartOf(self.sources, self.depth - levels)


def parts_of(value: Any) -> PartOf | None:
    """``value`` as something whose items are known, unless a loop over it runs other code."""
    if isinstance(value, PartOf):
        return value
    if isinstance(value, Parts):
        return PartOf((value,), 0)
    if isinstance(value, _VIEWS):
        return _of_view(value)
    if is_container(value):
        return PartOf((tuple(value) if isinstance(value, dict) else value,), 0)
    if type(value) not in _SAVED:
        return None
    found = [part for argument in value.__reduce__()[1] if (part := parts_of(argument)) is not None]
    joined = join(found)
    if joined is not None and type(value) is map:  # its function may take items apart
        return joined.item()
    return joined.around() if joined is not None and type(value) in _FRESH else joined


def join(parts: list[PartOf]) -> PartOf | None:
    """A value that may be any of ``parts``."""
    sources = tuple(source for part in parts for source in part.sources)
    return PartOf(sources, min(part.depth for part in parts)) if parts else None


def _of_view(view: Any) -> PartOf:
    if isinstance(view, KeysView):
        return PartOf((tuple(view),), 0)
    return PartOf((viewed(view),), -1 if isinstance(view, ItemsView) else 0)
