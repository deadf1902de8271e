"""Attribute reads as Python makes them, without running the user's code, and their guards."""

from __future__ import annotations

import builtins
import enum
import os
import threading
import weakref
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.array_classes import class_was_asked, number_behind
from jitgrad.guards.class_attributes import (
    guard_bases,
    guard_class_attribute,
    guard_class_lacks,
    guard_place_of_attribute,
)
from jitgrad.guards.denylist import ENVIRONMENT, is_jitgrad_class, is_native
from jitgrad.guards.guard import IMMUTABLE, AttributesPath, Path, behaves_alike
from jitgrad.guards.object_state import MISSING, instance_dict, is_heap_type, lookup, reads_everything, title
from jitgrad.guards.observed_files import is_standard_library
from jitgrad.guards.part_of import PartOf
from jitgrad.guards.reads import Reads
from jitgrad.guards.watched_module import REPLACED, watch_module

_OF_C = (GetSetDescriptorType, MemberDescriptorType)
_VIEWS_OF_ARRAYS = frozenset(["T", "mT", "real", "imag"])
_MEMORY_OF_ARRAYS = frozenset(["flat", "data", "base", "ctypes", "__array_interface__", "__array_struct__"])


class _Marker(enum.Enum):
    UNKNOWN = "a value that only Python knows"
    NULL = "the place of a missing self"


