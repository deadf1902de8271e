"""Copies, for each call, of the objects that a @jit function makes and returns.

Eager execution makes a new set, array or object on every call. A compiled call copies those of the
trace, which nobody else holds.
"""

from __future__ import annotations

import enum
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import is_
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any
from weakref import ProxyTypes, ReferenceType

import numpy as np

from jitgrad.core.errors import UnguardableError
from jitgrad.core.tensor import Tensor
from jitgrad.guards.array_reads import owner_of
from jitgrad.guards.denylist import is_python_class
from jitgrad.guards.guard import cell_contents
from jitgrad.guards.object_state import MISSING, instance_dict
from jitgrad.guards.reads import PLAIN

_SHARED = (*PLAIN, enum.Enum, type, ModuleType, BuiltinFunctionType, Tensor)
_VIEWS: tuple[type, ...] = (memoryview, ReferenceType, *ProxyTypes, MappingProxyType)  # hashable, and yet of other objects
_REMEDY = (
    "make it outside of the function, or return its parts in a tuple, list or dict, and make it of them after the call"
)


class NotCopiedError(Exception):
    """A call cannot copy this object, of which the arguments are the path and the class."""


class MadeObjects:
    """The objects that a function makes and returns: each call has copies of its own.

    Objects that two of them hold are one in the copies as well. What existed before the trace, for
    which ``is_outside`` is true, and what never changes, is not copied.
    """

    def __init__(self, name: str, is_outside: Callable[[Any], bool]) -> None:
        self._name = name
        self._is_outside: Callable[[Any], bool] | None = is_outside
        self._objects: list[Any] = []
        self._shared: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, x: Any) -> int | None:
        """The position of ``x`` among the copies; None for an object that all calls may share.

        Raises:
            UnguardableError: it cannot be copied faithfully.
        """
        copier = Copier(self._shared, self._is_outside)
        try:
            copy = copier.copy(x, "")
        except NotCopiedError as error:
            path, cls = error.args
            what = f"whose {path} is an instance of {cls.__name__}," if path else "which it makes and"
            raise UnguardableError(
                f"@jit function {self._name!r} returns an instance of {type(x).__name__}, {what} of which later calls cannot "
                f"make a copy, while eager execution makes another one on every call: {_REMEDY}"
            ) from None
        except RecursionError:
            raise UnguardableError(
                f"@jit function {self._name!r} returns an instance of {type(x).__name__} that is nested too deep to be copied "
                f"on each call, while eager execution makes another one: {_REMEDY}"
            ) from None
        if copy is x:
            return None
        self._objects.append(x)
        return len(self._objects) - 1

    def complete(self) -> MadeObjects:
        """These, after the last `add`: what the trace has read may go."""
        self._is_outside = None
        return self

    def copies(self) -> list[Any]:
        """A copy of each, for one call."""
        copier = Copier(self._shared)
        return [copier.copy(x, "") for x in self._objects]


class Copier:
    """Copies objects with all they hold, each once, and runs no code of their classes but hashes of keys.

    With ``is_outside`` it finds what need not be copied, and notes it in ``shared``, by id.
    """

    def __init__(self, shared: dict[int, Any], is_outside: Callable[[Any], bool] | None = None) -> None:
        self._shared = shared
        self._is_outside = is_outside
        self._copied: dict[int, Any] = {}
        self._owners: dict[int, Any] = {}  # the array that shows the memory of each

    def copy(self, x: Any, path: str) -> Any:
        """``x`` itself where it is shared, else a copy. Raises NotCopiedError with the path to what has none."""
        if (isinstance(x, PLAIN) and type(x).__dictoffset__ == 0) or id(x) in self._shared:
            return x
        if id(x) in self._copied:
            return self._copied[id(x)]
        base = _layout(type(x))
        if self._is_outside is not None and (self._is_outside(x) or _never_changes(x, base)):
            self._shared[id(x)] = x
            return x
        if (copied_by := _COPIED_BY.get(base)) is None:
            raise NotCopiedError(path, type(x))
        new = copied_by(self, x, base, path)
        self.note(x, new)
        if base not in _WITHOUT_ATTRIBUTES:
            self._copy_attributes(x, new, path)
        return new

    def note(self, x: Any, new: Any) -> None:
        """``new`` is the copy of ``x``, also for what ``x`` holds itself."""
        self._copied[id(x)] = new

    def note_memory(self, x: np.ndarray[Any, Any], path: str) -> None:
        """The copy of the array ``x`` shares no memory: another one, or one outside, must not show it."""
        owner = owner_of(x)
        outside = self._is_outside is not None and self._is_outside(owner)
        if outside or self._owners.setdefault(id(owner), x) is not x:
            raise NotCopiedError(path, type(x))

    def _copy_attributes(self, x: Any, new: Any, path: str) -> None:
        if attributes := instance_dict(x):
            copied = instance_dict(new)
            assert copied is not None
            copied.update({name: self.copy(part, f"{path}.{name}") for name, part in attributes.items()})
        for cls in filter(is_python_class, type(x).__mro__):
            for name, member in vars(cls).items():
                if isinstance(member, MemberDescriptorType):
                    with suppress(AttributeError):  # it is not set
                        member.__set__(new, self.copy(member.__get__(x, type(x)), f"{path}.{name}"))


def _layout(cls: type) -> type:
    """The class of C code whose data the instances of ``cls`` hold."""
    while is_python_class(cls):
        assert cls.__base__ is not None
        cls = cls.__base__
    return cls


