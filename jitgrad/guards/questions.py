"""Questions of a trace whose answers lie in no place that code can read: each call asks them again."""

from __future__ import annotations

import copy
import importlib
import inspect
import logging
import sys
import threading
from abc import ABCMeta
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from jitgrad.core.aval import is_number_of_trace
from jitgrad.core.tensor import Tensor
from jitgrad.guards.array_classes import class_of_result_was_asked, class_was_asked, instance_was_asked
from jitgrad.guards.attributes import UNKNOWN, BoundFunction
from jitgrad.guards.class_attributes import guard_bases, guard_class_attribute
from jitgrad.guards.contents import WEAK_CONTAINERS
from jitgrad.guards.guard import IMMUTABLE, Path
from jitgrad.guards.object_state import lookup
from jitgrad.guards.observed_files import is_standard_library
from jitgrad.guards.part_of import PartOf, Parts
from jitgrad.guards.shadow import ShadowFrame

_ASKED_AGAIN: frozenset[Any] = frozenset(
    [
        logging.Logger.isEnabledFor, logging.Logger.getEffectiveLevel, logging.Logger.hasHandlers,
        np.geterr, np.getbufsize, np.get_printoptions, threading.Event.is_set, threading.Thread.is_alive,
    ]
)  # fmt: skip
_ASKED_OF = ("sys", "gc", "signal", "_signal", "faulthandler", "_locale", "resource", "_socket", "_tracemalloc")
_OF_OBJECTS = frozenset(["locked", "qsize", "empty", "cache_info"])  # methods of locks, queues and caches
_SETTINGS = frozenset([("jitgrad.runtime.executor.thread_pool", "get_num_threads")])  # by name: it is in a room above
_IMPORTERS: frozenset[Any] = frozenset([importlib.import_module, __import__])

_LEVELS = {  # of what loggers write
    logging.Logger.debug: logging.DEBUG, logging.Logger.info: logging.INFO, logging.Logger.warning: logging.WARNING,
    logging.Logger.error: logging.ERROR, logging.Logger.exception: logging.ERROR, logging.Logger.critical: logging.CRITICAL,
}  # fmt: skip


def ask(frame: ShadowFrame, callee: Any, args: list[Any]) -> Any:
    """Guard the answer that ``callee`` gives, if it is known for such a question; the answer, or UNKNOWN."""
    if callee is isinstance or callee is issubclass:
        _instance_check(frame, callee, args)
    elif (callee is type or callee is np.isscalar) and len(args) == 1:
        _type_of_number(frame, args[0])
    elif isinstance(callee, FunctionType) and (
        callee in _ASKED_AGAIN or (callee.__module__, callee.__name__) in _SETTINGS
    ):
        _again(frame, callee, args)
    elif callee in _IMPORTERS if isinstance(callee, FunctionType | BuiltinFunctionType) else False:
        if args and isinstance(args[0], str):
            frame.reads.imports.setdefault(args[0], frame.origin())
    elif isinstance(callee, FunctionType) and callee.__module__ == inspect.__name__:
        _signatures(frame, args)
    elif (callee is str or callee is repr or callee is format) and args and isinstance(args[0], np.ndarray):
        _again(frame, np.get_printoptions, [])
    elif callee is callable and args and _is_known(args[0]):
        guard_class_attribute(frame.reads, type(args[0]), "__call__", frame.origin())
    elif isinstance(callee, BuiltinFunctionType) and _gives_a_setting(frame, callee):
        _again(frame, callee, args)
    elif callee is dir and args and frame.reads.path_of(args[0]) is not None:
        _again(frame, dir, args[:1])
    elif isinstance(callee, BuiltinFunctionType) and callee.__name__ == "__subclasses__":
        _again(frame, callee, [])
        return Parts(tuple(callee()))
    return UNKNOWN


