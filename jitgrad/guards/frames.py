"""Observes the Python frames that run during a trace: which code, and what it reads and writes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextvars import Token
from enum import Enum
from functools import cached_property
from inspect import CO_GENERATOR
from types import CodeType, FrameType, FunctionType, MappingProxyType, TracebackType
from typing import Any, cast

from jitgrad.core.context import text_observer
from jitgrad.core.observed_frames import may_not_pause, may_pause
from jitgrad.core.origin import Origin, is_user_file
from jitgrad.guards.attributes import UNKNOWN
from jitgrad.guards.calls import escape
from jitgrad.guards.class_attributes import guard_class_attribute
from jitgrad.guards.contents import Contents
from jitgrad.guards.denylist import is_library_file
from jitgrad.guards.guard import Path, cell_contents
from jitgrad.guards.object_state import lookup
from jitgrad.guards.observed_files import is_observed, is_standard_library
from jitgrad.guards.opcodes_flow import handlers
from jitgrad.guards.part_of import MadeFunction
from jitgrad.guards.reads import Reads
from jitgrad.guards.shadow import ShadowFrame
from jitgrad.guards.tracing_turns import begin_turn, end_turn
from jitgrad.guards.unrepeatable import took_texts

Tracer = Callable[[FrameType, str, Any], Any]

class _Following(Enum):
    NEVER = "jitgrad's core, NumPy, caches"
    QUIET = "logging and other parts of the standard library"
    ALWAYS = "code of the user and of installed packages"
    FROM_OBSERVED = "the standard library, when observed code calls it"


def _following_of(frame: FrameType) -> _Following:
    filename, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
    if not is_observed(filename):
        return _Following.QUIET if is_standard_library(filename) else _Following.NEVER
    if frame.f_code is cached_property.__get__.__code__:  # filling one is no read of the object's dict
        return _Following.NEVER
    generated = filename == "<string>" and module.startswith("jitgrad.")
    return _Following.FROM_OBSERVED if generated or is_standard_library(filename) else _Following.ALWAYS


class Observer:
    """Within it, ``reads`` records what the running thread reads and writes.

    A tracer that was active before (a debugger's or a coverage tool's) sees the frames, too.
    """

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.contents: Contents = Contents(reads)
        self.tainted: dict[Any, Any] = {}
        self._shadows: dict[FrameType, ShadowFrame] = {}
        self._previous: Tracer | None = None
        self._tracer: Tracer | None = None
        self._running: ShadowFrame | None = None  # the frame whose instruction runs
        self._caller: FrameType | None = None  # the frame that calls the traced function
        self._texts: list[Any] = []  # the avals of traced tensors that this instruction has written as text so far
        self._in_library = False  # whether it has called code of the standard library that is not followed
        self._token: Token[Any] | None = None
        collector = (getattr(callback, "__code__", None) for callback in gc.callbacks)  # a collection may run them anywhere
        self._codes: dict[Any, _Following] = dict.fromkeys(collector, _Following.NEVER)

    def __enter__(self) -> Observer:
        begin_turn()
        self._token = text_observer.set(self._texts.append)
        self._previous = cast("Tracer | None", sys.gettrace())
        self._caller = sys._getframe().f_back
        sys._getframe().f_trace_opcodes = True  # Python 3.12 reports opcodes only if it knew of one such frame before
        self._tracer = self._on_call
        if self._previous is None:
            may_pause(self._tracer)
        sys.settrace(self._tracer)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        sys.settrace(self._previous)
        may_not_pause(self._tracer)
        if self._token is not None:
            text_observer.reset(self._token)
        self._shadows.clear()
        self._running = self._caller = None
        end_turn()

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        other = self._previous(frame, event, arg) if self._previous is not None else None
        following = self._codes.get(frame.f_code)
        if following is None:
            following = self._codes[frame.f_code] = _following_of(frame)
        if following is _Following.QUIET:
            self._in_library = True
        observed = frame.f_back in self._shadows or frame.f_back is self._caller
        by_library = following is _Following.FROM_OBSERVED and not observed
        if by_library or following in (_Following.NEVER, _Following.QUIET):
            return other
        shadow = self._shadows.get(frame)
        if shadow is None:
            shadow = self._shadows[frame] = ShadowFrame(self, frame, handlers())
            self._start(shadow)
        tracer = _both(shadow, other) if other is not None else shadow.trace
        frame.f_trace_lines = other is not None
        frame.f_trace = tracer  # Python 3.13 looks at f_trace_opcodes only in a frame that has a tracer
        frame.f_trace_opcodes = True
        return tracer

    def _start(self, shadow: ShadowFrame) -> None:
        """Find the function of a new frame, and guard its code and defaults."""
        frame = shadow.frame
        caller = self._shadows.get(frame.f_back) if frame.f_back is not None else None
        expected = caller.expected if caller is not None else None
        if caller is not None and isinstance(expected, FunctionType | MadeFunction) and expected.__code__ is frame.f_code:
            caller.callee = frame
            shadow.take_arguments(caller.arguments)
        shadow.functions = self._functions_of(frame, expected)
        for function in shadow.functions:
            self._guard_function(function, frame)

    def next_instruction(self, shadow: ShadowFrame | None) -> None:
        """The instruction that ran last has come to its end, or has called the frame of ``shadow``; None: it raised an error."""
        if self._texts:
            if self._running is not None and shadow is not None:
                took_texts(self._running, self._texts[0], self._in_library)
            self._texts.clear()
        self._running, self._in_library = shadow, False

    def finished(self, shadow: ShadowFrame, value: Any) -> None:
        """A frame returned ``value`` (or yielded it)."""
        self._running = self._shadows.get(shadow.frame.f_back) if shadow.frame.f_back is not None else None
        if not shadow.frame.f_code.co_flags & CO_GENERATOR:
            self._shadows.pop(shadow.frame, None)
        caller = self._shadows.get(shadow.frame.f_back) if shadow.frame.f_back is not None else None
        if caller is not None and shadow.frame.f_code.co_flags & CO_GENERATOR:
            caller.yielded = value
        if caller is not None and caller.callee is shadow.frame:
            caller.callee = None
            caller.returned(shadow.result if shadow.result is not UNKNOWN else value)
            return
        if caller is not None:
            caller.called_back(value)
        if shadow.result is not UNKNOWN and not self._is_called_by_library(shadow.frame):
            escape(shadow, shadow.result)

    def _is_called_by_library(self, frame: FrameType) -> bool:
        """Whether code of the standard library that is not followed called ``frame``, as logging calls a formatter."""
        return frame.f_back is not None and self._codes.get(frame.f_back.f_code) is _Following.QUIET

    def _functions_of(self, frame: FrameType, expected: Any) -> list[FunctionType]:
        code = frame.f_code
        if isinstance(expected, FunctionType) and expected.__code__ is code:
            return [expected]
        known = self.reads.functions.get(code, [])
        if not known and code.co_argcount:
            known = self._method_of(frame.f_locals.get(code.co_varnames[0]), code, frame)
        if len(known) > 1:
            known = [f for f in known if _has_cells(f, frame)] or known
        return known

    def _method_of(self, receiver: Any, code: CodeType, frame: FrameType) -> list[FunctionType]:
        """The method that Python called by itself, such as ``__add__``."""
        cls = receiver if isinstance(receiver, type) else type(receiver)
        raw = lookup(cls, code.co_name)
        for name in ("fget", "func", "__func__"):
            raw = getattr(raw, name, raw)
        if not isinstance(raw, FunctionType) or raw.__code__ is not code:
            return []
        guard_class_attribute(self.reads, cls, code.co_name, self.origin(frame))
        return [raw]

    def _guard_function(self, function: FunctionType, frame: FrameType) -> None:
        code, origin = function.__code__, Origin.of_code(function.__code__)
        path = self.reads.path_of(function)
        if path is None:
            return
        self.reads.check("attribute", function, "__code__", code, path.attr("__code__"), origin)
        if isinstance(registry := getattr(function, "registry", None), MappingProxyType):  # of functools.singledispatch
            self.reads.external(registry, path.attr("registry"), origin)
            self.contents.items(registry, origin)
        if function.__defaults__ is not None:
            defaults = path.attr("__defaults__")
            self.reads.check("attribute", function, "__defaults__", function.__defaults__, defaults, origin)
            names = code.co_varnames[code.co_argcount - len(function.__defaults__) : code.co_argcount]
            for name, value in zip(names, function.__defaults__, strict=True):
                self.reads.external(value, Path("default", name), origin)
        if function.__kwdefaults__ is not None:
            keyword = path.attr("__kwdefaults__")
            self.reads.read("attribute", function, "__kwdefaults__", function.__kwdefaults__, keyword, origin)
            self.contents.items(function.__kwdefaults__, origin)

    def origin(self, frame: FrameType) -> Origin:
        """The user's line that runs, in this frame or in a caller."""
        here: FrameType | None = frame
        while here is not None:
            filename = here.f_code.co_filename
            if is_user_file(filename) and not is_library_file(filename):
                return Origin(filename, here.f_lineno or here.f_code.co_firstlineno)
            here = here.f_back
        return Origin(frame.f_code.co_filename, frame.f_lineno or 0)


def _has_cells(function: FunctionType, frame: FrameType) -> bool:
    """Whether the free variables of ``frame`` hold what those of ``function`` hold."""
    values = frame.f_locals
    pairs = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return all(values.get(name, UNKNOWN) is cell_contents(cell) for name, cell in pairs)


def _both(shadow: ShadowFrame, other: Tracer) -> Tracer:
    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal other
        if event != "opcode":
            other = other(frame, event, arg) or other
        shadow.trace(frame, event, arg)
        return trace if event != "return" else None

    return trace
