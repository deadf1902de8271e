"""The stored state of objects and classes, without running the user's code."""

from __future__ import annotations

import enum
import threading
from collections.abc import Hashable
from types import MemberDescriptorType
from typing import Any

_COMPARED_BY_VALUE = (str, int, float, complex, bytes, type(None), enum.Enum)


class _Missing(enum.Enum):
    MISSING = "missing"

    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing.MISSING


def key_name(key: Any) -> Hashable:
    """What tells ``key`` from other keys of a dict: equal keys have equal names, tensors and others by identity too.

    The text of a key does not: two layers, or two tensors in a trace, may have the same.
    """
    if isinstance(key, _COMPARED_BY_VALUE):
        return key
    if type(key) is tuple:
        return tuple([key_name(part) for part in key])
    try:
        return type(key), hash(key)
    except TypeError:  # a slice or a list: no key of a dict
        return repr(key)


def is_heap_type(cls: type) -> bool:
    """Whether Python code, or C code like it, made ``cls``; the attributes of other classes cannot change."""
    return bool(cls.__flags__ & 1 << 9)


def reads_everything(cls: type) -> bool:
    """Whether library code may read any attribute of an instance: Module, UserDict, ...

    A class lists in ``_unguarded`` the attributes whose values it makes inputs of compiled
    programs, and those that only eager execution reads.
    """
    libraries = (
        "jitgrad.nn", "jitgrad.optim", "jitgrad.ops.random", "jitgrad.distributions", "jitgrad.scipy.stats",
        "jitgrad.utils", "jitgrad.amp", "collections",
    )  # fmt: skip
    return any(base.__module__.startswith(libraries) and "__dict__" in base.__dict__ for base in cls.__mro__)


def instance_dict(value: Any) -> dict[str, Any] | None:
    """The dict of the attributes of ``value``, without running the user's ``__getattribute__``."""
    try:
        if isinstance(value, threading.local):
            return value.__dict__
        storage = object.__getattribute__(value, "__dict__")
    except (AttributeError, ReferenceError):  # the object of a weakref.proxy may be gone
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


def title(named: Any) -> str:
    """The qualified name without its outer functions."""
    return str(named.__qualname__).rpartition("<locals>.")[2]
