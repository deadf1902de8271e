"""Reads and writes of single items, slices and attributes by instructions of Python code."""

from __future__ import annotations

from collections import defaultdict, deque
from types import FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType
from typing import Any

import numpy as np

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.attributes import UNKNOWN
from jitgrad.guards.class_attributes import guard_class_attribute, guard_place_of_attribute
from jitgrad.guards.contents import WEAK_CONTAINERS, Contents
from jitgrad.guards.guard import IMMUTABLE, Path
from jitgrad.guards.identities import find_by_identity
from jitgrad.guards.object_state import MISSING, instance_dict, lookup, slots_of, title
from jitgrad.guards.plain_items import plain_items
from jitgrad.guards.reads import Reads, is_container, position_in

MUTATORS = frozenset(
    [
        "append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "setdefault", "add", "discard",
        "sort", "reverse", "appendleft", "extendleft", "popleft", "rotate", "move_to_end", "__setitem__", "__delitem__",
        "difference_update", "intersection_update", "symmetric_difference_update", "__iadd__", "__ior__",
    ]
)  # fmt: skip
_SIMPLE = (bool, int, str, bytes, float, type(None), tuple, slice)


def read_item(reads: Reads, contents: Contents, holder: Any, key: Any, origin: Origin) -> Any:
    """``holder[key]``, guarded by that item alone where the key is known."""
    if isinstance(holder, Tensor) or holder is UNKNOWN:
        return UNKNOWN
    path = reads.path_of(holder)
    known = isinstance(key, _SIMPLE) and key is not UNKNOWN
    if isinstance(holder, np.ndarray):
        return _read_element(reads, contents, holder, key if known else UNKNOWN, path, origin)
    if not isinstance(holder, dict | list | tuple | deque | MappingProxyType):
        if path is not None:
            contents.everything(holder, origin)
        return UNKNOWN
    find_by_identity(reads, holder, key, origin)
    if not known:
        return _read_unknown_item(reads, contents, holder, key, origin)
    if path is not None and isinstance(key, slice):
        contents.items(holder, origin)
    try:
        items = plain_items(holder)
        if isinstance(holder, dict) and key not in items:  # a defaultdict makes it, others raise
            if path is not None:
                reads.check("absent", holder, key, MISSING, path.item(key), origin)
                _guard_missing(reads, holder, key, path, origin)
            return UNKNOWN
        value = items[key]
    except (LookupError, TypeError):
        if path is not None:
            contents.length(holder, origin)
        return UNKNOWN
    if path is not None and not isinstance(key, slice):
        item_path = path.item(key)
        if isinstance(holder, list) and reads.writes_of(holder) and reads.written(holder, position_in(holder, key)):
            if key < 0:
                reads.check("length", holder, None, len(holder), path, origin)
            return value
        if isinstance(holder, tuple):
            reads.external(value, item_path, origin)
        elif key.__hash__ is not None:
            reads.read("item", holder, key, value, item_path, origin)
    return value


def _guard_missing(reads: Reads, holder: dict[Any, Any], key: Any, path: Path, origin: Origin) -> None:
    """What gives the item of a key that is not there: the factory of a defaultdict, or ``__missing__``."""
    missing = guard_class_attribute(reads, type(holder), "__missing__", origin)
    if isinstance(holder, defaultdict) and not isinstance(missing, FunctionType):
        reads.read("attribute", holder, "default_factory", holder.default_factory, path.attr("default_factory"), origin)
        reads.write("item", holder, key, MISSING, path.item(key), origin)


def _read_unknown_item(reads: Reads, contents: Contents, holder: Any, key: Any, origin: Origin) -> Any:
    """``holder[key]`` for a key that no text of a guard can give: all items are read.

    It is known which one it is of a key that is hashed by identity, such as a tensor or a module.
    """
    by_identity = isinstance(holder, dict) and key is not UNKNOWN and _is_hashed_by_identity(key)
    if reads.path_of(holder) is not None:
        if by_identity and key in holder:  # what is done with the item reads its parts
            contents.items(holder, origin)
        else:
            contents.everything(holder, origin)
        if isinstance(holder, defaultdict) and not _is_key(holder, key):
            mutate(reads, holder, origin)
    return holder.get(key, UNKNOWN) if by_identity else UNKNOWN


def _is_hashed_by_identity(key: Any) -> bool:
    hash_of: Any = type(key).__hash__
    return hash_of is object.__hash__


def _is_key(holder: dict[Any, Any], key: Any) -> bool:
    try:
        return key is not UNKNOWN and key in holder
    except TypeError:
        return True


def _read_element(
    reads: Reads, contents: Contents, holder: Any, key: Any, path: Path | None, origin: Origin
) -> Any:
    """An element or a view of an array; what is read of it is compared, not the array."""
    if (read := reads.owner_of(holder)) is not None:
        read.keep()
    if path is None or key is UNKNOWN or reads.written(holder, MISSING):
        contents.items(holder, origin)
        return UNKNOWN
    try:
        part = holder[key]
    except (IndexError, TypeError):
        return UNKNOWN
    reads.check("part", holder, key, np.asarray(part).tobytes(), path.item(key), origin)
    return UNKNOWN


