"""A shadow of a running frame: the values on its stack, as far as its instructions tell them.

CPython does not show the stack of a frame. The shadow follows each instruction before it runs:
names and constants give values, attributes and items are looked up as Python will (and guarded),
and a call gives what its frame returns. Other results are unknown until a name is bound to them.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, Protocol

import numpy as np

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.attributes import NULL, UNKNOWN, BoundFunction, Getter, MethodOfUnknown, builtin, read_attribute
from jitgrad.guards.class_attributes import guard_class_attribute
from jitgrad.guards.containers import MUTATORS, read_item
from jitgrad.guards.contents import Contents
from jitgrad.guards.denylist import ENVIRONMENT, is_consumed_by_reading
from jitgrad.guards.frame_variables import free_variable, local_variable
from jitgrad.guards.guard import Path, cell_contents
from jitgrad.guards.object_state import MISSING, instance_dict, lookup
from jitgrad.guards.part_of import PartOf, Parts, parts_of
from jitgrad.guards.reads import PLAIN, Reads, TraceStopped, is_container, stores


@dataclass(frozen=True, slots=True)
class Unrepeatable:
    """A value that another call would get another of, such as a clock's; ``remedy`` says what to do."""

    source: str
    remedy: str


def whole_key(key: Any) -> Any:
    """``key`` if all of it is known."""
    return UNKNOWN if isinstance(key, (Parts, PartOf, Unrepeatable, BoundFunction)) or key is NULL else key


@lru_cache(maxsize=4096)
def _instructions(code: CodeType) -> dict[int, tuple[dis.Instruction, int]]:
    """Instructions by offset, with the offset of the next one."""
    listed = list(dis.get_instructions(code))
    ends = [*(i.offset for i in listed[1:]), -1]
    return {instruction.offset: (instruction, after) for instruction, after in zip(listed, ends, strict=True)}


class FrameObserver(Protocol):
    """The part of `jitgrad.guards.frames.Observer` that its frames use."""

    reads: Reads
    contents: Contents
    tainted: dict[Any, Any]

    def origin(self, frame: FrameType) -> Origin: ...
    def finished(self, shadow: ShadowFrame, value: Any) -> None: ...
    def next_instruction(self, shadow: ShadowFrame | None) -> None: ...


_SHAPES = ("shape", "dtype", "ndim", "size", "nbytes", "strides")  # of arrays; other attributes read the elements
Handler = Callable[["ShadowFrame", dis.Instruction, int], None]


def _refuse(_frame: ShadowFrame, _instruction: dis.Instruction, _after: int) -> None:
    raise NotImplementedError(f"an instruction of Python {sys.version_info.major}.{sys.version_info.minor} that is new here")


