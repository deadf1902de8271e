"""What a Python function can reach and change: whether a call of it changed anything there, and how it was before."""

from __future__ import annotations

import dis
import sys
import types
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from jitgrad.compiler.runtime_number import RuntimeNumber
from jitgrad.core.context import state_changes
from jitgrad.core.tensor import Tensor
from jitgrad.guards.observed_files import is_observed

MOST_OBJECTS = 2000  # of which the state of a function is looked at; of more, loops run in Python

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that Python code made
_MISSING: Any = object()
# What a function cannot change, or only in ways that a trace sees.
_ATOMS = (
    *(type(None), bool, int, float, complex, str, bytes, type, range, slice, type(Ellipsis), type(NotImplemented), property),
    *(np.generic, np.dtype, np.ndarray, np.ufunc, Tensor, RuntimeNumber),
    *(types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType, types.CodeType),
)


class _Named(NamedTuple):
    """The key of a part that has a name, and is no item."""

    name: str


class PythonState:
    """The objects that ``function`` reaches by its closure, its globals and their parts, as they are now.

    The observer of a traced function counts changes of further ones, which are from outside that function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._seen: list[tuple[Any, dict[Any, Any]]] = []
        self._ids: set[int] = set()
        self.known: bool = self._look(function)
        self._changes: int = _changes()

    def _look(self, start: Any) -> bool:
        """Whether everything could be looked at."""
        waiting = [start]
        while waiting:
            x = waiting.pop()
            if isinstance(x, _ATOMS) or id(x) in self._ids:
                continue
            parts = _parts(x)
            if parts is None or len(self._ids) >= MOST_OBJECTS:
                return False
            self._ids.add(id(x))
            self._seen.append((x, parts))
            waiting += parts.values()
            waiting += parts if isinstance(x, dict) else ()
        return True

    @property
    def unchanged(self) -> bool:
        """Whether everything is known, and still as it was."""
        return self.known and _changes() == self._changes and all(_is_same(x, parts) for x, parts in self._seen)

    def restore(self) -> None:
        """Give everything the parts that it had."""
        for x, parts in self._seen:
            if not _is_same(x, parts):
                _fill(x, parts)


def _changes() -> int:
    count = state_changes.get()
    return 0 if count is None else count()


def _is_same(x: Any, parts: dict[Any, Any]) -> bool:
    now = _parts(x)
    return now is not None and [*map(_identity, now.items())] == [*map(_identity, parts.items())]


def _identity(item: tuple[Any, Any]) -> Hashable:
    """Numbers and texts are what they are, and all else is an object."""
    key, x = item
    known = key if isinstance(key, (str, int, _Named)) else id(key)
    return known, (type(x), x) if type(x) in (bool, int, float, str) else id(x)


def _parts(x: Any) -> dict[Any, Any] | None:
    """The objects that ``x`` holds, by keys; None if it may have others, such as the position of an iterator."""
    kind = type(x)
    if kind is types.FunctionType:
        return _parts_of_function(x)
    if kind is types.MethodType:
        return {"__func__": x.__func__, "__self__": x.__self__}
    if kind is partial:
        return {"func": x.func, "args": x.args, "keywords": x.keywords}
    if kind is types.CellType:
        try:
            return {"cell_contents": x.cell_contents}
        except ValueError:
            return {}
    if _is_of_library(kind):  # type: ignore[arg-type]
        return {"__wrapped__": wrapped} if (wrapped := getattr(x, "__wrapped__", None)) is not None else {}
    items = _items(x)
    if items is None and (isinstance(x, types.GeneratorType) or not all(map(_is_made_by_python, kind.__mro__))):
        return None
    return {**(items or {}), **{_Named(name): value for name, value in _attributes(x)}}


def _items(x: Any) -> dict[Any, Any] | None:
    """The items of a container of Python's, or of a class derived from one; None of other objects."""
    if isinstance(x, (list, tuple, deque)):
        return dict(enumerate(x))
    if isinstance(x, dict):
        return dict(dict.items(x))
    return dict.fromkeys(x) if isinstance(x, (set, frozenset)) else None


@lru_cache(maxsize=1024)
def _is_of_library(kind: type) -> bool:
    """Whether the class is NumPy's, or of jitgrad's core, whose objects a trace watches."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and not is_observed(file)


def _is_made_by_python(kind: type) -> bool:
    """Whether objects of the class hold nothing but attributes: those of C code hide what they hold."""
    return kind in (object, types.SimpleNamespace) or bool(kind.__flags__ & _HEAP_TYPE)


def _attributes(x: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(x, "__dict__", {}).items()
    for kind in type(x).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if (value := getattr(x, name, _MISSING)) is not _MISSING:
                yield name, value


def _parts_of_function(function: types.FunctionType) -> dict[Any, Any]:
    """The cells and defaults of a function, and the globals of one of the user."""
    parts: dict[Any, Any] = dict(enumerate((*(function.__closure__ or ()), *(function.__defaults__ or ()))))
    parts.update((_Named(name), x) for name, x in (function.__kwdefaults__ or {}).items())
    names = _global_names(function.__code__) if is_observed(function.__code__.co_filename) else ()
    return {**parts, **{name: function.__globals__[name] for name in names if name in function.__globals__}}


@lru_cache(maxsize=1024)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    names = [i.argval for i in dis.get_instructions(code) if i.opname.endswith("_GLOBAL")]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _global_names(constant)
    return tuple(dict.fromkeys(names))


def _fill(x: Any, parts: dict[Any, Any]) -> None:
    """Give ``x`` these parts, which it had."""
    if isinstance(x, types.FunctionType):
        x.__globals__.update({name: value for name, value in parts.items() if isinstance(name, str)})
        return
    attributes = {key.name: value for key, value in parts.items() if type(key) is _Named}
    items = {key: value for key, value in parts.items() if type(key) is not _Named}
    if isinstance(x, types.CellType):
        x.cell_contents = parts["cell_contents"]
    elif isinstance(x, list):
        list.__setitem__(x, slice(None), list(items.values()))
    elif isinstance(x, deque):
        x.clear()
        x.extend(items.values())
    elif isinstance(x, dict):
        dict.clear(x)
        dict.update(x, items)
    elif isinstance(x, set):
        set.clear(x)
        set.update(x, items)
    for name, _ in [*_attributes(x)]:
        if name not in attributes:
            object.__delattr__(x, name)
    for name, value in attributes.items():
        object.__setattr__(x, name, value)
