"""``in_axes`` and ``out_axes``: which axis of each leaf of a pytree has the examples."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import optree

from jitgrad.core.errors import ArgumentError, shown


def axes_of_leaves(what: str, axes: Any, tree: Any, place: str) -> list[int | None]:
    """The axis for each leaf of ``tree``: ``axes`` is an int or None for all of it, or a tree with such for its parts.

    Raises:
        ArgumentError: ``axes`` has another structure; ``place`` names the part of the arguments or results.
    """
    return list(_listed(what, axes, tree, place))


def _listed(what: str, axes: Any, tree: Any, place: str) -> Iterator[int | None]:
    if axes is None or _is_int(axes):
        axis = None if axes is None else operator.index(axes)
        yield from [axis] * len(optree.tree_leaves(tree))
        return
    if tree is None:
        raise ArgumentError(f"{what}: {shown(axes)} for {place}, which is None")
    parts = _parts(axes)
    if parts is None:
        raise ArgumentError(f"{what}: an axis is an int or None, got {shown(axes)} for {place}")
    own = _parts(tree)
    if own is None or list(parts) != list(own):
        found = type(tree).__name__ if own is None else f"a {type(tree).__name__} with {_keys(own)}"
        raise ArgumentError(
            f"{what}: {place} is {found}, but there are axes for a {type(axes).__name__} with {_keys(parts)}. Give an int "
            "or None for all of it, or a tree of axes like it"
        )
    for key, part in own.items():
        yield from _listed(what, parts[key], part, f"{place}[{key!r}]")


def _keys(parts: Mapping[Any, Any]) -> str:
    return f"{len(parts)} items" if all(isinstance(key, int) for key in parts) else f"keys {list(parts)}"


def _is_int(x: Any) -> bool:
    return hasattr(x, "__index__") and not isinstance(x, bool)


def _parts(tree: Any) -> Mapping[Any, Any] | None:
    """The children of one node of a pytree by key, in the order of its leaves; None for a leaf."""
    if optree.tree_is_leaf(tree):
        return None
    children, _, entries, _ = optree.tree_flatten_one_level(tree)
    return dict(zip(entries, children, strict=True))
