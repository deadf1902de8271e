"""Builtin functions that read and store attributes and items: getattr, setattr, len, vars, next and their like."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from string import Formatter
from types import BuiltinFunctionType, MethodWrapperType
from typing import Any

import numpy as np

from jitgrad.guards.array_classes import attribute_was_asked, class_of_result_was_asked
from jitgrad.guards.attributes import UNKNOWN
from jitgrad.guards.containers import read_item
from jitgrad.guards.denylist import is_consumed_by_reading, is_read_unseen
from jitgrad.guards.identities import compare_by_identity
from jitgrad.guards.part_of import PartOf, Parts, parts_of
from jitgrad.guards.questions import used_weakly
from jitgrad.guards.reads import DICT_VIEWS, is_container, viewed
from jitgrad.guards.shadow import ShadowFrame
from jitgrad.guards.unseen_stores import store_attribute, store_item

Args = list[Any]

GETTERS = (operator.attrgetter, operator.itemgetter, operator.methodcaller)


def rule_of_builtin(callee: Any) -> Callable[[ShadowFrame, Args], Any] | None:
    """What a call of ``callee`` reads, if there is a rule for it."""
    if isinstance(getattr(callee, "__self__", None), str) and callee.__name__ in ("format", "format_map"):
        return _format
    return _RULES.get(callee) if _hashable(callee) else None


def _format(frame: ShadowFrame, args: Args) -> Any:
    """``text.format(...)``, which may read attributes, as of ``{0.rate}``; items are read of all containers."""
    text, *given = args
    names = [name for _, name, _, _ in Formatter().parse(text) if name]
    for arg in given:
        frame.used(arg)
        if arg is not UNKNOWN and any("." in name for name in names):
            frame.contents.everything(arg, frame.origin(), attributes=True)
    return UNKNOWN


def store_by(callee: Any, name: str) -> Callable[[ShadowFrame, Args], Any] | None:
    """How ``callee`` stores, if it is one of the functions that store an attribute or an item."""
    if isinstance(callee, MethodWrapperType) and name in ("__setattr__", "__delattr__"):  # super().__setattr__
        return _STORES[object.__setattr__]
    return _STORES.get(callee) if _hashable(callee) else None


def apply_getter(frame: ShadowFrame, getter: Any, args: Args) -> Any:
    """operator.attrgetter and its like, whose parts ``__reduce__`` shows."""
    names = getter.__reduce__()[1]
    values: list[Any] = []
    for name in names if not isinstance(getter, operator.methodcaller) else names[:1]:
        value = args[0] if args else UNKNOWN
        if isinstance(getter, operator.itemgetter):
            values.append(frame.item(value, name))
            continue
        for part in str(name).split("."):
            value = frame.attribute(value, part)
        values.append(value)
    if isinstance(getter, operator.methodcaller):
        return UNKNOWN
    return values[0] if len(values) == 1 else Parts(tuple(values))


def _getattr(frame: ShadowFrame, args: Args, *, plain: bool = False) -> Any:
    target, name, default = (*args, UNKNOWN, UNKNOWN, UNKNOWN)[:3]
    if target is UNKNOWN:
        class_of_result_was_asked()
    attribute_was_asked(target, name)
    if isinstance(name, str):
        value = frame.attribute(target, name, plain=plain)
        return PartOf((default,), 0) if value is UNKNOWN and is_container(default) else value
    if target is not UNKNOWN:
        frame.contents.everything(target, frame.origin(), attributes=True)
    return UNKNOWN


def _setattr(frame: ShadowFrame, args: Args, *, plain: bool = False) -> Any:
    holder, name, value = (*args, UNKNOWN, UNKNOWN, UNKNOWN)[:3]
    store_attribute(frame, holder, name, value, plain=plain)
    return UNKNOWN


def _setitem(frame: ShadowFrame, args: Args, operation: str = "[]=") -> Any:
    holder, key, value = (*args, UNKNOWN, UNKNOWN, UNKNOWN)[:3]
    store_item(frame, holder, key, value, operation)
    return UNKNOWN


def _len(frame: ShadowFrame, args: Args) -> Any:
    if args and (is_container(args[0]) or isinstance(args[0], np.ndarray)):
        frame.contents.length(args[0], frame.origin())
    elif args and is_read_unseen(type(args[0])):
        frame.used(args[0])
    used_weakly(frame, *args)
    if args and isinstance(args[0], DICT_VIEWS):
        frame.contents.length(viewed(args[0]), frame.origin())
    return UNKNOWN


def _vars(frame: ShadowFrame, args: Args) -> Any:
    if not args or args[0] is UNKNOWN:
        return UNKNOWN
    if not isinstance(args[0], PartOf):
        return frame.attribute(args[0], "__dict__")
    return PartOf((tuple([frame.attribute(value, "__dict__") for value in frame.candidates(args[0])]),), 1)


def _dir(frame: ShadowFrame, args: Args) -> Any:
    for value in frame.candidates(args[0]) if args and isinstance(args[0], PartOf) else args[:1]:
        frame.contents.everything(value, frame.origin(), attributes=True)
    return UNKNOWN


def _next(frame: ShadowFrame, args: Args) -> Any:
    path = frame.reads.path_of(args[0]) if args else None
    if path is None or not is_consumed_by_reading(args[0]):
        return frame.iterate(args[0]) if args and parts_of(args[0]) is not None else UNKNOWN
    frame.contents.items(args[0], frame.origin())  # refuses it
    return UNKNOWN


def _compare_by_identity(frame: ShadowFrame, args: Args) -> Any:
    compare_by_identity(frame.reads, args[:1], args[1:])
    return UNKNOWN


_STORES: dict[Any, Callable[[ShadowFrame, Args], Any]] = {  # which may store a clock's reading, too
    setattr: _setattr,
    delattr: _setattr,
    object.__setattr__: lambda frame, args: _setattr(frame, args, plain=True),
    object.__delattr__: lambda frame, args: _setattr(frame, args, plain=True),
    operator.setitem: _setitem,
    operator.delitem: lambda frame, args: _setitem(frame, args, "del"),
}
_RULES: dict[Any, Callable[[ShadowFrame, Args], Any]] = {
    getattr: _getattr,
    hasattr: _getattr,
    object.__getattribute__: lambda frame, args: _getattr(frame, args, plain=True),
    len: _len,
    vars: _vars,
    dir: _dir,
    next: _next,
    operator.is_: _compare_by_identity,
    operator.is_not: _compare_by_identity,
    operator.getitem: lambda frame, args: read_item(frame.reads, frame.contents, args[0], args[1], frame.origin()),
}


def _hashable(value: Any) -> bool:
    return isinstance(value, BuiltinFunctionType | type | functools._lru_cache_wrapper) or hasattr(value, "__objclass__")
