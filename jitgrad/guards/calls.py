"""Calls that observed code makes: what C code reads and changes of its arguments, and what it may not."""

from __future__ import annotations

import builtins
import functools
import io
import itertools
import math
import time
import weakref
from collections import deque, namedtuple
from collections.abc import Sequence
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType
from typing import Any

import numpy as np

from jitgrad.core.ir import Value
from jitgrad.core.tensor import Tensor
from jitgrad.guards.attributes import NULL, UNKNOWN, BoundFunction, MethodOfUnknown
from jitgrad.guards.builtin_functions import GETTERS, Args, apply_getter, rule_of_builtin, store_by
from jitgrad.guards.class_attributes import guard_class_attribute
from jitgrad.guards.container_methods import container_method
from jitgrad.guards.denylist import remedy_for
from jitgrad.guards.guard import Path
from jitgrad.guards.identities import identity_of
from jitgrad.guards.object_state import MISSING, is_heap_type, lookup
from jitgrad.guards.observed_files import is_observed
from jitgrad.guards.part_of import MadeFunction, PartOf, Parts, join
from jitgrad.guards.questions import ask, is_logged, used_weakly
from jitgrad.guards.reads import PLAIN, is_container
from jitgrad.guards.shadow import ShadowFrame, Unrepeatable
from jitgrad.guards.unrepeatable import keep_in_files, read_unrepeatable, result_of_unrepeatable, writes_file
from jitgrad.guards.unseen_stores import change_items, compare_attributes, compare_containers
from jitgrad.guards.writes import tensors_in

_NAMEDTUPLE = namedtuple.__code__
_WRITING = frozenset(["write", "writelines", "flush", "close", "fileno", "isatty", "__exit__", "__enter__"])
_WITHOUT_READING = (  # ask only for the type, the identity or whether an object can be called
    isinstance, issubclass, type, id, callable, print, repr, super, hash,
)  # fmt: skip
_EACH_ITEM = (
    list, tuple, set, frozenset, dict, deque, zip, enumerate, iter, reversed, filter, map, sum, sorted, min, max, any, all,
    itertools.chain, itertools.islice, itertools.product, itertools.accumulate, math.prod, functools.reduce,
)  # fmt: skip
_GIVE_AN_ITEM = (min, max, functools.reduce, sum)  # the result may be an item, whose items are read then
_GIVE_TUPLES = (zip, enumerate, itertools.product)
_JUDGE_ITEMS = (any, all, filter)  # read whether items are empty
_SLEEP = (time.sleep,)


def _is_one_of(callee: Any, functions: tuple[Any, ...]) -> bool:
    """By identity: the ``==`` of a callable object is the user's."""
    return any(callee is function for function in functions)


def _names_fields(frame: ShadowFrame, callee: Any) -> bool:
    """Whether ``namedtuple`` evaluates a text that it made of its arguments, which gives the same again."""
    return callee is eval and frame.frame.f_code is _NAMEDTUPLE


