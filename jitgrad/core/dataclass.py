"""`dataclass` of the standard library, but that a class's ``__init__`` is compiled when its first object is made.

The library compiles six functions for a frozen class, which takes fifteen times as long as the class itself, and took a
quarter of the first call of a process. Here the other five are closures.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, **options):
        """`dataclasses.dataclass` with these options, ``slots`` and ``weakref_slot``."""

        def decorate(cls):
            return _record(cls, frozen, eq, repr, options)

        return decorate if cls is None else decorate(cls)


_HERE = ("__init__", "__post_init__", "__eq__", "__hash__", "__repr__", "__getstate__", "__setstate__")
_MISSING = dataclasses.MISSING


def _record(cls: type, frozen: bool, eq: bool, repr: bool, options: dict[str, Any]) -> type:
    given = {name for name in _HERE if name in vars(cls)}
    inherits = any(hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:])
    if inherits or options.keys() - {"slots", "weakref_slot"} or given & {"__init__", "__hash__", "__getstate__"}:
        return dataclasses.dataclass(frozen=frozen, eq=eq, repr=repr, **options)(cls)
    new: Any = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
    if any(f not in dataclasses.fields(new) for f in new.__dataclass_fields__.values() if "InitVar" in str(f.type)):
        raise TypeError(f"{cls.__name__}: this dataclass takes no InitVar; use that of the standard library")
    new.__dataclass_params__ = _parameters(frozen, eq, repr)
    slots = bool(options.get("slots"))

    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        new.__init__ = init = _init_of(new, frozen, slots)
        init(self, *args, **kwargs)

    new.__init__ = __init__
    if repr and "__repr__" not in given:
        new.__repr__ = _repr_of(new)
    if eq:
        _add_comparison(new, frozen, "__eq__" in given)
    if frozen:
        _freeze(new, slots)
    return new  # type: ignore[no-any-return]


@lru_cache
def _parameters(frozen: bool, eq: bool, repr: bool) -> Any:
    """What the library notes of a class with these options."""
    return dataclasses.dataclass(frozen=frozen, eq=eq, repr=repr)(type("_", (), {"__doc__": ""})).__dataclass_params__  # type: ignore[attr-defined]


def _init_of(cls: Any, frozen: bool, slots: bool) -> Callable[..., None]:
    """The ``__init__`` of a class: ``def __init__(self, a, b=default_b): ...``."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_made": _MISSING}
    parameters, lines = ["self"], []
    for f in dataclasses.fields(cls):
        value = f.name
        if f.default_factory is not _MISSING:
            names[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}() if {f.name} is _made else {f.name}" if f.init else f"_make_{f.name}()"
            parameters += [f"{f.name}=_made"] if f.init else []
        elif f.default is not _MISSING:
            names[f"_default_{f.name}"] = f.default
            parameters += [f"{f.name}=_default_{f.name}"] if f.init else []
            value = f.name if f.init else f"_default_{f.name}"
        elif f.init:
            parameters.append(f.name)
        if f.init or f.default_factory is not _MISSING or (slots and f.default is not _MISSING):
            lines.append(f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n  ".join(lines or ["pass"])
    source = f"def _create({', '.join(names)}):\n def __init__({', '.join(parameters)}):\n  {body}\n return __init__"
    made: dict[str, Any] = {}
    exec(source, vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}, made)
    init: Callable[..., None] = made["_create"](**names)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in dataclasses.fields(cls) if f.init} | {"return": None}
    return init


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the attributes ``names`` of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: tuple([getattr(x, name) for name in names])


def _repr_of(cls: Any) -> Callable[[Any], str]:
    names = [f.name for f in dataclasses.fields(cls) if f.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    return __repr__


def _add_comparison(cls: Any, frozen: bool, has_eq: bool) -> None:
    fields = dataclasses.fields(cls)
    if not has_eq:
        values = _values_of([f.name for f in fields if f.compare])

        def __eq__(self: Any, other: Any) -> Any:
            return values(self) == values(other) if type(other) is type(self) else NotImplemented

        cls.__eq__ = __eq__
    if not frozen:
        cls.__hash__ = None
        return
    hashed = _values_of([f.name for f in fields if (f.compare if f.hash is None else f.hash)])
    cls.__hash__ = lambda self: hash(hashed(self))


def _freeze(cls: Any, slots: bool) -> None:
    names = frozenset([f.name for f in dataclasses.fields(cls)])

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__
    if slots:
        cls.__getstate__, cls.__setstate__ = _get_state, _set_state


def _get_state(self: Any) -> list[Any]:
    """What pickle stores of a frozen object."""
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