def contains(reads: Reads, contents: Contents, holder: Any, key: Any, origin: Origin) -> None:
    """``key in holder``."""
    path = reads.path_of(holder)
    find_by_identity(reads, holder, key, origin)
    if path is None or isinstance(holder, Tensor):
        return
    if not isinstance(holder, dict | set | frozenset) or not isinstance(key, (*IMMUTABLE, tuple)):
        contents.everything(holder, origin)
        return
    try:
        items = plain_items(holder)
        present = key in items
    except TypeError:
        return
    if isinstance(holder, dict):
        if present:
            reads.check("item", holder, key, items[key], path.item(key), origin)
        else:
            reads.check("absent", holder, key, MISSING, path.item(key), origin)
    elif isinstance(holder, set):
        reads.check("contains", holder, key, present, path, origin)


# --- writes -------------------------------------------------------------------------------------------------


def write_item(reads: Reads, holder: Any, key: Any, origin: Origin, operation: str = "[]=") -> None:
    """``holder[key] = ...`` or ``del holder[key]``."""
    path = reads.path_of(holder)
    if path is None and isinstance(holder, np.ndarray) and (read := reads.owner_of(holder)) is not None:
        holder, path = read.array, read.path  # of which it is a view
    if path is None or isinstance(holder, Tensor):
        return
    if isinstance(holder, np.ndarray):
        reads.write("array", holder, MISSING, holder.copy(), path, origin)
    elif isinstance(holder, dict) and key is not UNKNOWN:
        reads.write("item", holder, key, plain_items(holder).get(key, MISSING), path.item(key), origin)
    elif operation == "[]=" and isinstance(holder, list) and (place := position_in(holder, key)) is not None:
        if (id(holder), MISSING) not in reads.writes:
            if key < 0:
                reads.check("length", holder, None, len(holder), path, origin)
            reads.write("item", holder, place, plain_items(holder)[place], path.item(place), origin)
    else:
        mutate(reads, holder, origin, operation)


def mutate(reads: Reads, holder: Any, origin: Origin, operation: str = "") -> None:
    """Some items of a container change, by the method or operator ``operation``."""
    path = reads.path_of(holder)
    if path is not None and isinstance(holder, WEAK_CONTAINERS):
        holder, path = holder.data, path.attr("data")
        reads.external(holder, path, origin)
    if path is not None and is_container(holder) and not isinstance(holder, tuple | frozenset):
        earlier = reads.writes.get((id(holder), MISSING))
        old = earlier.old if earlier is not None else reads.before(holder)
        if operation == "[]=" and isinstance(holder, list):  # its positions may be counted from the end
            reads.check("length", holder, None, len(holder), path, origin)
        reads.write("container", holder, MISSING, old, path, origin, operation)
    elif path is not None and isinstance(holder, bytearray):
        reads.write("container", holder, MISSING, bytearray(holder), path, origin)


def write_attribute(reads: Reads, value: Any, name: str, origin: Origin, *, plain: bool = False) -> None:
    """``value.name = ...`` or ``del value.name``; ``plain``: without the class's own ``__setattr__``."""
    if isinstance(value, type) and name == "__slotnames__":
        return  # what `copyreg` keeps of a class
    if isinstance(value, type):
        path = Path("class attribute", f"{title(value)}.{name}")
        reads.write("class", value, name, value.__dict__.get(name, MISSING), path, origin)
        return
    path_of_value = reads.path_of(value)
    if path_of_value is None or isinstance(value, Tensor):
        return
    raw = lookup(type(value), name)
    setter = lookup(type(value), "__setattr__")
    if not plain and setter is not object.__setattr__ and not _stores_plainly(value):
        return  # its code runs, and is observed
    if isinstance(lookup(type(raw), "__set__"), FunctionType) or isinstance(raw, property):
        return  # likewise
    storage, path = instance_dict(value), path_of_value.attr(name)
    if isinstance(raw, GetSetDescriptorType):  # of C code, such as the shape of an array
        reads.write("attribute", value, name, getattr(value, name), path, origin)
    elif storage is not None and name not in slots_of(value) and not isinstance(raw, MemberDescriptorType):
        reads.write("item", storage, name, storage.get(name, MISSING), path, origin)
        guard_place_of_attribute(reads, value, storage, name, path_of_value, origin)
    else:
        reads.write("attribute", value, name, slots_of(value).get(name, MISSING), path, origin)


def _stores_plainly(value: Any) -> bool:
    """Whether ``__setattr__`` of the object ends in its dict (modules, functions, nn.Module)."""
    setter: Any = lookup(type(value), "__setattr__")
    return not hasattr(setter, "__code__") or setter.__module__.startswith("jitgrad.")
