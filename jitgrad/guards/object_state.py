"""The guarded state of objects and classes: attributes that code mentions, or all."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, Protocol

import numpy as np

from jitgrad.core.origin import Origin
from jitgrad.guards.bytecode import CodeFacts
from jitgrad.guards.guard import MISSING, NOWHERE, Check, Path, behaves_alike

_RECORDS = (SimpleNamespace, argparse.Namespace)
_COMPARISONS = frozenset(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"])
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
_NOT_CALLED = frozenset(  # by a traced function on an object that exists already
    [
        "__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__", "__del__", "__repr__",
        "__str__", "__format__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
        "__getnewargs__", "__copy__", "__deepcopy__", "__sizeof__", "__dir__", "__set_name__",
        "__subclasshook__", "__instancecheck__", "__subclasscheck__", "__replace__",
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArrayState:
    """A NumPy array that the function may read."""

    array: np.ndarray[Any, Any]
    path: Path
    origin: Origin


@dataclass(slots=True)
class MentionedNames:
    """The attribute names that reachable code mentions, with the first line of each."""

    loads: dict[str, Origin] = field(default_factory=dict)
    stores: dict[str, Origin] = field(default_factory=dict)
    probes: dict[str, Origin] = field(default_factory=dict)
    introspects: bool = False
    compares: bool = False

    def add(self, facts: CodeFacts, file: str) -> None:
        for mine, theirs in ((self.loads, facts.loads), (self.stores, facts.stores), (self.probes, facts.probes)):
            for name, line in theirs.items():
                mine.setdefault(name, Origin(file, line))
        self.introspects |= facts.introspects
        self.compares |= facts.compares


class ObjectVisitor(Protocol):
    """The part of `jitgrad.guards.discovery.Discovery` that opened objects use."""

    names: MentionedNames

    def check(self, check: Check) -> None: ...
    def read(self, check: Check, mentioned: bool = True) -> None: ...
    def is_user_class(self, cls: type) -> bool: ...


def reads_everything(cls: type) -> bool:
    """Whether library code may read any attribute of an instance: Module, UserDict, ...

    A class lists in ``_unguarded`` the attributes whose values it makes inputs of compiled
    programs.
    """
    libraries = ("jitgrad.nn", "jitgrad.optim", "jitgrad.ops.random", "collections")
    return any(base.__module__.startswith(libraries) and "__dict__" in base.__dict__ for base in cls.__mro__)


def instance_dict(value: Any) -> dict[str, Any] | None:
    """The dict of the attributes of ``value``, without running the user's ``__getattribute__``."""
    if isinstance(value, threading.local):
        return value.__dict__
    try:
        storage = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return storage if isinstance(storage, dict) else None


def slots_of(value: Any) -> dict[str, Any]:
    """The slots of ``value`` that are set."""
    values: dict[str, Any] = {}
    for base in type(value).__mro__:
        for name, member in base.__dict__.items():
            if isinstance(member, MemberDescriptorType) and name not in values and name != "__dict__":
                try:
                    values[name] = member.__get__(value, type(value))
                except AttributeError:
                    continue
    return values


def lookup(cls: type, name: str) -> Any:
    """The raw class attribute, descriptors not applied; MISSING if there is none."""
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), MISSING)


