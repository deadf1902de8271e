"""Classes of the user as pytrees, under jax.tree_util's names: everywhere in jitgrad a pytree is what optree knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import optree

from jitgrad.core.errors import ArgumentError

Class = TypeVar("Class", bound=type)
# optree keeps classes by name spaces; those of the global one are pytrees in every call
_EVERYWHERE: Any = vars(optree.registry)["__GLOBAL_NAMESPACE"]


def register_pytree_node(
    nodetype: type, flatten_func: Callable[[Any], tuple[Any, Any]], unflatten_func: Callable[[Any, Any], Any], *_keys: Any
) -> None:
    """Make ``nodetype`` a pytree.

    ``flatten_func(x)`` gives the children and what else there is, which can be hashed and compared;
    ``unflatten_func(rest, children)`` makes the object of these.
    """
    optree.register_pytree_node(nodetype, flatten_func, unflatten_func, namespace=_EVERYWHERE)


def register_pytree_node_class(cls: Class) -> Class:
    """A decorator for a class with the methods ``tree_flatten(self)`` and the class method ``tree_unflatten(rest, children)``."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """`register_pytree_node` where ``flatten_with_keys(x)`` gives pairs of a key, as paths show it, and a child."""

    def flatten(x: Any) -> tuple[Any, Any, Any]:
        pairs, rest = flatten_with_keys(x)
        keys, children = zip(*pairs, strict=True) if pairs else ((), ())
        return children, rest, keys

    optree.register_pytree_node(nodetype, flatten, unflatten_func, namespace=_EVERYWHERE)


def register_pytree_with_keys_class(cls: Class) -> Class:
    """`register_pytree_node_class` for a class with ``tree_flatten_with_keys(self)`` in place of ``tree_flatten``."""
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_static(cls: Class) -> Class:
    """A decorator for a class without children: all of an object is structure, and can be hashed and compared."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _children: x)
    return cls


def register_dataclass(
    nodetype: Class, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None
) -> Class:
    """Make a dataclass a pytree whose children are its ``data_fields``; ``meta_fields`` are structure.

    Without these all fields are children, but those with ``metadata={"static": True}``.

    Raises ArgumentError for a class that is no dataclass and has no fields named, or if one of the two is missing.
    """
    if (data_fields is None) != (meta_fields is None):
        raise ArgumentError("register_dataclass: give data_fields and meta_fields, or neither")
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise ArgumentError(f"register_dataclass: {nodetype.__name__} is no dataclass; name its data_fields and meta_fields")
        fields = [f for f in dataclasses.fields(nodetype) if f.init]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten(x: Any) -> tuple[Any, Any]:
        return tuple(getattr(x, k) for k in data), tuple(getattr(x, k) for k in meta)

    def unflatten(rest: Any, children: Any) -> Any:
        return nodetype(**dict(zip((*data, *meta), (*children, *rest), strict=True)))

    register_pytree_node(nodetype, flatten, unflatten)
    return nodetype
