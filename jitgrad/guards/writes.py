"""Places outside a function that it writes: how they are undone, and which each call writes again.

A compiled call stores its own tensors where the trace stored some: in a list of losses, an
attribute, a dict of activations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from operator import is_
from types import MemberDescriptorType
from typing import Any

import numpy as np
import optree

from jitgrad.core.aval import is_number_of_trace
from jitgrad.core.context import TEXT_OF_TRACED
from jitgrad.core.tensor import Tensor
from jitgrad.guards.guard import NOWHERE, Check, Path, behaves_alike, cell_contents
from jitgrad.guards.object_state import MISSING, instance_dict, key_name, lookup
from jitgrad.guards.plain_items import plain_items
from jitgrad.guards.reads import HELD, VARIES, Reads, Write, copy_of, position_in

_APPENDING = {"append", "extend", "__iadd__", "+="}
_UPDATING = {"update", "__ior__", "|=", "[]="}
# Beside tensors only values without a history: a number may be a clock's or a counter's.
_PLAIN = (str, bytes, bool, type(None), np.dtype)
# Alone in a place, which the record of its write tells from a clock's.
_CONSTANTS = (*_PLAIN, int, float)


@dataclass(frozen=True, eq=False, slots=True)
class RepeatedStore:
    """A change of outside state that each call makes: ``value`` is what the trace stored.

    It is a tensor, a container of tensors, a number that depends on one that the place held before, or a constant.

    Attributes:
        kind: of the write, for one place; "extend": ``value`` lists what is appended; "update":
            ``value`` holds the new items of a dict or a list, by key.
    """

    kind: str
    holder: Any
    key: Any
    value: Any
    path: Path

    @property
    def identity(self) -> tuple[int, Hashable]:
        return id(self.holder), key_name(self.key)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors that the trace stored."""
        return tensors_in(self.value)

    def present(self) -> Any:
        """What an eager run has stored, in the form of ``value``."""
        if self.kind == "extend":
            items = list(plain_items(self.holder))
            return items[len(items) - len(self.value) :]
        if self.kind == "update":
            return {key: plain_items(self.holder)[key] for key in self.value}
        return place_content(self.kind, self.holder, self.key)

    def without_value(self) -> RepeatedStore:
        """The same place, with None for what the trace stored there."""
        return replace(self, value=optree.tree_map(lambda _: None, self.value, none_is_leaf=True))

    def saved(self) -> Write:
        """What `undo` restores."""
        kind = "container" if self.kind in ("extend", "update") else self.kind
        now = place_content(kind, self.holder, self.key)
        old = copy_of(now) if kind == "container" else now
        return Write(self.holder, self.key, old, self.path, NOWHERE, kind)

    def make(self, value: Any) -> None:
        """RepeatedStore ``value``, which has the form of the traced one."""
        if self.kind == "extend":
            plain_items(self.holder).extend(value)
        elif self.kind == "update":
            for key, item in value.items():
                plain_items(self.holder)[key] = item
        else:
            fill_place(self.kind, self.holder, self.key, value)


@dataclass(frozen=True, eq=False, slots=True)
class HeldPlace:
    """An item of a dict or a list, an attribute or a variable, outside a function, that holds other tensors or another number on
    every call, such as the state of a recurrent network or a counter of steps."""

    kind: str
    holder: Any
    key: Any
    path: Path

    @property
    def identity(self) -> tuple[int, Hashable]:
        return id(self.holder), key_name(self.key)

    def read(self) -> Any:
        """What the place holds; MISSING if nothing."""
        return place_content(self.kind, self.holder, self.key)

    def fill(self, value: Any) -> None:
        """Put ``value`` there."""
        fill_place(self.kind, self.holder, self.key, value)


def replaced_places(checks: Iterable[Check], holds: Callable[[Any], bool]) -> list[HeldPlace]:
    """The places of which ``checks`` read values for which ``holds`` is true, and which hold other such values now."""
    found: dict[tuple[int, Hashable], HeldPlace] = {}
    for check in checks:
        if holds(check.expected) and not check.identical:
            place = _place_of(check)
            if place is not None and holds(check.read()) and check.reason() is not None:
                found.setdefault(place.identity, place)
    return list(found.values())


