"""Methods of lists, dicts and other containers: what they read and change, and what they give."""

from __future__ import annotations

from typing import Any

from jitgrad.guards.attributes import UNKNOWN
from jitgrad.guards.containers import MUTATORS, contains, mutate, read_item, write_item
from jitgrad.guards.part_of import PartOf
from jitgrad.guards.reads import is_container
from jitgrad.guards.shadow import ShadowFrame


def container_method(frame: ShadowFrame, name: str, args: list[Any]) -> Any:
    """The result of ``args[0].name(...)`` as far as it is known; reads and writes are recorded."""
    reads, origin, holder = frame.reads, frame.origin(), args[0]
    if name in ("get", "__getitem__", "pop", "setdefault") and isinstance(holder, dict) and len(args) > 1:
        present = _has(holder, args[1]) or args[1] is UNKNOWN
        value = read_item(reads, frame.contents, holder, args[1], origin) if present else (*args, UNKNOWN)[2]
        if not present:
            contains(reads, frame.contents, holder, args[1], origin)
        if name == "setdefault" or name == "pop":
            write_item(reads, holder, args[1], origin)
        return value
    if name == "__contains__":
        contains(reads, frame.contents, holder, args[1] if len(args) > 1 else UNKNOWN, origin)
    elif name in MUTATORS:
        given = _given_item(frame, holder) if name in ("pop", "popitem", "popleft") else UNKNOWN
        if name == "__setitem__":
            write_item(reads, holder, args[1], origin)
        else:
            mutate(reads, holder, origin, name)
        for arg in args[1:]:
            frame.iterate(arg) if is_container(arg) or isinstance(arg, PartOf) else None
        return given
    elif name == "__len__":
        frame.contents.length(holder, origin)
    elif name not in ("__init__", "__new__", "__class_getitem__"):
        return _other_method(frame, name, args)
    return UNKNOWN


def _given_item(frame: ShadowFrame, holder: Any) -> PartOf:
    """An item that its container loses."""
    frame.iterate(holder)
    items = tuple(holder.items() if isinstance(holder, dict) else holder)
    return PartOf((items,), 1)


def _other_method(frame: ShadowFrame, name: str, args: list[Any]) -> PartOf:
    """A method that gives items, a view or a copy of a container."""
    holder = args[0]
    frame.contents.items(holder, frame.origin())
    for arg in args[1:] if name not in ("index", "count") else args:
        frame.used(arg)
    if isinstance(holder, dict) and name == "keys":
        return PartOf((tuple(holder),), 0)
    return PartOf((holder,), -1 if name == "items" else 0)


def _has(holder: dict[Any, Any], key: Any) -> bool:
    try:
        return key is not UNKNOWN and key in holder
    except TypeError:
        return False