def differing(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The names whose values differ between ``before`` and ``now``, with both values."""
    for name in {**before, **now}:
        old, new = before.get(name, MISSING), now.get(name, MISSING)
        if old is not new and not behaves_alike(new, old):
            yield name, old, new


@dataclass(slots=True)
class OpenObject:
    """An object whose attributes are guarded by name, with their values before tracing."""

    value: Any
    path: Path
    origin: Origin
    mentioned: bool
    before: dict[str, Any] = field(init=False)
    slots: dict[str, Any] = field(init=False)
    _done: dict[str, bool] = field(default_factory=dict)
    _whole: bool = False

    def __post_init__(self) -> None:
        self.before = dict(instance_dict(self.value) or {})
        self.slots = slots_of(self.value)

    def expand(self, walk: ObjectVisitor) -> None:
        """Guard the attributes that were mentioned since the last call."""
        if not self._whole and self._may_read_all(walk):
            self._whole = True
            self._read_all(walk)
        for name, origin in tuple(walk.names.loads.items()):
            if self._done.get(name) in (True, self.mentioned):
                continue
            self._done[name] = self.mentioned
            self._read(walk, name, origin)

    def differences(self, walk: ObjectVisitor) -> Iterator[tuple[str, Any, Any]]:
        """Changed attributes (name, old, new); of a library's object only named ones."""
        whole = reads_everything(type(self.value)) or isinstance(self.value, (ModuleType, FunctionType, *_RECORDS))
        for name, old, new in differing({**self.before, **self.slots}, self.now()):
            named = name in walk.names.loads or name in walk.names.stores
            if whole or named or walk.is_user_class(type(self.value)):
                yield name, old, new

    def now(self) -> dict[str, Any]:
        return {**(instance_dict(self.value) or {}), **slots_of(self.value)}

    def restore(self, walk: ObjectVisitor) -> None:
        """Restore the changed attributes."""
        storage = instance_dict(self.value)
        for name, old, _new in tuple(self.differences(walk)):
            in_slot = storage is None or name in self.slots or name not in {**storage, **self.before}
            if in_slot and old is MISSING:
                object.__delattr__(self.value, name)
            elif in_slot:
                object.__setattr__(self.value, name, old)
            elif storage is not None and old is MISSING:
                del storage[name]
            elif storage is not None:
                storage[name] = old

    def _may_read_all(self, walk: ObjectVisitor) -> bool:
        if isinstance(self.value, ModuleType | FunctionType):
            return False
        return walk.names.introspects or reads_everything(type(self.value))

    def _read_all(self, walk: ObjectVisitor) -> None:
        storage = instance_dict(self.value)
        if storage is not None and not isinstance(self.value, threading.local):
            self._check_length(walk, storage)
        for name, value in (*(storage or {}).items(), *self.slots.items()):
            called = isinstance(value, dict | list | tuple | FunctionType) or reads_everything(type(value))
            self._guard(walk, name, value, self.origin, self.mentioned and (walk.names.introspects or called))

    def _check_length(self, walk: ObjectVisitor, storage: dict[str, Any]) -> None:
        path = self.path.attr("__dict__")
        walk.check(Check("length", storage, None, len(storage), path, self.origin))

    def _read(self, walk: ObjectVisitor, name: str, origin: Origin) -> None:
        storage = instance_dict(self.value)
        if storage is not None and name in storage:
            self._guard(walk, name, storage[name], origin, self.mentioned)
        elif name in self.slots:
            self._guard(walk, name, self.slots[name], origin, self.mentioned)
        elif isinstance(self.value, ModuleType):
            return
        elif isinstance(lookup(type(self.value), name), MemberDescriptorType):
            walk.check(Check("unset", self.value, name, MISSING, self.path.attr(name), origin))
        elif isinstance(self.value, threading.local) or storage is None or self._whole:
            return  # with _whole, the number of attributes is guarded
        elif name in walk.names.probes or lookup(type(self.value), name) is not MISSING:
            walk.check(Check("absent", storage, name, MISSING, self.path.attr(name), origin))

    def _guard(self, walk: ObjectVisitor, name: str, value: Any, origin: Origin, mentioned: bool) -> None:
        cls = type(self.value)
        if name in getattr(cls, "_unguarded", ()):
            return
        storage = instance_dict(self.value)
        by_attribute = storage is None or (
            name.isidentifier()
            and (lookup(cls, "__getattribute__") is object.__getattribute__ or isinstance(self.value, threading.local))
            and (name in self.slots or not hasattr(type(lookup(cls, name)), "__set__"))
        )
        path = self.path.attr(name)
        if by_attribute:
            walk.read(Check("attribute", self.value, name, value, path, origin), mentioned)
        else:
            walk.read(Check("item", storage, name, value, path, origin), mentioned)


@dataclass(slots=True)
class OpenClass:
    """A class with user code or attributes, guarded by name through all its bases."""

    cls: type
    constructed: bool = False
    before: dict[str, Any] = field(init=False)
    _done: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.before = dict(self.cls.__dict__)

    def expand(self, walk: ObjectVisitor) -> None:
        """Guard newly mentioned class attributes, and methods that Python calls implicitly."""
        wanted = [*walk.names.loads, *self._implicit(walk)]
        if self.constructed:
            wanted.extend(_CONSTRUCTORS)
        for name in wanted:
            if name not in self._done:
                self._done.add(name)
                self._read(walk, name, walk.names.loads.get(name, NOWHERE))

    def differences(self) -> Iterator[tuple[str, Any, Any]]:
        """Changed class attributes: name, old and new value."""
        return (item for item in differing(self.before, dict(self.cls.__dict__)) if not item[0].startswith("_abc_"))

    def restore(self) -> None:
        """Restore the changed attributes."""
        for name, old, _new in tuple(self.differences()):
            if old is MISSING:
                delattr(self.cls, name)
            else:
                setattr(self.cls, name, old)

    def _implicit(self, walk: ObjectVisitor) -> list[str]:
        """Special methods, and overridden methods of a library's class, which the library calls."""
        names: list[str] = []
        bases = [base for base in self.cls.__mro__ if base is not object]
        library = [base for base in bases if not walk.is_user_class(base)]
        for base in bases:
            if base in library:
                continue
            for name, raw in base.__dict__.items():
                if name.startswith("__") and name.endswith("__"):
                    wanted = name not in _NOT_CALLED and (walk.names.compares or name not in _COMPARISONS)
                    wanted = wanted and isinstance(raw, FunctionType)
                else:
                    wanted = walk.names.introspects or any(name in parent.__dict__ for parent in library)
                if wanted:
                    names.append(name)
        return names

    def _read(self, walk: ObjectVisitor, name: str, origin: Origin) -> None:
        first = True
        for base in self.cls.__mro__:
            if name not in base.__dict__:
                continue
            if walk.is_user_class(base):
                self._guard(walk, base, self.cls if first else base, name, origin)
            first = False
        if first and name in walk.names.probes:
            path = Path("class attribute", f"{title(self.cls)}.{name}")
            walk.check(Check("unset", self.cls, name, MISSING, path, origin))

    def _guard(self, walk: ObjectVisitor, base: type, holder: type, name: str, origin: Origin) -> None:
        raw = base.__dict__[name]
        path = Path("class attribute", f"{title(base)}.{name}")
        runs_code = hasattr(type(raw), "__get__") and not isinstance(raw, FunctionType | property | cached_property)
        if not runs_code and getattr(holder, name, MISSING) is raw:
            walk.read(Check("attribute", holder, name, raw, path, origin))
        else:
            walk.read(Check("item", base.__dict__, name, raw, path, origin))


def title(named: Any) -> str:
    """The qualified name without its outer functions."""
    return str(named.__qualname__).rpartition("<locals>.")[2]
