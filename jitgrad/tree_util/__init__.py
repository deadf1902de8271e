"""jax.tree_util: functions of pytrees, by optree; imports core."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial as Partial
from functools import reduce
from typing import TYPE_CHECKING, Any

import optree
from optree import PyTreeSpec as PyTreeDef

from jitgrad.core.missing_names import Lookup, raising
from jitgrad.tree_util.paths import DictKey as DictKey
from jitgrad.tree_util.paths import FlattenedIndexKey as FlattenedIndexKey
from jitgrad.tree_util.paths import GetAttrKey as GetAttrKey
from jitgrad.tree_util.paths import KeyPath as KeyPath
from jitgrad.tree_util.paths import SequenceKey as SequenceKey
from jitgrad.tree_util.paths import all_leaves as all_leaves
from jitgrad.tree_util.paths import keystr as keystr
from jitgrad.tree_util.paths import tree_flatten_with_path as tree_flatten_with_path
from jitgrad.tree_util.paths import tree_leaves_with_path as tree_leaves_with_path
from jitgrad.tree_util.paths import tree_map_with_path as tree_map_with_path
from jitgrad.tree_util.paths import tree_transpose as tree_transpose
from jitgrad.tree_util.registration import register_dataclass as register_dataclass
from jitgrad.tree_util.registration import register_pytree_node as register_pytree_node
from jitgrad.tree_util.registration import register_pytree_node_class as register_pytree_node_class
from jitgrad.tree_util.registration import register_pytree_with_keys as register_pytree_with_keys
from jitgrad.tree_util.registration import register_pytree_with_keys_class as register_pytree_with_keys_class
from jitgrad.tree_util.registration import register_static as register_static

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyPath", "Partial", "PyTreeDef", "SequenceKey", "all_leaves",
    "keystr", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "tree_all", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path",
    "tree_reduce", "tree_structure", "tree_transpose", "tree_unflatten",
]  # fmt: skip

_NO_START: Any = object()
IsLeaf = Callable[[Any], bool] | None


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """``f`` of each leaf of ``tree``, and of the leaves of ``rest`` there."""
    return optree.tree_map(f, tree, *rest, is_leaf=is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order; None is no leaf."""
    return list(optree.tree_leaves(tree, is_leaf=is_leaf))


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """The leaves, and the structure."""
    leaves, treedef = optree.tree_flatten(tree, is_leaf=is_leaf)
    return list(leaves), treedef


def tree_unflatten(treedef: Any, leaves: Any) -> Any:
    """The pytree of a structure and its leaves."""
    return optree.tree_unflatten(treedef, leaves)


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The structure, without the leaves."""
    return optree.tree_structure(tree, is_leaf=is_leaf)


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NO_START, is_leaf: IsLeaf = None) -> Any:
    """``function`` of the result so far and the next leaf, over all leaves."""
    leaves = tree_leaves(tree, is_leaf)
    return reduce(function, leaves) if initializer is _NO_START else reduce(function, leaves, initializer)


def tree_all(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.tree_util", globals())
