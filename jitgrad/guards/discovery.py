"""Finds everything that a function can read from outside, by a walk over code and values."""

from __future__ import annotations

import array
import copy
import dataclasses
import enum
import operator
import sys
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial, partialmethod
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from jitgrad.core.errors import UnguardableError
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.bytecode import Chain, CodeFacts, read_code
from jitgrad.guards.denylist import (
    is_consumed_by_reading,
    is_library_class,
    is_library_file,
    is_library_module,
    random_state,
    remedy_for,
)
from jitgrad.guards.guard import IMMUTABLE, MISSING, NOWHERE, Check, Path, cell_contents
from jitgrad.guards.name_lookup import follow, outside_stores
from jitgrad.guards.object_state import ArrayState, MentionedNames, OpenClass, OpenObject, reads_everything

MAX_ITEMS = 20_000  # a check reads every item on every call: about 25 ns each
MAX_CHECKS = 100_000
_UNROLLED = 8  # below this many items, one comparison each is faster than map()

_PLAIN = (  # without parts to visit
    *(*IMMUTABLE, slice, CodeType, type(MISSING), GetSetDescriptorType, MemberDescriptorType),
    *(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType),
)
_READ_ALL = (copy.copy, copy.deepcopy, dataclasses.replace, dataclasses.asdict, dataclasses.astuple, dataclasses.fields)
_TRANSPARENT = ("__func__", "func", "fget", "fset", "fdel", "__wrapped__")
_DESCRIPTORS = (property, staticmethod, classmethod, cached_property, partialmethod)


@dataclass(frozen=True, slots=True)
class _Visit:
    """A value to visit; ``mentioned``: code names it, and not only its container."""

    value: Any
    path: Path
    origin: Origin
    mentioned: bool


@dataclass(frozen=True, slots=True)
class _Suspect:
    value: Any
    origin: Origin
    message: str