def _never_changes(x: Any, base: type) -> bool:
    """Whether ``x`` is an object of C code that is equal to others by its value, such as a date or a pattern."""
    if isinstance(x, _SHARED):
        return True
    hashed: Any = base.__hash__
    by_value = hashed is not None and hashed is not object.__hash__
    return by_value and base not in _COPIED_BY and not issubclass(base, _VIEWS) and type(x).__dictoffset__ == 0


# --- one function for each layout: the copy, without its attributes -----------------------------------


def _object(copier: Copier, x: Any, base: Any, path: str) -> Any:
    return base.__new__(type(x))


def _list(copier: Copier, x: Any, base: Any, path: str) -> Any:
    new = list.__new__(type(x))
    copier.note(x, new)
    for k, part in enumerate(list.__iter__(x)):
        list.append(new, copier.copy(part, f"{path}[{k}]"))
    return new


def _tuple(copier: Copier, x: Any, base: Any, path: str) -> Any:
    """A tuple or frozenset of what is shared is shared itself, as constants of the code are."""
    parts = [copier.copy(part, f"{path}[{k}]") for k, part in enumerate(base.__iter__(x))]
    if type(x) is base and all(map(is_, parts, base.__iter__(x))):
        return x
    return base.__new__(type(x), parts)


def _dict(copier: Copier, x: Any, base: Any, path: str) -> Any:
    new = base.__new__(type(x))
    copier.note(x, new)
    if base is defaultdict:
        defaultdict.__init__(new, copier.copy(_DEFAULT_FACTORY.__get__(x), f"{path}.default_factory"))
    for key in base.__iter__(x):
        step = f"[{key!r}]" if isinstance(key, PLAIN) else f"[{type(key).__name__}]"
        part = copier.copy(dict.__getitem__(x, key), path + step)
        base.__setitem__(new, copier.copy(key, f"{path} key {step}"), part)
    return new


def _set(copier: Copier, x: Any, base: Any, path: str) -> Any:
    new = set.__new__(type(x))
    copier.note(x, new)
    parts = [copier.copy(part, f"{path} item") for part in set.__iter__(x)]
    set.update(new, x if all(map(is_, parts, set.__iter__(x))) else parts)  # of a set: in the same order, mostly
    return new


def _deque(copier: Copier, x: Any, base: Any, path: str) -> Any:
    new = deque.__new__(type(x))
    deque.__init__(new, (), _MAXLEN.__get__(x))
    copier.note(x, new)
    for k, part in enumerate(deque.__iter__(x)):
        deque.append(new, copier.copy(part, f"{path}[{k}]"))
    return new


def _bytearray(copier: Copier, x: Any, base: Any, path: str) -> Any:
    new = bytearray.__new__(type(x))
    bytearray.__iadd__(new, bytearray.__getitem__(x, slice(None)))
    return new


def _array(copier: Copier, x: Any, base: Any, path: str) -> Any:
    return array.__new__(type(x), x.typecode, array.tobytes(x))


def _ndarray(copier: Copier, x: Any, base: Any, path: str) -> Any:
    """Of arrays that own their memory, or have it from one array that nothing else shows."""
    if type(x) is not np.ndarray or x.dtype.hasobject:
        raise NotCopiedError(path, type(x))
    copier.note_memory(x, path)
    return x.copy(order="K")


def _function(copier: Copier, x: Any, base: Any, path: str) -> Any:
    parts = x.__closure__ or ()
    closure = tuple(
        [copier.copy(cell, f"{path}, variable {name}") for name, cell in zip(x.__code__.co_freevars, parts, strict=True)]
    )
    new = FunctionType(x.__code__, x.__globals__, x.__name__, None, closure or None)
    copier.note(x, new)
    for name in ("__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__"):
        setattr(new, name, copier.copy(getattr(x, name), f"{path}.{name}"))
    return new


def _cell(copier: Copier, x: Any, base: Any, path: str) -> Any:
    new = CellType()
    copier.note(x, new)
    if (contents := cell_contents(x)) is not MISSING:
        new.cell_contents = copier.copy(contents, path)
    return new


def _method(copier: Copier, x: Any, base: Any, path: str) -> Any:
    return MethodType(copier.copy(x.__func__, f"{path}.__func__"), copier.copy(x.__self__, f"{path}.__self__"))


def _partial(copier: Copier, x: Any, base: Any, path: str) -> Any:
    args = [copier.copy(part, f"{path}.args[{k}]") for k, part in enumerate(x.args)]
    keywords = {name: copier.copy(part, f"{path}.keywords[{name!r}]") for name, part in x.keywords.items()}
    return partial.__new__(type(x), copier.copy(x.func, f"{path}.func"), *args, **keywords)


_DEFAULT_FACTORY: Any = vars(defaultdict)["default_factory"]
_MAXLEN: Any = vars(deque)["maxlen"]
_WITHOUT_ATTRIBUTES = (CellType, MethodType, np.ndarray)
_COPIED_BY: dict[type, Callable[[Copier, Any, Any, str], Any]] = {
    object: _object, SimpleNamespace: _object, list: _list, tuple: _tuple, frozenset: _tuple, set: _set,
    dict: _dict, OrderedDict: _dict, defaultdict: _dict, deque: _deque, bytearray: _bytearray, array: _array,
    np.ndarray: _ndarray, FunctionType: _function, CellType: _cell, MethodType: _method, partial: _partial,
}  # fmt: skip
