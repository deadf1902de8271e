"""Stores whose object only the interpreter sees: what they changed, found by comparing what they may have changed.

In ``next(iter(layers)).scale = s`` no name is bound to the object, and no rule tells which one it is. So the places
where the store may lie are read before the instruction, and again after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.attributes import UNKNOWN
from jitgrad.guards.containers import MUTATORS, write_attribute, write_item
from jitgrad.guards.contents import WEAK_CONTAINERS
from jitgrad.guards.guard import Path
from jitgrad.guards.object_state import MISSING, instance_dict, lookup, slots_of, title
from jitgrad.guards.observed_files import is_standard_library
from jitgrad.guards.part_of import PartOf
from jitgrad.guards.reads import Write, copy_of, is_container
from jitgrad.guards.shadow import ShadowFrame, Unrepeatable, whole_key
from jitgrad.guards.writes import is_unchanged, place_content


def is_unknown(holder: Any) -> bool:
    """Whether it is not known what ``holder`` on the shadow of a stack is; at most, where it lies."""
    return holder is UNKNOWN or isinstance(holder, PartOf)


def store_attribute(frame: ShadowFrame, holder: Any, name: Any, value: Any, *, plain: bool = False) -> None:
    """The running instruction stores ``value`` in an attribute of ``holder``, or deletes that; any of them may be unknown.

    ``plain``: without the class's own ``__setattr__``.
    """
    if not isinstance(name, str):
        _store_unknown_attribute(frame, holder, value)
    elif is_unknown(holder):
        owners = [entry for entry in _externals(frame, holder) if not isinstance(entry[0], Tensor | ModuleType)]
        _compare_later(frame, [w for owner, path in owners for w in _attribute(owner, name, path, frame.origin())], value)
    else:
        write_attribute(frame.reads, holder, name, frame.origin(), plain=plain)
        if isinstance(value, Unrepeatable):
            frame.observer.tainted[id(holder), name] = value
            for part in (holder, instance_dict(holder)):
                frame.reads.forget_single_read(part, name)
                frame.reads.varies(part, name)
        else:
            frame.observer.tainted.pop((id(holder), name), None)


def _store_unknown_attribute(frame: ShadowFrame, holder: Any, value: Any) -> None:
    path = None if is_unknown(holder) else frame.reads.path_of(holder)
    owners = _externals(frame, holder) if is_unknown(holder) else [] if path is None else [(holder, path)]
    owned = [(instance_dict(owner), path) for owner, path in owners if not isinstance(owner, ModuleType)]
    storages = [(storage, path) for storage, path in owned if storage is not None]
    before, origin = [dict(storage) for storage, _ in storages], frame.origin()

    def compare(offset: int) -> None:
        for (storage, path), old in zip(storages, before, strict=True):
            names = [name for name in {**old, **storage} if old.get(name, MISSING) is not storage.get(name, MISSING)]
            writes = [Write(storage, name, old.get(name, MISSING), path.attr(name), origin, "item") for name in names]
            _note(frame, writes, value, "")

    frame.later(compare, after_errors=True)


def store_item(frame: ShadowFrame, holder: Any, key: Any, value: Any, operation: str) -> None:
    """The running instruction stores ``value`` under ``key`` of ``holder``, or deletes that; either may be unknown."""
    if is_unknown(holder):
        change_items(frame, holder, operation, whole_key(key), value)
        return
    if isinstance(holder, WEAK_CONTAINERS) and _in_library(frame):
        return
    write_item(frame.reads, holder, whole_key(key), frame.origin(), operation)
    if isinstance(value, Unrepeatable):
        frame.observer.tainted[id(holder)] = value
        frame.reads.forget_single_read(holder, key)
        frame.reads.varies(holder, key)


def change_items(frame: ShadowFrame, holder: Any, operation: str, key: Any = UNKNOWN, value: Any = UNKNOWN) -> None:
    """The running instruction applies a method or an operator to a container that is not known.

    ``key``: of the item that it changes, if that is known.
    """
    containers = [(c, path) for c, path in _externals(frame, holder) if is_container(c)]
    able = [(c, path) for c, path in containers if hasattr(c, operation) or operation not in MUTATORS]
    places = [(c, UNKNOWN if isinstance(c, list) and operation != "[]=" else key, path) for c, path in able]
    _compare_later(frame, [w for c, k, path in places for w in _item(c, k, path, frame.origin())], value, operation)


def compare_containers(frame: ShadowFrame, values: Iterable[Any], operation: str) -> None:
    """The running instruction gives ``values`` to a C function, such as heapq.heappush, which may change the containers."""
    known = [(value, frame.reads.path_of(value)) for value in values if is_container(value)]
    changing = [(value, path) for value, path in known if path is not None and not isinstance(value, tuple | frozenset)]
    _compare_later(frame, [w for c, path in changing for w in _item(c, UNKNOWN, path, frame.origin())], UNKNOWN, operation)


def compare_attributes(frame: ShadowFrame, values: Iterable[Any]) -> None:
    """The running instruction gives ``values`` to Python code that is not followed, such as Event.set, which may change them."""
    if _in_library(frame):
        return
    held = [(value, path) for value in values if (path := frame.reads.path_of(value)) is not None]
    kept = [(instance_dict(value), path) for value, path in held if not isinstance(value, type | ModuleType | FunctionType)]
    origin = frame.origin()
    places = [_attributes_and_data(storage, path, origin) for storage, path in kept if storage is not None]
    if writes := [w for listed in places for w in listed]:

        def compare(offset: int) -> None:
            for w in filter(_has_changed, writes):
                frame.reads.write(w.kind, w.holder, w.key, w.old, w.path, w.origin)
                frame.reads.varies(w.holder, w.key)  # what else the code did no call can do again

        frame.later(compare, after_errors=True)


def _in_library(frame: ShadowFrame) -> bool:
    """Whether Python's own library runs, whose caches nobody sees, such as that of functools.singledispatch."""
    return is_standard_library(frame.frame.f_code.co_filename)