def observe_call(frame: ShadowFrame, callee: Any, args: Args, keywords: Sequence[str] = ()) -> Any:
    """The result of a call as far as it is known; reads and writes of C code are recorded."""
    if isinstance(callee, MadeFunction):
        frame.expected, frame.arguments = callee, args
    if isinstance(callee, Unrepeatable | MadeFunction):
        return callee if isinstance(callee, Unrepeatable) else UNKNOWN
    if isinstance(callee, PartOf):
        _call_native(frame, UNKNOWN, args)
        receivers = tuple(getattr(method, "__self__", None) for method in frame.candidates(callee))
        return PartOf((receivers,), 2)  # items of them, or what holds these
    if isinstance(callee, BoundFunction):
        if not isinstance(callee.function, MethodOfUnknown):
            return observe_call(frame, callee.function, [callee.receiver, *args], keywords)
        change_items(frame, UNKNOWN, callee.function.name)
        return _call_native(frame, UNKNOWN, args)
    if isinstance(callee, functools.partial):
        return observe_call(frame, callee.func, [*callee.args, *args, *callee.keywords.values()], keywords)
    remedy = remedy_for(callee) if callee is not UNKNOWN else None
    if callee is print or callee is builtins.open:
        frame.reads.prints[f"{callee.__name__} ({frame.origin()})"] = None
    known = _is_one_of(callee, _SLEEP) or writes_file(callee, args, keywords) or _names_fields(frame, callee)
    if remedy is not None and not known:
        return read_unrepeatable(frame, callee, remedy)
    if isinstance(callee, MethodType):
        return observe_call(frame, callee.__func__, [callee.__self__, *args], keywords)
    if (answer := ask(frame, callee, args)) is not UNKNOWN:
        return answer
    if isinstance(callee, FunctionType):
        return _call_function(frame, callee, args)
    if isinstance(callee, type):
        return _call_class(frame, callee, args)
    if isinstance(callee, functools._lru_cache_wrapper):
        _call_cached(frame, callee, args, keywords)
        return UNKNOWN
    own_call = lookup(type(callee), "__call__")
    if isinstance(own_call, FunctionType) and not isinstance(callee, Tensor):
        guard_class_attribute(frame.reads, type(callee), "__call__", frame.origin())
        _wrapped(frame, callee)
        return _call_function(frame, own_call, [callee, *args])
    return _call_native(frame, callee, args)


def _call_cached(frame: ShadowFrame, callee: Any, args: Args, keywords: Sequence[str]) -> None:
    """A function with functools.lru_cache: the guard compares what the cache holds, as eager code gets it."""
    _wrapped(frame, callee)
    path, changes = frame.reads.path_of(callee), frame.reads.changes
    known = not any(isinstance(arg, Tensor | Parts | PartOf | Unrepeatable | BoundFunction) or arg is UNKNOWN for arg in args)
    if path is None or callee.cache_parameters()["maxsize"] == 0:
        return
    if not known:
        frame.later(lambda offset: _refuse_changes(frame, path, changes))
        return
    count = len(args) - len(keywords)
    positional, named = tuple(args[:count]), dict(zip(keywords, args[count:], strict=True))
    listed = ", ".join([*map(repr, positional), *(f"{name}={value!r}" for name, value in named.items())])
    called = Path(path.label, f"{path.text}({listed})")

    def arrive(offset: int) -> None:
        result = callee(*positional, **named)  # from the cache
        _refuse_changes(frame, path, changes)
        frame.reads.read("cached", callee, (positional, named), result, called, frame.origin())
        if any(type(tensor._data) is Value for tensor in tensors_in(result)):
            # the trace filled the cache: the next call finds tensors there, which are inputs then
            frame.reads.check("absent", {listed: True}, listed, MISSING, called, frame.origin())
        frame.returned(result)

    frame.later(arrive)


def _refuse_changes(frame: ShadowFrame, path: Path, changes: int) -> None:
    """A cached function ran and changed state outside: that is undone after the trace, but the cache keeps the result."""
    if frame.reads.changes > changes:
        frame.reads.error(
            frame.origin(),
            f"{path} has a cache of results, and changes Python state when it computes one, which a compiled program would not "
            "do: call it outside and pass the result, or take the cache off it",
        )


def _wrapped(frame: ShadowFrame, callee: Any) -> None:
    """A wrapper such as functools.lru_cache calls the function that it wraps."""
    path = frame.reads.path_of(callee)
    if path is not None:
        frame.reads.external(getattr(callee, "__wrapped__", None), path)