class Discovery:
    """The walk, which ends when it meets neither a new value nor a new attribute name."""

    def __init__(self, user_files: frozenset[str]) -> None:
        self.checks: list[Check] = []
        self.tensors: dict[int, tuple[Path, Tensor]] = {}
        self.arrays: list[ArrayState] = []
        self.objects: list[OpenObject] = []
        self.classes: list[OpenClass] = []
        self.random_states: list[tuple[Any, Any, Path]] = []
        self.containers: list[tuple[Any, Any]] = []
        self.names = MentionedNames()
        self.mentioned: set[int] = set()
        self._user_files = user_files
        self._module = ""
        self._check_keys: set[tuple[str, int, Any]] = set()
        self._visited: dict[int, tuple[bool, Any]] = {}
        self._opened: dict[int, OpenObject | OpenClass] = {}
        self._suspects: list[_Suspect] = []
        self._queue: deque[_Visit] = deque()

    # --- the loop ---------------------------------------------------------------------------------

    def enqueue(self, value: Any, path: Path, origin: Origin = NOWHERE, mentioned: bool = True) -> None:
        if not isinstance(value, _PLAIN):
            self._queue.append(_Visit(value, path, origin, mentioned))

    def read(self, check: Check, mentioned: bool = True) -> None:
        """Guard a read, and visit the value that it gave."""
        self.check(check)
        self.enqueue(check.expected, check.path, check.origin, mentioned)

    def check(self, check: Check) -> None:
        named = check.kind in ("item", "attribute", "absent", "unset")
        part = check.key if isinstance(check.key, str | int) else id(check.key)
        key = (check.kind, id(check.holder), part if named else None)
        if key not in self._check_keys:
            self._check_keys.add(key)
            self.checks.append(check)
        if len(self.checks) > MAX_CHECKS:
            raise UnguardableError(
                f"{check.path}: the function reaches more than {MAX_CHECKS} Python values outside its arguments; "
                "pass what it needs as arguments"
            )

    def run(self) -> None:
        """Visit everything. Raises UnguardableError if a mentioned value cannot be guarded."""
        while True:
            while self._queue:
                self._visit(self._queue.popleft())
            for opened in tuple(self.objects):
                opened.expand(self)
            for cls in tuple(self.classes):
                cls.expand(self)
            if not self._queue:
                break
        self._check_tensors()
        for suspect in self._suspects:
            if id(suspect.value) in self.mentioned:
                raise UnguardableError(f"{suspect.origin.full()}: {suspect.message}")

    def suspect(self, visit: _Visit, message: str) -> None:
        self._suspects.append(_Suspect(visit.value, visit.origin, message))

    def _visit(self, visit: _Visit) -> None:
        value = visit.value
        if visit.mentioned:
            self.mentioned.add(id(value))
        if self._visited.get(id(value), (None,))[0] in (visit.mentioned, True) and not isinstance(value, Tensor):
            return
        self._visited[id(value)] = (visit.mentioned, value)
        remedy = remedy_for(value)
        if remedy is not None:
            self.suspect(visit, f"{visit.path} cannot be guarded: it may give something else on every call; {remedy}")
            return
        for types, visitor in _VISITORS:
            if isinstance(value, types):
                visitor(self, visit)
                return
        self._object(visit)

    # --- values -----------------------------------------------------------------------------------

    def _tensor(self, visit: _Visit) -> None:
        earlier = self.tensors.get(id(visit.value))
        if earlier is None or (earlier[0].text.endswith("]") and not visit.path.text.endswith("]")):
            self.tensors[id(visit.value)] = (visit.path, visit.value)  # model.weight, not params[0]

    def _check_tensors(self) -> None:
        """Check shapes, dtypes and flags; the data of a tensor are inputs of the program."""
        for path, tensor in self.tensors.values():
            self.check(Check("aval", tensor, None, tensor.aval, path))
            flag = path.attr("requires_grad")
            self.check(Check("attribute", tensor, "_requires_grad", tensor.requires_grad, flag))

    def _array(self, visit: _Visit) -> None:
        layout = (visit.value.shape, visit.value.strides, visit.value.dtype)
        if not any(state.array is visit.value for state in self.arrays):
            self.arrays.append(ArrayState(visit.value, visit.path, visit.origin))
        self.check(Check("layout", visit.value, None, layout, visit.path, visit.origin))

    def _sequence(self, visit: _Visit) -> None:
        """A list, deque, set or tuple; a tuple cannot change, but its items can."""
        value, path, origin = visit.value, visit.path, visit.origin
        items = self._items(visit)
        if items is None:
            return
        if isinstance(value, list) and len(items) <= _UNROLLED:
            self.check(Check("length", value, None, len(items), path, origin))
            for k, item in enumerate(items):
                self.check(Check("item", value, k, item, path.item(k), origin))
        elif not isinstance(value, tuple | frozenset):
            self.check(Check("items", value, None, items, path, origin))
        fields = getattr(value, "_fields", ()) if isinstance(value, tuple) else ()
        for k, item in enumerate(items):
            self.enqueue(item, path.attr(fields[k]) if k < len(fields) else path.item(k), origin, visit.mentioned)
        self._subclass(visit)

    def _mapping(self, visit: _Visit) -> None:
        value, path, origin = visit.value, visit.path, visit.origin
        keys, values = self._items(visit), tuple(value.values())
        if keys is None:
            return
        order = Check("keys", value, None, keys, path, origin)
        self.check(order if keys else Check("length", value, None, 0, path, origin))
        if len(keys) <= _UNROLLED and type(value) is dict:
            for key, item in zip(keys, values, strict=True):
                self.check(Check("item", value, key, item, path.item(key), origin))
        else:
            self.check(Check("values", value, keys, values, path, origin))
        for key, item in zip(keys, values, strict=True):
            self.enqueue(key, path, origin, visit.mentioned)
            self.enqueue(item, path.item(key), origin, visit.mentioned)
        self._subclass(visit)

    def _items(self, visit: _Visit) -> tuple[Any, ...] | None:
        items = tuple(visit.value)
        if len(items) > MAX_ITEMS:
            self.suspect(visit, f"{visit.path} has {len(items)} items, too many to compare on every call (at most "
                         f"{MAX_ITEMS}): pass what you need of it as an argument")  # fmt: skip
            return None
        if not isinstance(visit.value, tuple | frozenset | MappingProxyType):
            self.containers.append((visit.value, visit.value.copy()))
        return items

    def _subclass(self, visit: _Visit) -> None:
        if not is_library_class(type(visit.value)):
            self._object(visit)

    def _bytes(self, visit: _Visit) -> None:
        self.check(Check("bytes", visit.value, None, bytes(visit.value), visit.path, visit.origin))

    def _context(self, visit: _Visit) -> None:
        path = Path(visit.path.label, f"{visit.path.text}.get()")
        self.read(Check("context", visit.value, None, visit.value.get(MISSING), path, visit.origin))

    def _weak(self, visit: _Visit) -> None:
        target = Path(visit.path.label, f"{visit.path.text}()")
        self.read(Check("referent", visit.value, None, visit.value(), target, visit.origin), visit.mentioned)

    def _parts(self, visit: _Visit) -> None:
        """Immutable wrappers: only the wrapped values can change."""
        value = visit.value
        for name in (*_TRANSPARENT, "__self__", "args", "keywords"):
            part = getattr(value, name, None)
            if part is None or isinstance(part, ModuleType):
                continue
            path = visit.path if name in _TRANSPARENT else visit.path.attr(name)
            self.enqueue(part, path, visit.origin, visit.mentioned)

    def _object(self, visit: _Visit) -> None:
        value = visit.value
        self.names.introspects |= isinstance(value, operator.attrgetter | operator.methodcaller)
        state = random_state(value)
        if state is not None:
            self.random_states.append((value, state, visit.path))
            return
        if is_consumed_by_reading(value):
            self.suspect(visit, f"{visit.path} is {type(value).__name__}, which reading uses up: @jit would take from "
                         "it only while tracing; take from it outside and pass the item as an argument")  # fmt: skip
            return
        self.open(value, visit.path, visit.origin, visit.mentioned)

    def open(self, value: Any, path: Path, origin: Origin, mentioned: bool) -> None:
        """Guard the attributes of ``value`` that reachable code mentions, now or later."""
        opened_before = self._opened.get(id(value))
        if isinstance(opened_before, OpenObject):
            opened_before.mentioned |= mentioned
            return
        cls = type(value)
        if not isinstance(value, ModuleType | FunctionType):
            self.open_class(cls)
            if self.is_user_class(cls):
                self.check(Check("class", value, None, cls, path.attr("__class__"), origin))
            if is_library_class(cls):
                self.enqueue(getattr(value, "__wrapped__", None), path, origin, mentioned)
                if cls.__module__.startswith("jitgrad.") and not reads_everything(cls):
                    return  # the state of jitgrad itself needs no guard
        opened = OpenObject(value, path, origin, mentioned)
        self._opened[id(value)] = opened
        self.objects.append(opened)

    def is_user_class(self, cls: type) -> bool:
        """Whether ``cls`` is not a library's, or is defined beside the traced function."""
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        return file in self._user_files or not is_library_class(cls)

    def open_class(self, cls: type, constructed: bool = False) -> None:
        if any(map(self.is_user_class, cls.__mro__)):
            opened = self._opened.get(id(cls))
            if not isinstance(opened, OpenClass):
                opened = self._opened[id(cls)] = OpenClass(cls)
                self.classes.append(opened)
            opened.constructed |= constructed
        if type(cls) is not type:
            self.open_class(type(cls))

    def _class(self, visit: _Visit) -> None:
        self.open_class(visit.value, constructed=visit.mentioned)

    def _enum(self, visit: _Visit) -> None:
        self.open_class(type(visit.value))

    def _user_module(self, visit: _Visit) -> None:
        if not is_library_module(visit.value.__name__):
            self.open(visit.value, visit.path, visit.origin, visit.mentioned)

    # --- code -------------------------------------------------------------------------------------

    def _function(self, visit: _Visit) -> None:
        function, path = visit.value, visit.path
        code: CodeType = function.__code__
        cells: dict[str, CellType] = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.enqueue(function.__dict__.get("__wrapped__"), path, visit.origin, visit.mentioned)
        if is_library_file(code.co_filename) and code.co_filename not in self._user_files:
            self._library_function(function, visit)
            return
        self._module = self._module or function.__module__
        here = Origin.of_code(code)
        self.check(Check("attribute", function, "__code__", code, path.attr("__code__"), here))
        if function.__defaults__ is not None:
            defaults = path.attr("__defaults__")
            self.check(Check("attribute", function, "__defaults__", function.__defaults__, defaults, here))
            names = code.co_varnames[code.co_argcount - len(function.__defaults__) : code.co_argcount]
            for name, value in zip(names, function.__defaults__, strict=True):
                self.enqueue(value, Path("default", name), here, visit.mentioned)
        if function.__kwdefaults__ is not None:
            defaults = path.attr("__kwdefaults__")
            self.read(Check("attribute", function, "__kwdefaults__", function.__kwdefaults__, defaults, here))
        if function.__dict__:
            self.open(function, path, here, visit.mentioned)
        self._scan(function, visit, cells)

    def _library_function(self, function: FunctionType, visit: _Visit) -> None:
        """Visit user functions in its closure (decorators); the rest is trusted."""
        self.names.introspects |= function in _READ_ALL
        for cell in function.__closure__ or ():
            value = cell_contents(cell)
            table = tuple(value.values()) if isinstance(value, dict) else ()  # of singledispatch
            for part in (value, *table):
                if callable(part) or isinstance(part, Tensor):
                    self.enqueue(part, visit.path, visit.origin, visit.mentioned)

    def _scan(self, function: FunctionType, visit: _Visit, cells: dict[str, CellType]) -> None:
        pending: list[tuple[CodeType, Any, dict[str, CellType]]] = [(function.__code__, None, cells)]
        while pending:
            code, aliases, outer = pending.pop()
            facts = read_code(code, aliases)
            self.names.add(facts, code.co_filename)
            self._stores(visit, facts, function, code, outer)
            for chain in facts.chains:
                self._chain(chain, function, code, outer, visit.mentioned)
            if "__class__" in outer:  # super() reads it without naming it
                self._chain(Chain("free", "__class__", (), code.co_firstlineno), function, code, outer, False)
            for child, imported in facts.children:
                inherited = {n: outer[n] for n in child.co_freevars if n in outer and n not in code.co_cellvars}
                pending.append((child, imported, inherited))

    def _stores(
        self, visit: _Visit, facts: CodeFacts, function: FunctionType, code: CodeType, outer: dict[str, CellType]
    ) -> None:
        for scope, name, line in outside_stores(facts, function, outer):
            at = Origin(code.co_filename, line)
            message = (
                f"{code.co_name} assigns to the {scope} `{name}`, which would happen only while tracing; return the "
                "value, or keep it in a tensor that is updated in place"
            )
            self._suspects.append(_Suspect(visit.value, at, message))

    def _chain(
        self, chain: Chain, function: FunctionType, code: CodeType, outer: dict[str, CellType], mentioned: bool
    ) -> None:
        """Visit the value of a chain; attributes of objects are guarded later, by name."""
        resolution = follow(chain, function, outer, file=code.co_filename, home=self._module)
        if resolution is None:
            return
        origin, value = Origin(code.co_filename, chain.line), resolution.value
        for check in resolution.checks:
            self.check(check)
        self.enqueue(value, resolution.path, origin, mentioned)
        if resolution.attrs and isinstance(value, type) and is_library_class(value):  # datetime.now
            name = resolution.attrs[0]
            self.enqueue(getattr(value, name, None), resolution.path.attr(name), origin, mentioned)


_VISITORS: tuple[tuple[Any, Callable[[Discovery, _Visit], None]], ...] = (
    (Tensor, Discovery._tensor),
    (np.ndarray, Discovery._array),
    (enum.Enum, Discovery._enum),
    (ModuleType, Discovery._user_module),
    (FunctionType, Discovery._function),
    ((MethodType, BuiltinFunctionType, MethodWrapperType, partial, *_DESCRIPTORS), Discovery._parts),
    (type, Discovery._class),
    ((dict, MappingProxyType), Discovery._mapping),
    ((list, tuple, deque, set, frozenset), Discovery._sequence),
    ((bytearray, array.array), Discovery._bytes),
    (ContextVar, Discovery._context),
    (weakref.ref, Discovery._weak),
)
