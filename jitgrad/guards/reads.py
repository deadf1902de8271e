"""The record of a trace's reads and writes of Python state outside the traced function."""

from __future__ import annotations

import enum
import gc
import sys
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial, partialmethod
from types import (
    BuiltinMethodType,
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

from jitgrad.autograd.custom_vjp import custom_vjp
from jitgrad.autograd.function import Function
from jitgrad.core.errors import UnguardableError
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.array_reads import ArrayRead, owner_of
from jitgrad.guards.guard import IMMUTABLE, NOWHERE, Check, Path, cell_contents, describe, hooks_of
from jitgrad.guards.object_state import MISSING, instance_dict, key_name, lookup
from jitgrad.guards.observed_files import is_observed
from jitgrad.guards.plain_items import plain_items

MAX_CHECKS = 100_000
VARIES = "a value that differs from call to call"  # among the operations of a write, for what a clock gave
HELD = "a value that each call reads there"  # for a place that is an argument of the function
PLAIN = (  # values without parts
    *(*IMMUTABLE, slice, CodeType, type(MISSING), GetSetDescriptorType, MemberDescriptorType),
    *(MethodDescriptorType, WrapperDescriptorType),
)
DICT_VIEWS: tuple[type, ...] = (type({}.items()), type({}.keys()), type({}.values()), MappingProxyType)  # of dicts
_WRAPPED = ("__func__", "func", "fget", "fset", "fdel", "__wrapped__")
_WRAPPERS = (MethodType, partial, property, staticmethod, classmethod, cached_property, partialmethod)


class TraceStopped(BaseException):
    """The function ends before an instruction that cannot be undone; an error says why."""


@dataclass(slots=True)
class Write:
    """A change of outside state: ``old`` is what ``undo`` restores.

    ``operations``: the methods and operators that changed a container. ``read``: the container's
    items were read afterwards.
    """

    holder: Any
    key: Any
    old: Any
    path: Path
    origin: Origin
    kind: str  # "item", "attribute", "class", "cell", "container" or "array"
    read: bool = False
    operations: set[str] = field(default_factory=set)

    @property
    def identity(self) -> tuple[int, Hashable]:
        return id(self.holder), key_name(self.key)

    def parts_before(self) -> list[tuple[Any, Any]]:
        """What a container held before it was changed, with the keys or positions."""
        if self.kind != "container" or isinstance(self.old, bytearray):
            return []
        return list(self.old.items() if isinstance(self.old, dict) else enumerate(self.old))


class Reads:
    """Everything that a trace read outside the function, in the order of the first reads.

    An *external* value is one that existed before the call and that a guarded read gave; the record
    keeps its expression, and a reference so that its identity cannot be reused.
    """

    def __init__(self, home: str, array_limit: int) -> None:
        self.home = home
        self.checks: list[Check] = []
        self.tensors: dict[int, tuple[Path, Tensor]] = {}
        self.arrays: dict[int, ArrayRead] = {}
        self.writes: dict[tuple[int, Any], Write] = {}
        self.errors: list[tuple[Origin, str]] = []
        self.stopped: bool = False  # whether the function would use up, or change, what nobody could give back
        self.identical: set[int] = set()  # ids of external values that were compared with ``is``
        self.compared: dict[int, Tensor] = {}  # tensors that others were compared with by identity
        self.ids: set[int] = set()  # what ``id`` gave of tensors of the trace
        self.referents: set[int] = set()  # ids of what weak references gave, which a guard must not keep alive
        self.imports: dict[str, Origin] = {}  # the modules that the function imports, by their full names
        self.prints: dict[str, None] = {}  # what the function prints or writes to files, with its line
        self.functions: dict[CodeType, list[FunctionType]] = {}
        self._array_limit = array_limit
        self._enclosing: dict[CodeType, list[FunctionType]] = {}
        self._counts: dict[tuple[str, int, Any], int] = {}
        self._listed: dict[str, int] = {}
        self._changed: set[int] = set()  # the ids of all that was written to
        self.changes: int = 0  # how often something was
        self._externals: dict[int, tuple[Any, Path]] = {}
        self._class_dicts: dict[type, Any] = {}
        self._owners: dict[int, ArrayRead] = {}  # by the array that owns the memory

    # --- external values --------------------------------------------------------------------------

    def path_of(self, value: Any) -> Path | None:
        """The expression of an external value; None for a value that the trace made."""
        entry = self._externals.get(id(value))
        return entry[1] if entry is not None else None

    def externals(self) -> list[tuple[Any, Path]]:
        """The external values that are known so far but tensors, with their expressions."""
        return [*self._externals.values()]

    def external_count(self) -> int:
        """How many external values are known so far."""
        return len(self._externals)

    def external(self, value: Any, path: Path, origin: Origin = NOWHERE) -> None:
        """Remember that ``value`` existed before the call, as ``path``."""
        pending = [(value, path)]
        while pending:
            value, path = pending.pop()
            if _has_no_parts(value):
                continue
            if isinstance(value, Tensor):
                self._tensor(value, path)
            elif id(value) not in self._externals:
                self._externals[id(value)] = (value, path)
                if "decimal" in (type(value).__module__, getattr(value, "__module__", "")):
                    self.check("answer", _decimal_settings, (), _decimal_settings(), Path("", "decimal.getcontext()"))
                pending.extend(self._parts(value, path))
                if isinstance(value, np.ndarray):
                    self._array(value, path, origin)

    def forget(self) -> None:
        """Let go of the external values."""
        self._externals.clear()
        self._owners.clear()
        for record in (self.checks, self.tensors, self.arrays, self.writes):
            record.clear()

    def objects_with(self, name: str) -> list[Any]:
        """The external objects that store an attribute ``name`` and that were not listed for it yet.

        An unknown value may be any of them.
        """
        values = [*self._externals.values()][self._listed.get(name, 0) :]
        self._listed[name] = len(self._externals)
        return [v for v, _ in values if stores(v, name) and not isinstance(v, type | ModuleType)]

    def dict_of(self, cls: type) -> Any:
        """The attributes of a class, always as the same object: reads of one attribute are one check."""
        return self._class_dicts.setdefault(cls, cls.__dict__)

    def view(self, view: np.ndarray[Any, Any]) -> None:
        """Python code read elements of a view that it made of an outside array, such as the transpose."""
        read = self.owner_of(view)
        if read is None:
            return
        read.keep()
        parts = [np.asarray(c.holder[c.key]) for c in self.checks if c.kind == "part"]
        if not any(p.__array_interface__ == view.__array_interface__ for p in parts):  # else guarded when it was made
            content = view.tobytes() if view.nbytes <= self._array_limit else None
            self.arrays[id(view)] = ArrayRead(view, read.path, read.origin, content, compared=True)

    def owner_of(self, view: np.ndarray[Any, Any]) -> ArrayRead | None:
        """The outside array whose memory ``view`` shows."""
        return self._owners.get(id(owner_of(view)))

    def foreign(self, value: Any, origin: Origin) -> None:
        """Refuse a read of an object of C code, which no guard can compare."""
        path = self.path_of(value)
        if path is not None and not isinstance(value, type):
            self.error(
                origin,
                f"{path} is {describe(value)} of {type(value).__module__}, whose contents @jit cannot compare on later "
                "calls: read the value outside and pass it as an argument, or convert it to a NumPy array or a tensor",
            )

    def _parts(self, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        """The parts of a wrapper. They never change but those of a partial, which are guarded."""
        if isinstance(value, FunctionType):
            self._function(value)
            if not is_observed(value.__code__.co_filename):  # jg.grad(loss) calls loss
                contents = map(cell_contents, value.__closure__ or ())
                yield from ((part, path) for part in contents if callable(part) or isinstance(part, Tensor))
        if isinstance(value, _WRAPPERS) or not isinstance(value, type | ModuleType):
            for name in _WRAPPED if isinstance(value, _WRAPPERS) else ("__wrapped__",):
                part = _static_attribute(value, name)
                if part is not None:
                    yield part, path
        if isinstance(value, custom_vjp) or (isinstance(value, type) and issubclass(value, Function)):
            yield from ((part, path) for part in value.called_functions())
        if isinstance(value, type) and issubclass(value, Function):
            for name in ("forward", "backward", "setup_context"):
                self.check("attribute", value, name, getattr(value, name, MISSING), path.attr(name))
        if isinstance(value, MethodType | BuiltinMethodType | MethodWrapperType):
            yield value.__self__, path.attr("__self__")
        if isinstance(value, DICT_VIEWS):
            yield viewed(value), path
        if isinstance(value, partial):
            self._partial(value, path)
        if isinstance(value, partial | partialmethod):
            yield from ((part, path.attr(f"args[{k}]")) for k, part in enumerate(value.args))
            yield from ((part, path.attr(name)) for name, part in value.keywords.items())

    def _partial(self, value: partial[Any], path: Path) -> None:
        """Whoever holds a partial may change its keywords, or all of it by ``__setstate__``."""
        for name in ("func", "args", "keywords"):
            self.check("attribute", value, name, getattr(value, name), path.attr(name))
        self.check("keys", value.keywords, None, tuple(value.keywords), path.attr("keywords"))
        for name, part in value.keywords.items():
            self.check("item", value.keywords, name, part, path.attr("keywords").item(name))

    def _function(self, function: FunctionType) -> None:
        known = self.functions.setdefault(function.__code__, [])
        if any(function is other for other in known):
            return
        known.append(function)
        pending = [function.__code__]
        while pending:
            for constant in pending.pop().co_consts:
                if isinstance(constant, CodeType):
                    self._enclosing.setdefault(constant, []).append(function)
                    pending.append(constant)

    def enclosing(self, code: CodeType) -> list[FunctionType]:
        """The external functions in whose code ``code`` is nested."""
        return self._enclosing.get(code, [])

    def _tensor(self, tensor: Tensor, path: Path) -> None:
        earlier = self.tensors.get(id(tensor))
        if earlier is None:
            self.check("aval", tensor, None, tensor.aval, path)
            self.check("attribute", tensor, "_requires_grad", tensor.requires_grad, path.attr("requires_grad"))
            if tensor.requires_grad and tensor.is_leaf:
                self._hooks(tensor, path)
        if earlier is None or (earlier[0].text.endswith("]") and not path.text.endswith("]")):
            self.tensors[id(tensor)] = (path, tensor)  # model.weight, not params[0]

    def _hooks(self, tensor: Tensor, path: Path) -> None:
        """The functions that a backward pass calls with the gradient of a leaf."""
        hooks = hooks_of(tensor)
        self.check("hooks", tensor, None, hooks, path.attr("hooks"))
        for k, hook in enumerate(hooks or ()):
            self.external(hook, path.attr("hooks").item(k))

    def _array(self, array: np.ndarray[Any, Any], path: Path, origin: Origin) -> None:
        layout = (array.shape, array.strides, array.dtype)
        content = array.tobytes() if array.nbytes <= self._array_limit else None
        self.arrays[id(array)] = self._owners[id(owner_of(array))] = ArrayRead(array, path, origin, content)
        self.check("layout", array, None, layout, path, origin)

    # --- reads ------------------------------------------------------------------------------------

    def check(self, kind: str, holder: Any, key: Any, expected: Any, path: Path, origin: Origin = NOWHERE) -> None:
        """Guard a read, unless the trace wrote this place before."""
        identity = (kind, id(holder), key_name(key))
        if kind != "class" and self.written(holder, key):
            return
        self._counts[identity] = self._counts.get(identity, 0) + 1
        if self._counts[identity] > 1:
            return
        self.checks.append(Check(kind, holder, key, expected, path, origin))
        if len(self.checks) > MAX_CHECKS:
            raise UnguardableError(
                f"{path}: the function reads more than {MAX_CHECKS} Python values outside its arguments; pass what it "
                "needs as arguments"
            )

    def read(self, kind: str, holder: Any, key: Any, value: Any, path: Path, origin: Origin) -> None:
        """Guard a read, whose ``value`` is external."""
        self.check(kind, holder, key, value, path, origin)
        if not self.written(holder, key):
            self.external(value, path, origin)

    def forget_single_read(self, holder: Any, key: Any) -> None:
        """Drop the guard of ``key`` of ``holder`` if one instruction alone read it: its own update."""
        kept, name = [], key_name(key)
        for check in self.checks:
            same = check.holder is holder and key_name(check.key) == name
            single = same and self._counts.get((check.kind, id(holder), name)) == 1
            if not single or check.kind not in ("item", "attribute", "hides"):
                kept.append(check)
        self.checks = kept

    def error(self, origin: Origin, message: str, *, stop: bool = False) -> None:
        """Note a read that cannot be guarded; the trace fails with the first, at once if ``stop``."""
        self.errors.append((origin, message))
        self.stopped |= stop

    # --- writes -----------------------------------------------------------------------------------

    def written(self, holder: Any, key: Any) -> bool:
        """Whether the trace itself wrote ``key`` of ``holder``, or all of it."""
        if not self.writes:
            return False
        if (whole := self.writes.get((id(holder), MISSING))) is not None and not whole.read:
            whole.read = True
            for place, part in whole.parts_before():  # such as the last item again, after push and pop
                self.external(part, whole.path.item(place), whole.origin)
        return whole is not None or (id(holder), key_name(key)) in self.writes

    def write(
        self, kind: str, holder: Any, key: Any, old: Any, path: Path, origin: Origin, operation: str = ""
    ) -> None:
        """Note the first write of ``key`` of ``holder``; MISSING: of the whole container."""
        write = self.writes.setdefault((id(holder), key_name(key)), Write(holder, key, old, path, origin, kind))
        write.operations.add(operation)
        self._changed.add(id(holder))
        self.changes += 1

    def before(self, container: Any) -> Any:
        """A copy of ``container``, with what was in the places that the trace wrote."""
        old = copy_of(container)
        for write in self.writes.values():
            if write.holder is container and write.kind == "item" and isinstance(old, list) and write.key < len(old):
                old[write.key] = write.old
        return old

    def writes_of(self, holder: Any) -> bool:
        """Whether the trace wrote any item of ``holder``."""
        return id(holder) in self._changed

    def varies(self, holder: Any, key: Any) -> None:
        """What was written to ``key`` of ``holder`` differs from call to call."""
        if (write := self.writes.get((id(holder), key_name(key)))) is not None:
            write.operations.add(VARIES)


def _has_no_parts(value: Any) -> bool:
    """Whether ``value`` is a number, a text or the like, and its class adds no attributes."""
    return isinstance(value, PLAIN) and (isinstance(value, enum.Enum) or type(value).__dictoffset__ == 0)


def _decimal_settings() -> tuple[Any, ...]:
    """What the arithmetic of `decimal`, which somebody has imported, depends on."""
    context = sys.modules["decimal"].getcontext()
    return context.prec, context.rounding, context.Emin, context.Emax, context.clamp


def viewed(view: Any) -> Any:
    """The dict, or another mapping, that a view of one shows."""
    return gc.get_referents(view)[0]


def stores(value: Any, name: str) -> bool:
    """Whether the object itself has an attribute ``name``, in its dict or in a slot."""
    cls = type(value)
    if isinstance(value, tuple) and name in getattr(cls, "_fields", ()):
        return True
    return isinstance(lookup(cls, name), MemberDescriptorType) or name in (instance_dict(value) or ())


def _static_attribute(value: Any, name: str) -> Any:
    """An attribute of a wrapper, without running the user's code."""
    if isinstance(value, _WRAPPERS):
        return getattr(value, name, None)
    try:
        return object.__getattribute__(value, name)
    except (AttributeError, TypeError):
        return None


def copy_of(container: Any) -> Any:
    """A copy of a list, deque, dict, set or bytearray, of the plain type."""
    plain = next(t for t in (list, deque, dict, set, bytearray) if isinstance(container, t))
    return plain(plain_items(container))


def position_in(holder: list[Any], key: Any) -> int | None:
    """``key`` counted from the start of the list; None if it is no index of it."""
    if type(key) is not int or not -len(holder) <= key < len(holder):
        return None
    return key % len(holder)


def is_container(value: Any) -> bool:
    return isinstance(value, list | tuple | dict | set | frozenset | deque) and not isinstance(value, enum.Enum)