def _call_function(frame: ShadowFrame, function: FunctionType, args: Args) -> Any:
    """A Python function: its frame is observed, or it is jitgrad's or NumPy's."""
    filename = function.__code__.co_filename
    if is_observed(filename):
        frame.expected, frame.arguments = function, args
        return UNKNOWN
    library = str(function.__globals__.get("__name__")).partition(".")[0]  # ``__module__`` may be that of a wrapped function
    if is_logged(function, args):
        frame.reads.prints[f"{function.__name__} ({frame.origin()})"] = None
    if library not in ("jitgrad", "numpy"):  # a part of the standard library whose reads do not matter
        compare_attributes(frame, args)
        return used_weakly(frame, *args[:1])
    for arg in args:
        if isinstance(arg, Unrepeatable):
            frame.refuse(arg)
        _pass_to_library(frame, arg, operands=library == "jitgrad")
    return UNKNOWN


def _pass_to_library(frame: ShadowFrame, value: Any, *, operands: bool) -> None:
    """jitgrad and NumPy read containers and objects as a whole."""
    if value is UNKNOWN or value is NULL or isinstance(value, Unrepeatable | BoundFunction):
        return
    if isinstance(value, Parts | PartOf):
        for part in value.values if isinstance(value, Parts) else frame.candidates(value):
            _pass_to_library(frame, part, operands=operands)
    elif not isinstance(value, Tensor):
        frame.contents.everything(value, frame.origin(), attributes=True, operands=operands)


def _call_class(frame: ShadowFrame, cls: type, args: Args) -> Any:
    reads, origin = frame.reads, frame.origin()
    if cls is super and not args:
        return _super_of(frame)
    if cls is super and len(args) == 2 and isinstance(args[0], type) and args[1] is not UNKNOWN:
        return super(args[0], args[1])
    if cls is type and len(args) == 1:
        return type(args[0]) if reads.path_of(args[0]) is not None else UNKNOWN
    if cls in _EACH_ITEM:
        return _each_item(frame, cls, args)
    if cls in GETTERS and all(isinstance(arg, str | int) for arg in args):
        return cls(*args)
    elif cls in (float, int, str) and args and isinstance(args[0], Unrepeatable):
        return args[0]
    elif cls not in _WITHOUT_READING:
        meta_call = lookup(type(cls), "__call__")
        if isinstance(meta_call, FunctionType):
            guard_class_attribute(reads, type(cls), "__call__", origin)
        for name in ("__new__", "__init__"):
            guard_class_attribute(reads, cls, name, origin)
        init = lookup(cls, "__init__")
        if not isinstance(init, FunctionType) or not is_observed(init.__code__.co_filename):
            frame.used(*args)
    return UNKNOWN


def _super_of(frame: ShadowFrame) -> Any:
    """``super()`` in a method."""
    values, code = frame.frame.f_locals, frame.frame.f_code
    owner = values.get("__class__")
    receiver = values.get(code.co_varnames[0]) if code.co_argcount else None
    if isinstance(owner, type) and receiver is not None:
        frame.load_free("__class__")
        return super(owner, receiver)
    return UNKNOWN


# --- C functions and methods --------------------------------------------------------------------------------


def _call_native(frame: ShadowFrame, callee: Any, args: Args) -> Any:
    receiver = getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", "")
    if isinstance(callee, BuiltinFunctionType | MethodWrapperType) and receiver is not None and not _is_module(receiver):
        args = [receiver, *args]
    _wrapped(frame, callee)
    if (store := store_by(callee, name)) is not None:
        return store(frame, args)
    if isinstance(receiver, io.IOBase) and name in _WRITING:
        frame.reads.prints[f"{name} ({frame.origin()})"] = None
        keep_in_files(frame, args)
        return UNKNOWN
    if (result := result_of_unrepeatable(frame, callee, args)) is not None:
        return result
    if (rule := rule_of_builtin(callee)) is not None:
        return rule(frame, args)
    if isinstance(callee, weakref.ref) or (isinstance(receiver, ContextVar) and name == "get"):
        return _follow_reference(frame, callee, args)
    if _is_one_of(callee, _WITHOUT_READING) or _is_one_of(callee, _SLEEP):
        return identity_of(frame.reads, args[0]) if callee is id and args else UNKNOWN
    if args and is_container(args[0]) and (hasattr(callee, "__objclass__") or args[0] is receiver):
        return container_method(frame, name, args)
    if _is_one_of(callee, _EACH_ITEM):
        return _each_item(frame, callee, args)
    if name in ("__reduce_ex__", "__reduce__", "__getstate__"):
        frame.contents.everything(args[0], frame.origin(), attributes=True)
        return UNKNOWN
    if isinstance(callee, GETTERS):
        return apply_getter(frame, callee, args)
    _use(frame, callee, name, args)
    return UNKNOWN