def is_plain_number(value: Any) -> bool:
    """Whether ``value`` is a Python int or float, or stands for one."""
    return type(value) in (int, float) or is_number_of_trace(value)


def is_constant(value: Any) -> bool:
    """Whether ``value`` is a plain value: no container, no object, no NumPy scalar."""
    return type(value) in _CONSTANTS or isinstance(value, Enum)


def can_be_held(value: Any) -> bool:
    """Whether ``value`` in a place can be an argument of the function: a number, or tensors alone."""
    return is_plain_number(value) or holds_only_tensors(value)


def holds_only_tensors(value: Any) -> bool:
    """Whether ``value`` is a tensor, or a container of tensors such as ``(h, c)``."""
    if isinstance(value, Tensor):
        return True
    if isinstance(value, dict):
        parts = [] if any(isinstance(key, Tensor) for key in value) else list(value.values())
    else:
        parts = list(value) if isinstance(value, tuple | list) else []
    return bool(parts) and all(map(holds_only_tensors, parts))


def _place_of(check: Check) -> HeldPlace | None:
    """The place that ``check`` reads; None if it is not one that can be filled."""
    holder, kind, key = check.holder, check.kind, check.key
    if kind == "attribute" and check.key in (instance_dict(holder) or ()):
        holder, kind = instance_dict(holder), "item"
    if kind == "item" and isinstance(holder, list):
        key = position_in(holder, key)
    # a property computes its value, and stores it elsewhere
    in_slot = kind == "attribute" and isinstance(lookup(type(holder), key), MemberDescriptorType)
    known = kind == "cell" or in_slot or (kind == "item" and isinstance(holder, dict | list) and key is not None)
    return HeldPlace(kind, holder, key, check.path) if known else None


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in ``value`` and in its containers."""
    return [x for x in _parts_of(value) if isinstance(x, Tensor)]


def has_traced_text(value: Any) -> bool:
    """Whether a text in ``value`` or in its containers was made of a tensor without elements."""
    return any(isinstance(x, str) and TEXT_OF_TRACED in x for x in _parts_of(value))


def _parts_of(value: Any) -> Iterator[Any]:
    """What lies in ``value`` and in its containers, in order."""
    pending = [value]
    while pending:  # not by optree, which sorts the keys of a dict: they may be tensors
        x = pending.pop()
        if isinstance(x, dict):
            pending.extend(reversed(x.values()))
        elif isinstance(x, list | tuple | deque):
            pending.extend(reversed(x))
        else:
            yield x


def store_of(write: Write) -> RepeatedStore | None:
    """The write as something that each call can do again; None if it is not."""
    kind, value = write.kind, place_content(write.kind, write.holder, write.key)
    if kind == "container":
        kind, value = _growth(write)
    elif _repeats(write, value):
        return RepeatedStore(kind, write.holder, write.key, value, write.path)
    if kind == "extend" and value and not write.read and write.operations == {"append"} and _are_constants(value):
        return RepeatedStore(kind, write.holder, write.key, value, write.path)
    if write.read or not any(isinstance(x, Tensor) or is_number_of_trace(x) for x in _parts_of(value)):
        return None
    leaves = optree.tree_leaves(value, none_is_leaf=True)
    return RepeatedStore(kind, write.holder, write.key, value, write.path) if all(map(_can_be_stored, leaves)) else None


def _repeats(write: Write, value: Any) -> bool:
    """Whether ``value`` is a constant that each call stores, or a number that it computes from the one that was there.

    What decided on a constant is guarded; so it is stored even where it was there before.
    """
    if VARIES in write.operations or write.kind == "array" or write.operations == {HELD}:
        return False
    parts = optree.tree_leaves(value, none_is_leaf=True) if type(value) is tuple else [value]
    return all(is_constant(x) or (isinstance(x, int | float) and not isinstance(x, np.generic)) for x in parts)


def _are_constants(items: list[Any]) -> bool:
    """Whether each call can append ``items`` one by one: constants, of which the write tells those of a clock, or tensors."""
    return all(is_constant(x) or isinstance(x, Tensor) or is_number_of_trace(x) for x in items)


def share_containers(stores: list[RepeatedStore], reads: Reads) -> bool:
    """Whether a list or dict is stored that is also elsewhere: a call would store a new one."""
    containers = [x for store in stores for x in _containers(store.value)]
    outside = any(reads.path_of(x) is not None for x in containers)
    return outside or len({id(x) for x in containers}) < len(containers)


def _containers(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list | dict | deque | tuple):
        if not isinstance(tree, tuple):
            yield tree
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _containers(part)


def _can_be_stored(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) or type(leaf) in _PLAIN or is_number_of_trace(leaf)


def _growth(write: Write) -> tuple[str, Any]:
    """How a container grew: the form of a store with the new items; no items if it changed otherwise."""
    now, before = copy_of(write.holder), write.old
    if isinstance(now, list) and write.operations == {"[]="} and len(now) == len(before):
        return "update", {k: x for k, x in enumerate(now) if before[k] is not x}
    if isinstance(now, dict) and write.operations <= _UPDATING:
        return "update", {key: x for key, x in now.items() if before.get(key, MISSING) is not x}
    if isinstance(now, list | deque) and write.operations <= _APPENDING:
        items, old = list(now), list(before)
        # a full deque drops its first items
        kept = next(k for k in range(min(len(old), len(items)), -1, -1) if _same(items[:k], old[len(old) - k :]))
        return "extend", items[kept:] if kept == len(old) or isinstance(now, deque) else []
    return "extend", []


def _same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def place_content(kind: str, holder: Any, key: Any) -> Any:
    """What a written place holds now; MISSING if nothing."""
    if kind == "item":
        items = plain_items(holder)
        return items.get(key, MISSING) if isinstance(holder, dict) else items[key] if key < len(items) else MISSING
    if kind == "class":
        return holder.__dict__.get(key, MISSING)
    if kind == "attribute":
        return getattr(holder, key, MISSING)
    return cell_contents(holder) if kind == "cell" else holder


def is_unchanged(write: Write) -> bool:
    """Whether the place holds what it held before."""
    if write.kind == "array":
        return bool((write.holder == write.old).all())
    if HELD in write.operations:  # a run-time number cannot be compared
        return place_content(write.kind, write.holder, write.key) is write.old
    if write.kind != "container":
        return behaves_alike(place_content(write.kind, write.holder, write.key), write.old)
    now, before = copy_of(write.holder), write.old
    if isinstance(now, set):
        return bool(now == before)
    pairs = ((now, before), (now.values(), before.values())) if isinstance(now, dict) else ((now, before),)
    return len(now) == len(before) and all(all(map(is_, a, b)) for a, b in pairs)


def fill_place(kind: str, holder: Any, key: Any, value: Any) -> None:
    """Put ``value`` into an item, cell, slot or class attribute; MISSING empties the place."""
    if value is MISSING:
        _empty_place(kind, holder, key)
    elif kind == "item":
        plain_items(holder)[key] = value
    elif kind == "cell":
        holder.cell_contents = value
    elif kind == "class":
        setattr(holder, key, value)
    else:
        object.__setattr__(holder, key, value)


def _empty_place(kind: str, holder: Any, key: Any) -> None:
    """Delete what ``kind`` says, if there is something."""
    if kind == "item":
        plain_items(holder).pop(key, None)
    elif kind == "cell":
        del holder.cell_contents  # no error where it is empty
    elif place_content(kind, holder, key) is not MISSING:
        delattr(holder, key) if kind == "class" else object.__delattr__(holder, key)


def undo(write: Write) -> None:
    """Put back what was at the place before."""
    if write.kind == "container":
        _refill(write.holder, write.old)
    elif write.kind == "array":
        write.holder[...] = write.old
    else:
        fill_place(write.kind, write.holder, write.key, write.old)


def refill_bytes(holder: Any, before: bytes) -> None:
    """Give a bytearray, an array of the module ``array`` or a memoryview the bytes that it had."""
    if isinstance(holder, memoryview):
        holder.cast("B")[:] = before
    elif isinstance(holder, bytearray):
        holder[:] = before
    else:
        del holder[:]
        holder.frombytes(before)


def _refill(container: Any, before: Any) -> None:
    items = plain_items(container)
    items.clear()
    items.extend(before) if isinstance(before, list | deque | bytearray) else items.update(before)