def _attributes_and_data(storage: dict[str, Any], path: Path, origin: Origin) -> Iterator[Write]:
    for name, value in storage.items():
        yield Write(storage, name, value, path.attr(name), origin, "item")
    if isinstance(data := storage.get("data"), dict | set):  # of a container of weak references
        yield Write(data, MISSING, copy_of(data), path.attr("data"), origin, "container")


def _externals(frame: ShadowFrame, holder: Any) -> list[tuple[Any, Path]]:
    """All external values that are known; those that ``holder`` may be are made known before."""
    if isinstance(holder, PartOf):
        frame.candidates(holder)
    return frame.reads.externals()


def _compare_later(frame: ShadowFrame, places: list[Write], value: Any, operation: str = "") -> None:
    """Note the writes when the running instruction is done.

    A store of what was there before shows nowhere: the guard then compares that it still is there.
    """
    if not places:
        return

    def compare(offset: int) -> None:
        changed = [place for place in places if _has_changed(place)]
        _note(frame, changed, value, operation)
        for place in places if not changed else ():
            if place.kind != "container" and place.old is not MISSING and (value is UNKNOWN or value is place.old):
                frame.reads.check(*_reading(place), place.old, place.path, place.origin)

    frame.later(compare, after_errors=True)


def _note(frame: ShadowFrame, changed: list[Write], value: Any, operation: str) -> None:
    for w in changed:
        if w.kind == "container" and isinstance(w.holder, list):  # its positions may be counted from the end
            frame.reads.check("length", w.holder, None, len(w.old), w.path, w.origin)
        frame.reads.write(w.kind, w.holder, w.key, w.old, w.path, w.origin, operation)
        if isinstance(value, Unrepeatable):
            frame.observer.tainted[id(w.holder) if w.key is MISSING else (id(w.holder), w.key)] = value
            frame.reads.varies(w.holder, w.key)


def _has_changed(place: Write) -> bool:
    """Whether something else is there, be it equal; numbers of the trace cannot be compared."""
    if place.kind == "container":
        return not is_unchanged(place)
    return place_content(place.kind, place.holder, place.key) is not place.old


def _reading(place: Write) -> tuple[str, Any, Any]:
    """The kind, the holder and the key of the check that reads ``place``."""
    of_class = place.kind == "class"
    return ("item", place.holder.__dict__, place.key) if of_class else (place.kind, place.holder, place.key)


def _attribute(owner: Any, name: str, path: Path, origin: Origin) -> Iterator[Write]:
    """The place of the attribute ``name`` of ``owner``, set or not."""
    storage = instance_dict(owner)
    if isinstance(owner, type):
        where = Path("class attribute", f"{title(owner)}.{name}")
        yield Write(owner, name, owner.__dict__.get(name, MISSING), where, origin, "class")
    elif isinstance(lookup(type(owner), name), MemberDescriptorType):
        yield Write(owner, name, slots_of(owner).get(name, MISSING), path.attr(name), origin, "attribute")
    elif storage is not None:
        yield Write(storage, name, storage.get(name, MISSING), path.attr(name), origin, "item")


def _item(container: Any, key: Any, path: Path, origin: Origin) -> Iterator[Write]:
    """The place of ``key`` of ``container``, or all of its items."""
    if isinstance(container, dict) and key is not UNKNOWN and key.__hash__ is not None:
        yield Write(container, key, container.get(key, MISSING), path.item(key), origin, "item")
    elif isinstance(container, list) and type(key) is int and 0 <= key < len(container):
        yield Write(container, key, container[key], path.item(key), origin, "item")
    elif not isinstance(container, tuple | frozenset):
        yield Write(container, MISSING, copy_of(container), path, origin, "container")