def _use(frame: ShadowFrame, callee: Any, name: str, args: Args) -> None:
    """Native code of which nothing else is known reads ``args``, and may change arrays."""
    if isinstance(callee, np.ufunc) or getattr(callee, "__module__", "") == "numpy":
        frame.used(*args)
        return
    if callee is not UNKNOWN and _never_reads(args):
        return
    compare_containers(frame, args, name)
    for arg in args:
        if isinstance(arg, np.ndarray) and callee is UNKNOWN:
            frame.contents.operand(arg)
            if (read := frame.reads.owner_of(arg)) is not None:
                read.keep()
        else:
            frame.used(arg)


def _each_item(frame: ShadowFrame, callee: Any, args: Args) -> Any:
    """A loop of C code over its arguments, which may call another argument for each item."""
    items: list[PartOf] = []
    for arg in args:
        if _is_one_of(callee, _GIVE_AN_ITEM) or (callee is sorted and len(args) == 1):
            frame.used(arg)
        item = _value_of_pairs(frame, arg) if callee is dict else frame.iterate(arg)
        if isinstance(item, PartOf):
            items.append(item)
        if _is_one_of(callee, _JUDGE_ITEMS):
            frame.truth(item)
    given = [candidate for item in items for candidate in frame.candidates(item)]
    for function in args:
        if _is_of_c(function):
            for candidate in given:
                observe_call(frame, function, [candidate])
        owner = getattr(function, "__self__", None)
        if isinstance(function, BuiltinFunctionType) and is_container(owner):
            frame.used(owner)
        if isinstance(function, GETTERS):
            for held in filter(is_container, args):
                for item in held:
                    apply_getter(frame, function, [item])
    result = join(items)
    if result is None or callee is map or _is_one_of(callee, _GIVE_AN_ITEM):  # the function of map may take items apart
        return UNKNOWN if result is None else result
    return result.around(2 if _is_one_of(callee, _GIVE_TUPLES) else 1)


def _is_of_c(value: Any) -> bool:
    """Whether ``value`` is a function or a class of C code, which a loop of C code may call."""
    if isinstance(value, type):
        return not is_heap_type(value)
    return isinstance(value, BuiltinFunctionType) or hasattr(value, "__objclass__")


def _value_of_pairs(frame: ShadowFrame, pairs: Any) -> Any:
    """A value of the dict that is made of ``pairs``, or of another dict."""
    item = frame.iterate(pairs)
    if isinstance(pairs, dict):
        return PartOf((pairs,), 1)
    return frame.iterate(item) if isinstance(item, PartOf) else item


def _follow_reference(frame: ShadowFrame, callee: Any, args: Args) -> Any:
    """The value of a weak reference or a context variable."""
    if isinstance(callee, weakref.ref):
        frame.contents.everything(callee, frame.origin())
        return callee()
    frame.contents.everything(args[0], frame.origin())
    return args[0].get(*(args[1:] or [UNKNOWN]))


def _never_reads(args: Args) -> bool:
    return all(isinstance(arg, PLAIN) for arg in args)


def _is_module(value: Any) -> bool:
    return type(value).__name__ == "module"


def escape(frame: ShadowFrame, value: Any) -> None:
    """The function returns ``value``: all of it is part of the program's result."""
    if isinstance(value, Unrepeatable):
        frame.refuse(value)
    elif value is not UNKNOWN and not isinstance(value, Parts | BoundFunction):
        frame.contents.everything(value, frame.origin())
    elif isinstance(value, Parts):
        for part in value.values:
            escape(frame, part)
