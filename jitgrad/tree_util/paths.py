"""Where leaves are in a pytree, under jax.tree_util's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import optree

IsLeafTest = Callable[[Any], bool] | None


@dataclass(frozen=True)
class DictKey:
    """A key of a dict on the way to a leaf."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """A position in a tuple or list on the way to a leaf."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute on the way to a leaf."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """The number of a child of an object of a registered class on the way to a leaf."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]


def _key(entry: Any) -> Any:
    if isinstance(entry.entry, (DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey)):  # of a class registered with keys
        return entry.entry
    if isinstance(entry, (optree.NamedTupleEntry, optree.StructSequenceEntry)):
        return GetAttrKey(entry.field)
    if isinstance(entry, optree.MappingEntry):
        return DictKey(entry.entry)
    if isinstance(entry, optree.SequenceEntry):
        return SequenceKey(entry.entry)
    if isinstance(entry, optree.GetAttrEntry):
        return GetAttrKey(entry.entry)
    return FlattenedIndexKey(entry.entry)


def tree_flatten_with_path(tree: Any, is_leaf: IsLeafTest = None) -> tuple[list[tuple[KeyPath, Any]], Any]:
    """(path, leaf) for each leaf in order, and the structure."""
    accessors, leaves, treedef = optree.tree_flatten_with_accessor(tree, is_leaf=is_leaf)
    paths = [tuple(_key(entry) for entry in accessor) for accessor in accessors]
    return list(zip(paths, leaves, strict=True)), treedef


def tree_leaves_with_path(tree: Any, is_leaf: IsLeafTest = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) for each leaf in order."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeafTest = None) -> Any:
    """``f(path, leaf, ...)`` of each leaf of ``tree``, and of the leaves of ``rest`` there."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf)
    others = [treedef.flatten_up_to(other) for other in rest]
    return optree.tree_unflatten(treedef, [f(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)])


def keystr(keys: Sequence[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ``['layers'][0].weight``, or with ``simple=True, separator="/"`` ``layers/0/weight``."""
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(str(next(iter(vars(key).values()))) for key in keys)


def tree_transpose(outer_treedef: Any, inner_treedef: Any | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees as a tree of the inner structure, with trees of the outer one as leaves."""
    if inner_treedef is None:
        inner_treedef = optree.tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    return optree.tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose)


def all_leaves(iterable: Any, is_leaf: IsLeafTest = None) -> bool:
    """Whether all of ``iterable`` are leaves."""
    return bool(optree.all_leaves(iterable, is_leaf=is_leaf))