class ShadowFrame:
    """The shadow of one frame."""

    def __init__(self, observer: FrameObserver, frame: FrameType, handlers: Mapping[str, Handler]) -> None:
        self.observer = observer
        self._handlers = handlers
        self.reads: Reads = observer.reads
        self.contents: Contents = observer.contents
        self.frame = frame
        self.functions: list[FunctionType] = []
        self.expected: Any = None  # the function whose frame the running instruction starts
        self.arguments: list[Any] = []  # of that call
        self.callee: FrameType | None = None  # that frame
        self.result: Any = UNKNOWN  # what this frame returns, if it is unrepeatable
        self.keywords: tuple[str, ...] = ()
        self._stack: list[Any] = []
        self._pending: Callable[[int], None] | None = None  # to do after the running instruction
        self._after_errors = False
        self._tainted: dict[str, Unrepeatable] = {}  # names bound to unrepeatable values
        self._iterators: dict[str, PartOf] = {}  # names bound to iterators of C code, or to what these gave
        self.yielded: Any = UNKNOWN  # what the generator gave that the running instruction resumed
        self._given: list[Any] = []  # what callbacks of the running instruction returned
        self.pushed: int = 1  # how many values the running instruction pushes
        self.iterating: bool = False  # whether that instruction takes a step of an iterator
        self.instruction: dis.Instruction | None = None  # that instruction
        self.called: Any = UNKNOWN  # what it calls
        self.given: list[Any] = []  # the arguments of that call
        self._code = _instructions(frame.f_code)

    # --- events -----------------------------------------------------------------------------------

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            entry = self._code.get(frame.f_lasti)
            if self._pending is not None:
                pending, self._pending = self._pending, None
                pending(frame.f_lasti)
            if self._given:
                self._take_given()
            self.observer.next_instruction(self)
            self.expected, self.pushed, self.iterating, self.called = None, 1, False, UNKNOWN
            if entry is not None:
                self.instruction = entry[0]
                self._follow(self._handlers.get(entry[0].opname, _refuse), entry[0], entry[1])
        elif event == "return":
            self.observer.finished(self, arg)
            frame.f_trace = None  # else frame and shadow keep each other alive, and the frame its variables
            return None
        elif event == "exception":
            self._stack.clear()
            self._given.clear()
            self.iterating = False
            action, self._pending = self._pending if self._after_errors else None, None
            if action is not None:
                action(frame.f_lasti)
            self.observer.next_instruction(None)
        return self.trace

    def _follow(self, handler: Handler, instruction: dis.Instruction, after: int) -> None:
        try:
            handler(self, instruction, after)
        except Exception as error:  # the user's code must not see it; the trace fails after it ran
            self._stack.clear()
            failure = f"({type(error).__name__}: {error}): compute this outside the function and pass it as an argument"
            self.reads.error(self.origin(), f"@jit could not follow what {instruction.opname} reads here {failure}")
        if self.reads.stopped:
            raise TraceStopped

    def forget(self) -> None:
        """Nothing on the stack is known any longer."""
        self._stack.clear()

    def returned(self, value: Any) -> None:
        """The function that the running instruction called returned ``value``."""
        if self.iterating:
            self.yielded = value
        elif self._stack:
            self._stack[-1] = value

    def called_back(self, value: Any) -> None:
        """C code, which the running instruction called, called a Python function, which returned ``value``."""
        if not isinstance(value, (*PLAIN, Tensor)):
            part = None if is_container(value) else parts_of(value)
            self._given.extend((value,) if part is None else part.sources)

    def _take_given(self) -> None:
        """The values that the last instruction pushed may be what its callbacks returned, or items of that."""
        given = PartOf((tuple(self._given),), 2 if self.iterating else 1)
        self._given.clear()
        for depth in range(1, self.pushed + 1 + self.iterating):  # an item, and its iterator
            top = self.peek(depth)
            if isinstance(top, Parts):
                self.replace(depth, Parts((*top.values, given.item())))
            elif top is UNKNOWN or isinstance(top, PartOf):
                earlier = top if isinstance(top, PartOf) else PartOf((), 1)
                self.replace(depth, PartOf((*earlier.sources, *given.sources), max(earlier.depth, given.depth)))

    def expect_method(self, value: Any, name: str) -> None:
        """The running instruction calls a method of ``value`` and pushes its result."""
        method = lookup(type(value), name)
        if isinstance(method, FunctionType):
            guard_class_attribute(self.reads, type(value), name, self.origin())
            self.expected, self.arguments = method, [value]

    def take_arguments(self, arguments: list[Any]) -> None:
        """Parameters that are bound to unrepeatable values, and to iterators."""
        for name, value in zip(self.frame.f_code.co_varnames, arguments, strict=False):
            self.bind(name, value)

    def origin(self) -> Origin:
        return self.observer.origin(self.frame)

    # --- the stack --------------------------------------------------------------------------------

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        return self._stack.pop() if self._stack else UNKNOWN

    def popn(self, count: int) -> list[Any]:
        return [self.pop() for _ in range(count)][::-1]

    def peek(self, depth: int = 1) -> Any:
        return self._stack[-depth] if len(self._stack) >= depth else UNKNOWN

    def copy(self, depth: int) -> None:
        self.push(self.peek(depth))

    def swap(self, depth: int) -> None:
        self._stack[:0] = [UNKNOWN] * (depth - len(self._stack))
        self._stack[-1], self._stack[-depth] = self._stack[-depth], self._stack[-1]

    def later(self, action: Callable[[int], None], after_errors: bool = False) -> None:
        """Do ``action`` when the running instruction has come to its end; after an error, too, if ``after_errors``."""
        self._pending, self._after_errors = action, after_errors

    def replace(self, depth: int, value: Any) -> None:
        """Put ``value`` in the place ``depth`` below the top."""
        if len(self._stack) >= depth:
            self._stack[-depth] = value

    # --- names ------------------------------------------------------------------------------------

    def local(self, name: str) -> Any:
        if name in self._tainted:
            return self._tainted[name]
        value = local_variable(self.frame, name)
        if name in self._iterators and is_consumed_by_reading(value) and parts_of(value) is None:
            return self._iterators[name]
        return UNKNOWN if value is MISSING else self.observer.tainted.get(id(value), value)

    def bind(self, name: str, value: Any) -> None:
        self._tainted.pop(name, None)
        self._iterators.pop(name, None)
        if isinstance(value, Unrepeatable):
            self._tainted[name] = value
        elif isinstance(value, PartOf):
            self._iterators[name] = value

    def load_global(self, name: str) -> Any:
        scope = self.frame.f_globals
        module = scope.get("__name__", "")
        path = Path("global", name if module == self.reads.home else f"{module}.{name}")
        if name not in scope:
            return builtin(self.reads, scope, name, self.origin())
        value = scope[name]
        self.reads.read("item", scope, name, value, path, self.origin())
        if value is os.environ:
            self.reads.error(self.origin(), f"{path} cannot be guarded: it may give something else on every call; {ENVIRONMENT}")
        return value

    def load_name(self, name: str) -> Any:
        scope = self.frame.f_locals
        return scope[name] if scope is not self.frame.f_globals and name in scope else self.load_global(name)

    def load_free(self, name: str) -> Any:
        """The variable of an outer function, or a local that inner functions share."""
        if name in self.frame.f_code.co_freevars:
            path = Path("closure cell", name) if name != "__class__" else Path("", "super()")
            for cell in self.cells(name):
                self.reads.read("cell", cell, None, cell_contents(cell), path, self.origin())
        value = self.local(name)
        value = free_variable(self.frame, name) if value is UNKNOWN else value
        return UNKNOWN if value is MISSING else value

    def cells(self, name: str) -> list[Any]:
        """The cells of ``name`` that existed before the call."""
        own = [f for f in self.functions if self.reads.path_of(f) is not None]
        return [
            (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
            for function in own or self.reads.enclosing(self.frame.f_code)
            if name in function.__code__.co_freevars
        ]

    # --- values -----------------------------------------------------------------------------------

    def attribute(self, value: Any, name: str, *, plain: bool = False) -> Any:
        """Read an attribute; a getter's result comes when its frame returns."""
        if isinstance(value, Unrepeatable):
            return value
        if value is UNKNOWN or isinstance(value, PartOf):
            return self._attribute_of_one(value, name)
        tainted = self.observer.tainted.get((id(value), name))
        if tainted is not None:
            return tainted
        found = read_attribute(self.reads, value, name, self.origin(), plain=plain)
        if found is UNKNOWN and isinstance(lookup(type(value), name), cached_property):
            self.later(lambda offset: self.returned((instance_dict(value) or {}).get(name, UNKNOWN)))
        if isinstance(found, Getter):
            self.expected = found.function  # its frame returns the value
            return UNKNOWN
        return UNKNOWN if found is MISSING else found

    def _attribute_of_one(self, part: Any, name: str) -> Any:
        """The attribute of one of several objects: of those in ``part``, or of any external one."""
        objects = self.reads.objects_with(name)
        if isinstance(part, PartOf):
            self._read_method(part, name)
            objects = [v for v in self.candidates(part) if hasattr(type(v), name) or stores(v, name)] or objects
        found = [read_attribute(self.reads, v, name, self.origin()) for v in objects]
        found = [v for v in found if v is not UNKNOWN and v is not MISSING]
        held = tuple(v for v in found if not isinstance(v, (*PLAIN, Getter, BoundFunction)))
        unknown = BoundFunction(MethodOfUnknown(name), UNKNOWN) if part is UNKNOWN and name in MUTATORS else UNKNOWN
        return PartOf((held,), 1) if held else unknown

    def _read_method(self, part: PartOf, name: str) -> None:
        """A method of a container to which no name is bound may read all of it, and must not change it."""
        candidates = self.candidates(part)
        containers = [v for v in candidates if is_container(v) and hasattr(v, name)]
        arrays = name not in _SHAPES and any(isinstance(v, np.ndarray) for v in candidates)
        if containers or arrays:
            self.iterate(part)
        if name in MUTATORS:
            self.refuse_change(containers)

    def refuse_change(self, values: Iterable[Any]) -> None:
        """No one could undo a change of one of these values, or repeat it."""
        for value in values:
            path = self.reads.path_of(value)
            if path is not None and is_container(value) and not isinstance(value, tuple | frozenset):
                message = f"@jit cannot tell whether this changes {path}: bind what is changed to a name first"
                self.reads.error(self.origin(), message)
                return

    def item(self, holder: Any, key: Any) -> Any:
        """Read ``holder[key]``."""
        if not isinstance(holder, PartOf | Parts):
            return read_item(self.reads, self.contents, holder, whole_key(key), self.origin())
        item = self.iterate(holder)
        return item.around() if isinstance(key, slice) and isinstance(item, PartOf) else item

    def truth(self, value: Any) -> None:
        """A branch depends on ``value``."""
        if isinstance(value, Unrepeatable):
            self.refuse(value)
        elif isinstance(value, PartOf):
            self.iterate(value)
        elif is_container(value) or isinstance(value, np.ndarray):
            self.contents.length(value, self.origin())

    def refuse(self, value: Unrepeatable, origin: Origin | None = None, *, stop: bool = False) -> None:
        """An unrepeatable value reaches the program or decides a branch; or it may not even be asked for (``stop``)."""
        reason = "cannot be guarded: it may give something else on every call"
        self.reads.error(origin or self.origin(), f"{value.source} {reason}; {value.remedy}", stop=stop)

    def used(self, *values: Any) -> None:
        """C code computes with these values."""
        with_tensor = any(isinstance(v, Tensor) or v is UNKNOWN for v in values)
        for value in self._candidates_of(values):
            if isinstance(value, np.ndarray):
                self.contents.operand(value) if with_tensor else self.contents.items(value, self.origin())
            elif isinstance(value, Parts):
                self.used(*value.values)
            elif not isinstance(value, (Unrepeatable, BoundFunction)) and value is not UNKNOWN:
                self.contents.everything(value, self.origin())

    def numbers(self, *values: Any) -> None:
        """C code reads the lists of numbers among these values: an index, or what is assigned at one."""
        for value in self._candidates_of(values):
            if isinstance(value, Parts):
                self.numbers(*value.values)
            elif isinstance(value, list | tuple) and _has_numbers(value):
                self.contents.everything(value, self.origin(), operands=True)

    def iterate(self, value: Any) -> Any:
        """Read the items of ``value``, as a loop does; one of them."""
        if isinstance(value, Unrepeatable):
            self.refuse(value)
            return UNKNOWN
        if isinstance(value, Parts) and (varying := [v for v in value.values if isinstance(v, Unrepeatable)]):
            return varying[0]
        part = parts_of(value)
        if not isinstance(value, PartOf):
            if is_consumed_by_reading(value) or is_container(value) or isinstance(value, np.ndarray):
                self.contents.items(value, self.origin())
            elif part is None:
                self.used(value)
        if part is None:
            return UNKNOWN
        if part.depth >= 0:
            self.contents.levels(part.sources, part.depth + 1, self.origin)
        return part.item()

    def candidates(self, part: PartOf) -> list[Any]:
        """The values that ``part`` may be, or that it holds if it is a new container."""
        return self.contents.levels(part.sources, max(part.depth, 0), self.origin)

    def _candidates_of(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            part = None if is_container(value) or isinstance(value, Parts) else parts_of(value)
            yield from (value,) if part is None else self.candidates(part)


def _has_numbers(value: Any) -> bool:
    """Whether ``value`` is a number or an array, or a list or tuple that has some in it at any depth."""
    return isinstance(value, int | float | np.ndarray) or (isinstance(value, list | tuple) and any(map(_has_numbers, value)))