UNKNOWN = _Marker.UNKNOWN
NULL = _Marker.NULL


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A function that was read as a method of ``receiver``."""

    function: Any
    receiver: Any


@dataclass(frozen=True, slots=True)
class MethodOfUnknown:
    """The function of a `BoundFunction` whose receiver is unknown: if that is a container, a call changes it."""

    name: str


@dataclass(frozen=True, slots=True)
class Getter:
    """The function that computes an attribute when it is read."""

    function: Any
    receiver: Any


def read_attribute(reads: Reads, value: Any, name: str, origin: Origin, *, plain: bool = False) -> Any:
    """The attribute of ``value``: itself, a `BoundFunction`, a `Getter` to run, MISSING or UNKNOWN.

    ``plain``: without the class's own ``__getattribute__``.
    """
    if isinstance(value, Tensor):
        return _tensor_attribute(reads, value, name, origin)
    if value is UNKNOWN or value is NULL:
        return UNKNOWN
    if isinstance(value, ModuleType):
        return _module_attribute(reads, value, name, origin)
    if isinstance(value, type):
        return _class_object_attribute(reads, value, name, origin)
    if isinstance(value, super):
        return _inherited(reads, value, name, origin)
    if isinstance(value, MethodType):
        if name in ("__self__", "__func__"):
            return getattr(value, name)
        value = value.__func__
    elif type(value) in weakref.ProxyTypes:
        value = _behind_proxy(reads, value)
    return _object_attribute(reads, value, name, origin, plain)


def builtin(reads: Reads, scope: dict[str, Any], name: str, origin: Origin) -> Any:
    """The global ``name`` that ``scope`` does not have: a builtin, or UNKNOWN."""
    value = vars(builtins).get(name, MISSING)
    reads.check("absent", scope, name, MISSING, Path("global", name), origin)
    reads.check("absent" if value is MISSING else "item", vars(builtins), name, value, Path("builtin", name), origin)
    return UNKNOWN if value is MISSING else value


def _tensor_attribute(reads: Reads, tensor: Tensor, name: str, origin: Origin) -> Any:
    """Shapes are known; of methods it is guarded that nobody replaces them."""
    if name == "__class__" or (number := number_behind(tensor)) is not None and not hasattr(number, name):
        class_was_asked(tensor)
    if name in ("shape", "dtype", "ndim"):
        return getattr(tensor, name)
    cls = type(tensor)
    method = lookup(cls, name)
    if isinstance(method, FunctionType):
        reads.check("attribute", cls, name, method, Path("", f"{title(cls)}.{name}"), origin)
    return UNKNOWN


def _behind_proxy(reads: Reads, proxy: Any) -> Any:
    """The object of a weakref.proxy, which hands all attributes on; the guard does not keep it alive."""
    try:
        referent = proxy.__init__.__self__
    except (AttributeError, ReferenceError):
        return proxy
    if (path := reads.path_of(proxy)) is not None:
        reads.referents.add(id(referent))
        reads.external(referent, path)
    return referent


def _module_attribute(reads: Reads, module: ModuleType, name: str, origin: Origin) -> Any:
    value = module.__dict__.get(name, MISSING)
    base = reads.path_of(module) or Path("module", module.__name__)
    if value is os.environ:
        reads.error(origin, f"{base.attr(name)} cannot be guarded: it may give something else on every call; {ENVIRONMENT}")
    if name == "__dict__" and reads.path_of(module) is not None:
        reads.external(module.__dict__, AttributesPath(base.label, base.text), origin)
        return module.__dict__
    if module.__name__.partition(".")[0] != "jitgrad":
        if value is not MISSING:
            reads.read("item", module.__dict__, name, value, base.attr(name), origin)
        else:
            reads.check("absent", module.__dict__, name, MISSING, base.attr(name), origin)
            fallback = module.__dict__.get("__getattr__")
            if isinstance(fallback, FunctionType):
                reads.read("item", module.__dict__, "__getattr__", fallback, base.attr("__getattr__"), origin)
                return Getter(fallback, module)
    else:
        watch_module(module)
        reads.check("item", REPLACED, 0, REPLACED[0], Path("", "a function of jitgrad"), origin)
    return UNKNOWN if value is MISSING else value


def _class_object_attribute(reads: Reads, cls: type, name: str, origin: Origin) -> Any:
    of_meta = lookup(type(cls), name)
    if isinstance(of_meta, property):
        guard_class_attribute(reads, type(cls), name, origin)
        return Getter(of_meta.fget, cls)
    if name == "__dict__":
        return cls.__dict__
    if name in ("__mro__", "__bases__"):
        guard_bases(reads, cls, name, origin)
    raw = guard_class_attribute(reads, cls, name, origin)
    if issubclass(cls, enum.Enum) and name in cls._member_map_:
        return cls._member_map_[name]
    if raw is MISSING:
        raw = guard_class_attribute(reads, type(cls), name, origin)
        if raw is MISSING:
            fallback = _fallback(reads, cls, name, origin)
            return fallback if fallback is not MISSING else UNKNOWN
        if isinstance(raw, GetSetDescriptorType) and is_heap_type(cls) and not is_jitgrad_class(cls):
            return _stored_by_c(reads, cls, name, Path("", title(cls)), origin)
        return _class_value(reads, raw, cls, type(cls), origin)
    return _class_value(reads, raw, None, cls, origin)


def _super_parts(proxy: Any) -> tuple[Any, type]:
    return proxy.__self__, proxy.__thisclass__


def _inherited(reads: Reads, proxy: super, name: str, origin: Origin) -> Any:
    """An attribute of ``super()``."""
    receiver, this_class = _super_parts(proxy)
    in_class = isinstance(receiver, type) and issubclass(receiver, this_class)  # else a method of its metaclass
    mro = (receiver if in_class else type(receiver)).__mro__
    after = mro[mro.index(this_class) + 1 :]
    owner = next((base for base in after if name in base.__dict__), None)
    for base in after[: None if owner is None else after.index(owner)]:
        guard_class_lacks(reads, base, name, origin)
    if owner is None:
        return UNKNOWN
    raw = guard_class_attribute(reads, owner, name, origin)
    return _class_value(reads, raw, receiver, owner, origin)


def _object_attribute(reads: Reads, value: Any, name: str, origin: Origin, plain: bool) -> Any:
    cls = type(value)
    own_getattribute = lookup(cls, "__getattribute__")
    path = reads.path_of(value)
    if isinstance(value, np.ndarray) and (view := _array_attribute(reads, value, name, origin)) is not UNKNOWN:
        return view
    if isinstance(own_getattribute, FunctionType) and not plain:
        guard_class_attribute(reads, cls, "__getattribute__", origin)
        return Getter(own_getattribute, value)
    if path is not None:
        _guard_class(reads, value, path, origin)
    if isinstance(value, enum.Enum) and name in ("value", "name") and lookup(cls, name) is lookup(enum.Enum, name):
        name = f"_{name}_"
    raw, storage = lookup(cls, name), instance_dict(value)
    if isinstance(raw, property):
        return _property(reads, value, raw, name, path, origin)
    if isinstance(raw, MemberDescriptorType) and raw.__objclass__ in cls.__mro__:
        return _slot(reads, value, raw, name, path, origin)
    if isinstance(value, tuple) and name in getattr(cls, "_fields", ()):
        return _field(reads, value, name, path, origin)
    if hasattr(type(raw), "__set__"):  # another data descriptor: its code runs, or C code
        guard_class_attribute(reads, cls, name, origin)
        return _data_descriptor(reads, value, raw, name, path, origin)
    if storage is not None and name in storage:
        if path is not None and name not in getattr(cls, "_unguarded", ()):
            _guard_stored(reads, value, storage, name, path, origin)
        return storage[name]
    filled = isinstance(raw, cached_property)
    if path is not None and storage is not None:
        kind = "absent" if raw is MISSING or raw is None or filled else "hides"
        if isinstance(value, threading.local):
            reads.check(f"{kind} here", value, name, MISSING, path.attr(name), origin)
        else:
            reads.check(kind, storage, name, MISSING, path.attr(name), origin)
        if filled:  # by its own code, which is not followed
            reads.write("item", storage, name, MISSING, path.attr(name), origin, "[]=")
    guard_class_attribute(reads, cls, name, origin)
    if raw is MISSING:
        return _fallback(reads, value, name, origin)
    return _class_value(reads, raw, value, cls, origin)


def _property(reads: Reads, value: Any, raw: property, name: str, path: Path | None, origin: Origin) -> Getter:
    """The code of a property; that of Python's library may not be observed."""
    guard_class_attribute(reads, type(value), name, origin)
    if path is not None and is_standard_library(getattr(getattr(raw.fget, "__code__", None), "co_filename", "")):
        _guard_answer(reads, value, name, path, origin)
    return Getter(raw.fget, value)


