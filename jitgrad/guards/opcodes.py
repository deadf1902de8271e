"""What each instruction of CPython 3.11 to 3.14 reads, writes and does to the shadow of the stack."""

from __future__ import annotations

import dis
import operator
import sys
from collections import deque
from collections.abc import Callable
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.guards.attributes import NULL, UNKNOWN, BoundFunction, read_attribute
from jitgrad.guards.containers import contains, mutate, write_item
from jitgrad.guards.contents import WEAK_CONTAINERS
from jitgrad.guards.guard import Path, cell_contents
from jitgrad.guards.identities import compare_by_identity, find_somewhere
from jitgrad.guards.object_state import MISSING
from jitgrad.guards.observed_files import is_observed
from jitgrad.guards.part_of import PartOf
from jitgrad.guards.questions import used_weakly
from jitgrad.guards.reads import PLAIN, is_container
from jitgrad.guards.shadow import Handler, ShadowFrame, Unrepeatable, whole_key
from jitgrad.guards.unseen_stores import change_items, is_unknown, store_attribute, store_item

HANDLERS: dict[str, Handler] = {}

VERSION = sys.version_info[:2]
SELF_AFTER = VERSION >= (3, 13)  # a call's callable comes before the place of self


def on_opcodes(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


@on_opcodes(
    "RESUME", "NOP", "CACHE", "EXTENDED_ARG", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "NOT_TAKEN", "JUMP_FORWARD",
    "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "DELETE_FAST", "SETUP_ANNOTATIONS", "DELETE_NAME", "END_SEND",
)  # fmt: skip
def _nothing(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    """Changes nothing that a shadow follows."""


@on_opcodes(
    "ASYNC_GEN_WRAP", "BEFORE_ASYNC_WITH", "CALL_INTRINSIC_2", "CHECK_EG_MATCH", "CHECK_EXC_MATCH", "CLEANUP_THROW",
    "END_ASYNC_FOR", "GET_AITER", "GET_ANEXT", "GET_AWAITABLE", "IMPORT_STAR", "INTERPRETER_EXIT", "PREP_RERAISE_STAR",
    "PUSH_EXC_INFO", "RAISE_VARARGS", "RERAISE", "RETURN_GENERATOR", "SEND", "WITH_EXCEPT_START",
)  # fmt: skip
def _forget(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    """Exceptions, coroutines and generators: what is on the stack afterwards is not known."""
    frame.forget()


# --- names and constants ------------------------------------------------------------------------------------


@on_opcodes("PUSH_NULL")
def _push_null(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    frame.push(NULL)


@on_opcodes("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL")
def _load_const(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    frame.push(i.argval)


@on_opcodes("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_fast(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    for name in i.argval if isinstance(i.argval, tuple) else (i.argval,):
        frame.push(frame.local(name))


@on_opcodes("LOAD_FAST_AND_CLEAR", "LOAD_CLOSURE", "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR", "LOAD_LOCALS",
         "LOAD_COMMON_CONSTANT", "LOAD_SPECIAL")  # fmt: skip
def _load_unknown(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    if i.opname == "LOAD_SPECIAL":  # replaces a context manager by its method and itself
        frame.pop()
        frame.push(UNKNOWN)
    frame.push(UNKNOWN)


@on_opcodes("STORE_FAST", "STORE_FAST_MAYBE_NULL", "STORE_NAME", "STORE_DEREF", "DELETE_DEREF")
def _store(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.pop() if i.opname != "DELETE_DEREF" else UNKNOWN
    if i.opname.endswith("DEREF") and i.argval in frame.frame.f_code.co_freevars:
        for cell in frame.cells(i.argval):
            frame.reads.write("cell", cell, None, cell_contents(cell), Path("nonlocal", i.argval), frame.origin())
            if isinstance(value, Unrepeatable):
                frame.reads.varies(cell, None)
    frame.bind(i.argval, value)


@on_opcodes("STORE_FAST_STORE_FAST")
def _store_two(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    for name in i.argval:
        frame.bind(name, frame.pop())


@on_opcodes("STORE_FAST_LOAD_FAST")
def _store_and_load(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    stored, loaded = i.argval
    value = frame.pop()
    frame.bind(stored, value)
    frame.push(value if stored == loaded else frame.local(loaded))


@on_opcodes("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
def _load_global(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    with_null = i.opname == "LOAD_GLOBAL" and bool((i.arg or 0) & 1)
    if i.opname == "LOAD_FROM_DICT_OR_GLOBALS":
        frame.pop()
    value = frame.load_global(i.argval) if i.opname == "LOAD_GLOBAL" else frame.load_name(i.argval)
    push_callable(frame, value, with_null)


def push_callable(frame: ShadowFrame, value: Any, with_null: bool) -> None:
    """Push a value, beside the place of a missing self if it is to be called."""
    if with_null and not SELF_AFTER:
        frame.push(NULL)
    frame.push(value)
    if with_null and SELF_AFTER:
        frame.push(NULL)


@on_opcodes("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
def _load_deref(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    if i.opname == "LOAD_FROM_DICT_OR_DEREF":
        frame.pop()
    frame.push(frame.load_free(i.argval))


@on_opcodes("STORE_GLOBAL", "DELETE_GLOBAL")
def _store_global(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.pop() if i.opname == "STORE_GLOBAL" else UNKNOWN
    scope = frame.frame.f_globals
    path = Path("global", i.argval)
    frame.reads.write("item", scope, i.argval, scope.get(i.argval, MISSING), path, frame.origin())
    if isinstance(value, Unrepeatable):
        frame.reads.varies(scope, i.argval)


@on_opcodes("IMPORT_NAME")
def _import(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    names, level = frame.pop(), frame.pop()
    frame.push(UNKNOWN)
    package = str(frame.frame.f_globals.get("__package__"))
    name = resolve_name("." * level + i.argval, package) if level else i.argval
    given = name if names else name.partition(".")[0]
    frame.reads.imports.update(dict.fromkeys((name, given), frame.origin()))
    frame.later(lambda offset: frame.returned(sys.modules.get(given, UNKNOWN)))


@on_opcodes("IMPORT_FROM")
def _import_from(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    module = frame.peek()
    frame.push(frame.attribute(module, i.argval) if isinstance(module, ModuleType) else UNKNOWN)


# --- attributes, items --------------------------------------------------------------------------------------


@on_opcodes("LOAD_ATTR", "LOAD_METHOD")
def _load_attr(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    as_method = i.opname == "LOAD_METHOD" or (VERSION >= (3, 12) and bool((i.arg or 0) & 1))
    push_callable(frame, frame.attribute(frame.pop(), i.argval), as_method)


@on_opcodes("LOAD_SUPER_ATTR")
def _load_super_attr(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    receiver, cls, _super = frame.pop(), frame.pop(), frame.pop()
    value: Any = UNKNOWN
    if isinstance(cls, type) and receiver is not UNKNOWN:
        value = read_attribute(frame.reads, super(cls, receiver), i.argval, frame.origin())
        value = value if not hasattr(value, "receiver") or isinstance(value, BoundFunction) else UNKNOWN
    push_callable(frame, value, bool((i.arg or 0) & 1))


@on_opcodes("STORE_ATTR", "DELETE_ATTR")
def _store_attr(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    holder = frame.pop()
    value = frame.pop() if i.opname == "STORE_ATTR" else UNKNOWN
    store_attribute(frame, holder, i.argval, value)


@on_opcodes("BINARY_SUBSCR")
def _subscript(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    key, holder = frame.pop(), frame.pop()
    if isinstance(holder, Unrepeatable):
        frame.push(holder)
        return
    frame.numbers(key)
    frame.expect_method(holder, "__getitem__")  # of a class in Python code, whose frame returns the item
    getter = frame.expected
    frame.arguments = [holder, key]
    frame.push(used_weakly(frame, holder) if _has_own_frame(getter, holder) else frame.item(holder, key))


def _has_own_frame(getter: Any, holder: Any) -> bool:
    """Whether the reads of ``getter``, a method of ``holder``, are followed, or need not be."""
    if not isinstance(getter, FunctionType) or isinstance(holder, Tensor):
        return False
    return is_observed(getter.__code__.co_filename) or isinstance(holder, WEAK_CONTAINERS)


@on_opcodes("BINARY_SLICE")
def _binary_slice(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    stop, start, holder = frame.pop(), frame.pop(), frame.pop()
    known = whole_key(start) is not UNKNOWN and whole_key(stop) is not UNKNOWN
    frame.push(frame.item(holder, slice(start, stop) if known else UNKNOWN))


@on_opcodes("STORE_SUBSCR", "DELETE_SUBSCR")
def _store_subscript(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    key, holder = frame.pop(), frame.pop()
    value = frame.pop() if i.opname == "STORE_SUBSCR" else UNKNOWN
    if not is_container(holder):
        frame.numbers(key, value)
    store_item(frame, holder, key, value, "[]=" if i.opname == "STORE_SUBSCR" else "del")


@on_opcodes("STORE_SLICE")
def _store_slice(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    _stop, _start, holder, _values = frame.pop(), frame.pop(), frame.pop(), frame.pop()
    store_item(frame, holder, UNKNOWN, UNKNOWN, "[]=")


# --- operators ----------------------------------------------------------------------------------------------

_INTEGER = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


@on_opcodes("BINARY_OP")
def _binary(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    if i.argrepr == "[]":  # Python 3.14
        _subscript(frame, i, after)
        return
    right, left = frame.pop(), frame.pop()
    for value in (left, right):
        if isinstance(value, Unrepeatable):
            _check_operand(frame, value, right if value is left else left)
            frame.push(value)
            return
    symbol = i.argrepr.rstrip("=")
    if type(left) is type(right) is str and symbol == "+":
        frame.push(left + right)
        return
    if type(left) is type(right) is int and symbol in _INTEGER and (right or symbol not in "//%"):
        frame.push(_INTEGER[symbol](left, right))
        return
    if i.argrepr.endswith("=") and is_unknown(left) and not isinstance(right, (*PLAIN, Tensor)):
        change_items(frame, left, i.argrepr)
    elif i.argrepr.endswith("="):  # in place
        mutate(frame.reads, left, frame.origin(), i.argrepr)
        if isinstance(left, np.ndarray):
            write_item(frame.reads, left, UNKNOWN, frame.origin())
    # a list in place does not read its own items
    frame.used(*([right] if i.argrepr == "+=" and isinstance(left, list | deque) else [left, right]))
    # an in-place operator of a tensor or a container gives the object itself
    frame.push(left if i.argrepr.endswith("=") and isinstance(left, Tensor | list | set | dict | np.ndarray) else UNKNOWN)


def _check_operand(frame: ShadowFrame, value: Unrepeatable, other: Any) -> None:
    if isinstance(other, Tensor | np.ndarray):
        frame.refuse(value)


@on_opcodes("COMPARE_OP", "IS_OP", "CONTAINS_OP")
def _compare(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    right, left = frame.pop(), frame.pop()
    frame.push(UNKNOWN)
    for value in (left, right):
        if isinstance(value, Unrepeatable) and i.opname != "IS_OP":
            frame.refuse(value)
    if i.opname == "CONTAINS_OP":
        if isinstance(right, PartOf):
            frame.used(right)
            compare_by_identity(frame.reads, frame.candidates(right.item()), [left])
        if right is UNKNOWN:
            find_somewhere(frame.reads, left)
        contains(frame.reads, frame.contents, right, whole_key(left), frame.origin())
    elif i.opname == "IS_OP":
        if all(frame.reads.path_of(value) is not None for value in (left, right)):
            frame.reads.identical.update((id(left), id(right)))
        one, other = (frame.candidates(x) if isinstance(x, PartOf) else [x] for x in (left, right))
        compare_by_identity(frame.reads, one, other)
    elif i.opname == "COMPARE_OP":
        frame.used(left, right)


@on_opcodes("UNARY_NOT", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "TO_BOOL")
def _unary(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.pop()
    if i.opname in ("UNARY_NOT", "TO_BOOL"):
        frame.truth(value)
        frame.push(UNKNOWN)
    elif type(value) is int and i.opname == "UNARY_NEGATIVE":
        frame.push(-value)
    else:
        frame.used(value)
        frame.push(value if isinstance(value, Unrepeatable) else UNKNOWN)
