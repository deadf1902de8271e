"""Reads of what a value holds: items of containers, elements of arrays, all attributes of objects."""

from __future__ import annotations

import array
import enum
import weakref
from collections import ChainMap, UserDict, UserList, UserString
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.denylist import is_consumed_by_reading, is_jitgrad_class, is_native, is_read_unseen
from jitgrad.guards.guard import Path
from jitgrad.guards.object_state import MISSING, instance_dict, reads_everything, slots_of
from jitgrad.guards.part_of import PartOf, Parts
from jitgrad.guards.plain_items import plain_items
from jitgrad.guards.reads import PLAIN, Reads, is_container

MAX_ITEMS = 20_000  # a check reads every item on every call: about 25 ns each
WEAK_CONTAINERS: tuple[Any, ...] = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)
_IN_PYTHON = (UserDict, UserList, UserString, ChainMap)  # containers whose code is not observed where C code loops
_UNROLLED = 8  # below this many items, one comparison each is faster than map()


class Contents:
    """Reads whole values, each once, and once more if it turned out later to exist outside the trace."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self._shallow: dict[int, tuple[Any, bool]] = {}  # and whether it was known to be external
        self._levels: dict[tuple[int, ...], tuple[tuple[Any, ...], tuple[int, ...], list[Any]]] = {}
        self._deep: dict[tuple[int, bool, bool], tuple[Any, bool]] = {}

    def items(self, value: Any, origin: Origin) -> None:
        """All items of a container, as a loop over it reads them; the elements of an array."""
        known = self.reads.path_of(value) is not None
        if self._shallow.get(id(value), (None, not known))[1] == known:
            return
        self._shallow[id(value)] = value, known
        for part, path in self._items(value, origin):
            if self.reads.path_of(value) is not None:
                self.reads.external(part, path, origin)

    def everything(
        self, value: Any, origin: Origin, *, attributes: bool = False, operands: bool = False
    ) -> None:
        """All that C code may read of ``value``.

        With ``attributes``, of objects too; with ``operands``, arrays go to jitgrad, which makes
        them inputs of the program.
        """
        pending = [value]
        while pending:
            value = pending.pop()
            known = self.reads.path_of(value) is not None
            key = (id(value), attributes, operands)
            if isinstance(value, PLAIN) or self._deep.get(key, (None, not known))[1] == known:
                continue
            self._deep[key] = value, known
            if operands and isinstance(value, np.ndarray):
                self.operand(value)
                continue
            parts = list(self._items(value, origin))
            if attributes or is_read_unseen(type(value)) or isinstance(value, _IN_PYTHON):
                parts.extend(self._attributes(value, origin))
            for part, path in parts:
                if self.reads.path_of(value) is not None:
                    self.reads.external(part, path, origin)
                pending.append(part)

    def levels(self, sources: tuple[Any, ...], depth: int, origin: Callable[[], Origin]) -> list[Any]:
        """The values ``depth`` containers deep in ``sources``; the containers are read, arrays as well."""
        state = self.reads.external_count(), *[len(plain_items(source)) if is_container(source) else 0 for source in sources]
        known = self._levels.get((*map(id, sources), depth))
        if known is not None and known[1] == state:
            return known[2]
        values, line = list(sources), origin()
        for _ in range(depth):
            values = [part for value in values for part in self._level(value, line)]
        self._levels[(*map(id, sources), depth)] = sources, state, values
        return values

    def _level(self, value: Any, origin: Origin) -> Iterator[Any]:
        """The items of one value, read."""
        if isinstance(value, Parts):
            for part in value.values:
                yield from self.levels(part.sources, part.depth, lambda: origin) if isinstance(part, PartOf) else (part,)
        elif is_container(value):
            self.items(value, origin)
            if isinstance(value, dict):
                yield from plain_items(value).values()
            yield from (part for part in plain_items(value) if not isinstance(part, PLAIN))
        elif isinstance(value, np.ndarray):
            self.items(value, origin)

    def length(self, value: Any, origin: Origin) -> None:
        """The number of items, or whether there are any."""
        path = self.reads.path_of(value)
        if path is None or isinstance(value, tuple | frozenset):
            return
        if is_container(value):
            self.reads.check("length", value, None, len(plain_items(value)), path, origin)
        else:
            self.items(value, origin)

    # --- the parts of a value ---------------------------------------------------------------------

    def _items(self, value: Any, origin: Origin) -> Iterator[tuple[Any, Path]]:
        path = self.reads.path_of(value)
        if is_container(value) or isinstance(value, MappingProxyType):
            yield from self._container(value, path, origin)
        elif isinstance(value, np.ndarray):
            self.elements(value)
        elif path is None:
            return
        elif isinstance(value, bytearray | array.array | memoryview):
            self.reads.check("bytes", value, None, bytes(value), path, origin)
        elif isinstance(value, ContextVar):
            self.reads.read("context", value, None, value.get(MISSING), Path(path.label, f"{path.text}.get()"), origin)
            yield value.get(MISSING), Path(path.label, f"{path.text}.get()")
        elif isinstance(value, weakref.ref):
            referent, called = value(), Path(path.label, f"{path.text}()")
            self.reads.check("referent", value, None, referent is not None, called, origin)
            self.reads.referents.add(id(referent))
            yield referent, called
        elif isinstance(value, WEAK_CONTAINERS):
            yield value.data, path.attr("data")
        elif isinstance(value, MethodType):
            yield value.__self__, path
        elif isinstance(value, weakref.ProxyTypes):
            self.reads.error(origin, f"{path} is a weakref.proxy, and @jit does not see what its operators read: use the object "
                             "itself, or call a weakref.ref for it")  # fmt: skip
        elif is_consumed_by_reading(value):
            self.reads.error(origin, f"{path} is {type(value).__name__}, which reading uses up: @jit would take from it "
                             "only while tracing; take from it outside and pass the item as an argument", stop=True)  # fmt: skip
        elif is_native(type(value)):
            self.reads.foreign(value, origin)

    def _container(self, value: Any, path: Path | None, origin: Origin) -> Iterator[tuple[Any, Path]]:
        mapping = isinstance(value, dict | MappingProxyType)
        items = plain_items(value)
        parts = tuple(items.values()) if mapping else tuple(items)
        keys = tuple(items) if mapping else ()
        if path is None:  # made by the trace; it may hold external values
            yield from ((part, Path("", "")) for part in (*keys, *parts)[:MAX_ITEMS])
            return
        if len(parts) > MAX_ITEMS and not isinstance(value, tuple | frozenset):
            self.reads.error(origin, f"{path} has {len(parts)} items, too many to compare on every call (at most "
                             f"{MAX_ITEMS}): pass what you need of it as an argument")  # fmt: skip
            return
        if mapping:
            self._guard_mapping(value, keys, parts, path, origin)
        elif isinstance(value, list) and (len(parts) <= _UNROLLED or self.reads.writes_of(value)):
            self.reads.check("length", value, None, len(parts), path, origin)
            for k, part in enumerate(parts):
                self.reads.check("item", value, k, part, path.item(k), origin)
        elif not isinstance(value, tuple | frozenset):
            self.reads.check("items", value, None, parts, path, origin)
        fields = getattr(value, "_fields", ()) if isinstance(value, tuple) else keys
        if self.reads.written(value, MISSING):
            return
        for k, part in enumerate(parts):
            named = isinstance(value, tuple) and k < len(fields)
            yield part, path.attr(fields[k]) if named else path.item(fields[k] if mapping else k)
        yield from ((key, Path(path.label, f"list({path.text})[{k}]")) for k, key in enumerate(keys))

    def _guard_mapping(self, value: Any, keys: Any, parts: Any, path: Path, origin: Origin) -> None:
        if keys:
            self.reads.check("keys", value, None, keys, path, origin)
        else:
            self.reads.check("length", value, None, 0, path, origin)
        written = self.reads.writes_of(value)
        if type(value) is dict and (written or len(keys) <= _UNROLLED):  # `check` leaves out what the trace wrote
            for key, item in zip(keys, parts, strict=True):
                self.reads.check("item", value, key, item, path.item(key), origin)
        else:
            self.reads.check("values", value, keys, parts, path, origin)

    def elements(self, value: np.ndarray[Any, Any]) -> None:
        """Python code read the elements of an array, which are then compared on every call."""
        if (read := self.reads.arrays.get(id(value))) is not None:
            read.compare()
        else:
            self.reads.view(value)

    def operand(self, value: np.ndarray[Any, Any]) -> None:
        """An array is an operand of what may be an op of the program."""
        if (read := self.reads.arrays.get(id(value))) is not None:
            read.used = True

    def _attributes(self, value: Any, origin: Origin) -> Iterator[tuple[Any, Path]]:
        """All attributes of an object, as library code may read them."""
        path, cls = self.reads.path_of(value), type(value)
        if path is None or isinstance(value, ModuleType | FunctionType | type | enum.Enum | Tensor):
            return
        if is_jitgrad_class(cls) and not reads_everything(cls):
            return
        storage = instance_dict(value)
        if storage is not None:
            self.reads.check("length", storage, None, len(storage), path.attr("__dict__"), origin)
        for name, part in (*(storage or {}).items(), *slots_of(value).items()):
            if name in getattr(cls, "_unguarded", ()) or (storage is not None and self.reads.written(storage, name)):
                continue
            if storage is not None and name in storage and not name.isidentifier():
                self.reads.check("item", storage, name, part, path.attr(name), origin)
            else:
                self.reads.check("attribute", value, name, part, path.attr(name), origin)
            yield part, path.attr(name)
