"""Guards of what classes have and have not, and of where the attributes of their instances lie."""

from __future__ import annotations

import threading
from types import FunctionType
from typing import Any

from jitgrad.core.origin import Origin
from jitgrad.guards.denylist import is_jitgrad_class, is_native
from jitgrad.guards.guard import Path
from jitgrad.guards.object_state import MISSING, is_heap_type, lookup, title
from jitgrad.guards.reads import Reads


def guard_class_attribute(reads: Reads, cls: type, name: str, origin: Origin) -> Any:
    """The raw attribute that instances of ``cls`` see, guarded where a class may change."""
    owner = next((base for base in cls.__mro__ if name in base.__dict__), None)
    if owner is None:
        for base in cls.__mro__:
            guard_class_lacks(reads, base, name, origin)
        return MISSING
    raw = owner.__dict__[name]
    own = is_jitgrad_class(owner) and name != "forward"  # of a layer, which users do replace
    heap = is_heap_type(owner)
    if own or (heap and is_native(owner)):
        return raw
    path = Path("class attribute", f"{title(owner)}.{name}")
    if heap and owner is not cls and _gives_itself(raw) and getattr(cls, name, MISSING) is raw:
        reads.read("attribute", cls, name, raw, path, origin)  # notices a subclass that hides it, too
        return raw
    if heap:
        reads.read("item", reads.dict_of(owner), name, raw, path, origin)
    for base in cls.__mro__[: cls.__mro__.index(owner)]:
        guard_class_lacks(reads, base, name, origin)
    return raw


def guard_class_lacks(reads: Reads, base: type, name: str, origin: Origin) -> None:
    """A class that does not have an attribute, which it may get."""
    if is_heap_type(base) and not is_jitgrad_class(base) and not is_native(base):
        path = Path("class attribute", f"{title(base)}.{name}")
        reads.check("hides", reads.dict_of(base), name, MISSING, path, origin)


def guard_bases(reads: Reads, cls: type, name: str, origin: Origin) -> None:
    """The classes that ``cls`` inherits from, which an assignment to ``__bases__`` changes."""
    if is_heap_type(cls) and not is_jitgrad_class(cls) and not is_native(cls):
        reads.check("attribute", cls, name, getattr(cls, name), Path("", f"{title(cls)}.{name}"), origin)


def _gives_itself(raw: Any) -> bool:
    """Whether reading ``raw``, an attribute of a class, from the class gives ``raw`` without running the user's code."""
    return isinstance(raw, FunctionType | property) or lookup(type(raw), "__get__") is MISSING


def guard_place_of_attribute(
    reads: Reads, value: Any, storage: dict[str, Any], name: str, path: Path, origin: Origin
) -> None:
    """Each call stores or reads ``name`` in ``storage`` by itself, where the attributes of ``value`` lie.

    An assignment to ``__dict__`` changes that, another thread may have its own, and the class may get code that runs instead.
    """
    cls = type(value)
    if lookup(cls, "__getattribute__") is object.__getattribute__ or isinstance(value, threading.local):
        reads.check("attribute", value, "__dict__", storage, path.attr("__dict__"), origin)
        reads.identical.add(id(storage))
    for special in ("__setattr__", "__getattribute__", name):
        guard_class_attribute(reads, cls, special, origin)