def _gives_a_setting(frame: ShadowFrame, callee: BuiltinFunctionType) -> bool:
    """Whether ``callee`` is like sys.getswitchinterval, or lock.locked of an outside lock."""
    if callee.__module__ in _ASKED_OF:
        return callee.__name__.startswith(("get", "is_")) and callee not in (sys.gettrace, sys.getprofile)
    return callee.__name__ in _OF_OBJECTS and frame.reads.path_of(callee.__self__) is not None


def is_logged(function: FunctionType, args: list[Any]) -> bool:
    """Whether ``function(*args)`` is a call of a logger that writes the message."""
    level = _LEVELS.get(function) if function.__module__ == "logging" else None
    return level is not None and isinstance(args[0], logging.Logger) and args[0].isEnabledFor(level)


def used_weakly(frame: ShadowFrame, *values: Any) -> Any:
    """Methods in Python code, which is not followed, read these containers of weak references; one of their values."""
    held = [value for value in values if isinstance(value, WEAK_CONTAINERS)]
    if not held or is_standard_library(frame.frame.f_code.co_filename):  # functools.singledispatch has such a cache
        return UNKNOWN
    frame.used(*held)
    return PartOf((tuple([part for value in held if hasattr(value, "values") for part in value.values()]),), 1)


def _again(frame: ShadowFrame, callee: Callable[..., Any], args: list[Any]) -> None:
    """Every call asks ``callee(*args)``, and compares the answers by ``==``."""
    if all(map(_is_known, args)):
        path = Path("", f"{callee.__qualname__}({', '.join(repr(a) for a in args if isinstance(a, IMMUTABLE))})")
        try:
            answer = callee(*args)
        except Exception:  # the user's code will see it
            return
        frame.reads.check("answer", callee, tuple(args), answer, path, frame.origin())


def _instance_check(frame: ShadowFrame, callee: Any, args: list[Any]) -> None:
    """An abstract class may get another virtual subclass, and other metaclasses may answer as they like."""
    value, classes = (*args, UNKNOWN, UNKNOWN)[:2]
    if value is UNKNOWN and callee is isinstance:
        class_of_result_was_asked()
    for cls in classes if isinstance(classes, tuple) else (classes,):
        if isinstance(cls, type) and callee is isinstance:
            instance_was_asked(value, cls)
        if not isinstance(cls, type) or type(value) is cls:
            continue
        if _is_known(value):
            guard_bases(frame.reads, value if callee is issubclass else type(value), "__mro__", frame.origin())
        judge = lookup(type(cls), "__instancecheck__" if callee is isinstance else "__subclasscheck__")
        if judge is lookup(ABCMeta, judge.__name__) and _has_class(value):
            _again(frame, issubclass, [value if callee is issubclass else type(value), cls])
        elif isinstance(judge, FunctionType) and judge is not lookup(ABCMeta, judge.__name__):
            _again(frame, callee, [value, cls])


def _type_of_number(frame: ShadowFrame, value: Any) -> None:
    """The class of a number argument is that of a value; the trace remembers that the function needs it."""
    if frame.frame.f_globals is vars(copy):  # which takes what it does not know as an object with methods
        return
    if is_number_of_trace(value):
        error = value.needed("type()")
        if not value.positions:
            raise error
    elif value is UNKNOWN:
        class_of_result_was_asked()
    else:
        class_was_asked(value)


def _has_class(value: Any) -> bool:
    return value is not UNKNOWN and not isinstance(value, Parts | PartOf | BoundFunction)


def _is_known(value: Any) -> bool:
    return _has_class(value) and not isinstance(value, Tensor)


def _signatures(frame: ShadowFrame, args: list[Any]) -> None:
    """The module ``inspect`` reads the defaults of functions, and the attributes of objects."""
    for function in args:
        path = frame.reads.path_of(function)
        if path is not None and not isinstance(function, FunctionType | Tensor) and _is_known(function):
            _again(frame, dir, [function])
            frame.contents.everything(function, frame.origin(), attributes=True)
        if isinstance(function, FunctionType) and path is not None:
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                frame.reads.check("attribute", function, name, getattr(function, name), path.attr(name), frame.origin())