def _data_descriptor(reads: Reads, value: Any, raw: Any, name: str, path: Path | None, origin: Origin) -> Any:
    """What a descriptor of C code gives, such as the arguments of an exception; one of Python code runs it."""
    if name == "__dict__" and (storage := instance_dict(value)) is not None and path is not None:
        reads.external(storage, AttributesPath(path.label, path.text), origin)
    if name in ("__dict__", "__class__"):
        return instance_dict(value) if name == "__dict__" else type(value)
    if isinstance(guard_class_attribute(reads, type(raw), "__get__", origin), FunctionType):
        return UNKNOWN
    if is_native(type(value)):
        reads.foreign(value, origin)
    elif path is not None and isinstance(raw, _OF_C) and not isinstance(value, np.ndarray):
        return _stored_by_c(reads, value, name, path, origin)
    return UNKNOWN


def _stored_by_c(reads: Reads, value: Any, name: str, path: Path, origin: Origin) -> Any:
    """An attribute that C code stores, and gives again if it is read again."""
    try:
        stored, again = getattr(value, name), getattr(value, name)
    except Exception:  # the user's code will see it
        return UNKNOWN
    if not behaves_alike(again, stored):
        return UNKNOWN
    reads.read("attribute", value, name, stored, path.attr(name), origin)
    return stored


def _guard_answer(reads: Reads, value: Any, name: str, path: Path, origin: Origin) -> None:
    """What a property gives, if it is a number, a text or the like."""
    try:
        answer = getattr(value, name)
    except Exception:  # the user's code will see it
        return
    if isinstance(answer, IMMUTABLE):
        reads.check("attribute", value, name, answer, path.attr(name), origin)


