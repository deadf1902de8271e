"""Mutable records as containers of arguments: dataclasses and namespaces that are not hashable."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import optree

# In this namespace optree keeps the insertion order of dicts, in which a function iterates over
# them; elsewhere it sorts the keys.
NAMESPACE = "jitgrad.arguments"
_insertion_order = optree.dict_insertion_ordered(True, namespace=NAMESPACE)
_insertion_order.__enter__()  # for the life of the process: it ends when the object does

_records: set[type] = set()


def is_record(cls: type) -> bool:
    """Whether arguments of class ``cls`` are taken apart like dicts, once `register` saw one."""
    return cls in _records


def register(leaves: list[Any]) -> bool:
    """Make containers of the records among ``leaves``; whether there were any."""
    found = {type(x) for x in leaves if type(x).__hash__ is None and _has_fields(x)}
    for cls in found:
        optree.register_pytree_node(cls, _flatten, _unflattener(cls), namespace=NAMESPACE)
        _records.add(cls)
    return bool(found)


def classes_in(tree: Any) -> set[type]:
    """The classes of the records in ``tree``, whose methods the function may call."""
    if not _records:
        return set()
    found: set[type] = set()

    def visit(x: Any) -> bool:
        if type(x) in _records:
            found.add(type(x))
        return False

    optree.tree_flatten(tree, is_leaf=visit, none_is_leaf=True, namespace=NAMESPACE)
    return found


def _has_fields(x: Any) -> bool:
    return isinstance(x, SimpleNamespace) or (dataclasses.is_dataclass(x) and not isinstance(x, type))


def _flatten(x: Any) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[str, ...]]:
    fields = [f.name for f in dataclasses.fields(x) if hasattr(x, f.name)] if dataclasses.is_dataclass(x) else []
    names = tuple(dict.fromkeys([*fields, *getattr(x, "__dict__", ())]))
    return tuple([getattr(x, name) for name in names]), names, names


def _unflattener(cls: Any) -> Any:
    def unflatten(names: tuple[str, ...], values: Any) -> Any:
        new = cls.__new__(cls)
        for name, value in zip(names, values, strict=True):
            object.__setattr__(new, name, value)
        return new

    return unflatten