def _array_attribute(reads: Reads, array: Any, name: str, origin: Origin) -> Any:
    """An attribute of a NumPy array: a view of it, or UNKNOWN. Guards compare elements and layout."""
    read = reads.arrays.get(id(array))
    if read is not None and name in _VIEWS_OF_ARRAYS:
        read.keep()
        return PartOf((array,), 0)
    if read is not None and name == "flags":
        reads.check("flags", array, None, array.flags.num, read.path.attr(name), origin)
    elif read is not None and (
        name in _MEMORY_OF_ARRAYS or isinstance(lookup(type(array), "__getattribute__"), FunctionType)
    ):
        read.compare()  # by its memory, or a record, whose fields are attributes
    return UNKNOWN


def _field(reads: Reads, value: Any, name: str, path: Path | None, origin: Origin) -> Any:
    """A field of a named tuple."""
    guard_class_attribute(reads, type(value), name, origin)
    item = value[type(value)._fields.index(name)]
    if path is not None:
        reads.external(item, path.attr(name), origin)
    return item


def _guard_class(reads: Reads, value: Any, path: Path, origin: Origin) -> None:
    cls = type(value)
    if is_jitgrad_class(cls) and not reads_everything(cls):  # layers get other classes, as when they are adapted
        return
    if is_heap_type(cls) and not is_native(cls) and not isinstance(value, FunctionType):
        reads.check("class", value, None, cls, path.attr("__class__"), origin)


def _guard_stored(reads: Reads, value: Any, storage: dict[str, Any], name: str, path: Path, origin: Origin) -> None:
    cls = type(value)
    if name.isidentifier() and (
        lookup(cls, "__getattribute__") is object.__getattribute__ or isinstance(value, threading.local)
    ):
        if reads.written(storage, name):
            guard_place_of_attribute(reads, value, storage, name, path, origin)
        else:
            reads.read("attribute", value, name, storage[name], path.attr(name), origin)
    else:
        reads.read("item", storage, name, storage[name], path.attr(name), origin)


def _slot(reads: Reads, value: Any, member: Any, name: str, path: Path | None, origin: Origin) -> Any:
    try:
        stored = member.__get__(value, type(value))
    except AttributeError:
        if path is not None:
            reads.check("unset", value, name, MISSING, path.attr(name), origin)
        return _fallback(reads, value, name, origin)
    if path is not None:
        reads.read("attribute", value, name, stored, path.attr(name), origin)
    return stored


def _fallback(reads: Reads, value: Any, name: str, origin: Origin) -> Any:
    """``__getattr__``, which computes the attributes that an object or class does not have."""
    function = guard_class_attribute(reads, type(value), "__getattr__", origin)
    if function in (dict.__getitem__, dict.get) and isinstance(value, dict):  # items as attributes
        item, path = value.get(name, MISSING), reads.path_of(value)
        if path is not None and item is MISSING:
            reads.check("absent", value, name, MISSING, path.item(name), origin)
        elif path is not None:
            reads.read("item", value, name, item, path.item(name), origin)
        return item
    return Getter(function, value) if isinstance(function, FunctionType) else MISSING


def _class_value(reads: Reads, raw: Any, receiver: Any, cls: type, origin: Origin) -> Any:
    """What reading the class attribute ``raw`` of ``receiver`` gives."""
    if isinstance(raw, staticmethod):
        return raw.__func__
    if isinstance(raw, classmethod):
        owner = receiver if isinstance(receiver, type) else cls if receiver is None else type(receiver)
        return BoundFunction(raw.__func__, owner)
    if isinstance(raw, FunctionType):
        return raw if receiver is None else BoundFunction(raw, receiver)
    if isinstance(raw, property):
        return raw if receiver is None else Getter(raw.fget, receiver)
    if isinstance(raw, cached_property):
        return UNKNOWN
    getter = guard_class_attribute(reads, type(raw), "__get__", origin)
    if isinstance(getter, FunctionType):
        return Getter(getter, raw)
    try:
        return raw if getter is MISSING else raw.__get__(receiver, cls)
    except AttributeError:  # such as type.__abstractmethods__ of a class that has none
        return UNKNOWN
