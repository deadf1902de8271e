"""Calls of clocks, random generators and files, which give something else on every call."""

from __future__ import annotations

import builtins
import functools
import io
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.origin import Origin
from jitgrad.guards.attributes import UNKNOWN, BoundFunction
from jitgrad.guards.containers import MUTATORS, mutate
from jitgrad.guards.object_state import is_heap_type, lookup
from jitgrad.guards.part_of import MadeFunction, Parts
from jitgrad.guards.shadow import ShadowFrame, Unrepeatable

# unrepeatable numbers give unrepeatable numbers, and texts give texts
_PASSES_ON = (round, abs, float, int, min, max, divmod, sum, len, hash, ord, str, repr, ascii, format)
_TEXTS = (str, repr, ascii, format)
_TEXT_METHODS = ("__str__", "__repr__", "__format__", "format", "format_map", "join")
_TEXT_REMEDY = "it may be printed or logged; to compute with elements, use ops; return the tensor to make its text after the call"


def read_unrepeatable(frame: ShadowFrame, callee: Any, remedy: str) -> Any:
    """A call of a clock, a random generator, a file or the like."""
    path = frame.reads.path_of(callee)
    owner = getattr(callee, "__self__", None)
    if path is None and owner is not None and (owner_path := frame.reads.path_of(owner)) is not None:
        path = owner_path.attr(callee.__name__)
    source = str(path) if path is not None and path.text else f"`{getattr(callee, '__qualname__', callee)}`"
    value = Unrepeatable(source, remedy)
    if "clock" in remedy:
        return value
    frame.refuse(value, stop=True)
    return UNKNOWN


def took_texts(frame: ShadowFrame, aval: Aval, in_library: bool) -> None:
    """The instruction that ran last in ``frame`` wrote a traced tensor of that ``aval`` as text, which has no elements.

    What it pushed is that text, or made of it. Other C code than that of texts decides by it, as a sort does; code of the
    standard library that is not followed, such as that of logging, does not.
    """
    text = Unrepeatable(f"the text of a tensor {aval}", _TEXT_REMEDY)
    name = frame.instruction.opname if frame.instruction is not None else ""
    if not name.startswith("CALL"):
        if name == "LIST_EXTEND" and isinstance(listed := frame.peek(), Parts):
            frame.replace(1, Parts((*listed.values, text)))
            return
        for depth in range(1, frame.pushed + 1):
            frame.replace(depth, text)
    elif _makes_text(frame.called):
        frame.replace(1, text)
    elif frame.called is print:
        keep_in_files(frame, [text, *frame.given])
    elif not (_may_take_texts(frame.called) or (frame.called is UNKNOWN and in_library)):
        frame.refuse(text, _line_of(frame))


def _line_of(frame: ShadowFrame) -> Origin:
    """The user's line of the instruction that ran last, where the next one may be on another."""
    origin = frame.origin()
    positions = frame.instruction.positions if frame.instruction is not None else None
    if positions is None or positions.lineno is None or frame.frame.f_code.co_filename != origin.file:
        return origin
    return replace(origin, line=positions.lineno)


def _makes_text(callee: Any) -> bool:
    return callee in _TEXTS or getattr(callee, "__name__", "") in _TEXT_METHODS


def _may_take_texts(callee: Any) -> bool:
    """Whether ``callee`` makes an error, or is Python code, whose instructions are followed, or jitgrad's or NumPy's."""
    if isinstance(callee, functools.partial | BoundFunction):
        return _may_take_texts(callee.func if isinstance(callee, functools.partial) else callee.function)
    if isinstance(callee, type):
        return issubclass(callee, BaseException) or is_heap_type(callee)
    in_python = isinstance(callee, FunctionType | MethodType | MadeFunction)
    return in_python or isinstance(lookup(type(callee), "__call__"), FunctionType)


def result_of_unrepeatable(frame: ShadowFrame, callee: Any, args: list[Any]) -> Any:
    """What C code gives of unrepeatable values, or a text that it makes of a list of them; None: there is none."""
    if _makes_text(callee):
        return _unrepeatable_in(args)
    value = next((arg for arg in args if isinstance(arg, Unrepeatable)), None)
    return None if value is None else _pass_on(frame, callee, value, args)


def keep_in_files(frame: ShadowFrame, args: Sequence[Any]) -> None:
    """What is read of a file in memory, one of ``args``, is unrepeatable if one of the others, which is written to it, is."""
    value = next((arg for arg in args if isinstance(arg, Unrepeatable)), None)
    for file in args:
        if value is not None and isinstance(file, io.StringIO | io.BytesIO):
            frame.observer.tainted[id(file)] = value


def _unrepeatable_in(values: Sequence[Any]) -> Unrepeatable | None:
    for value in values:
        found = _unrepeatable_in(value.values) if isinstance(value, Parts) else value
        if isinstance(found, Unrepeatable):
            return found
    return None


def _pass_on(frame: ShadowFrame, callee: Any, value: Unrepeatable, args: list[Any]) -> Any:
    """Printing, formatting and keeping a clock's reading is harmless; computing with it gives another."""
    name = getattr(callee, "__name__", "")
    if name in MUTATORS and args and frame.reads.path_of(args[0]) is not None:
        mutate(frame.reads, args[0], frame.origin())
        frame.observer.tainted[id(args[0])] = value
        return UNKNOWN
    if callee is print:
        keep_in_files(frame, args)
    if isinstance(callee, np.ufunc) or getattr(callee, "__module__", "") == "numpy":
        frame.refuse(value)
    return value if callee in _PASSES_ON or getattr(callee, "__module__", "") == "math" else UNKNOWN


def writes_file(callee: Any, args: list[Any], keywords: Sequence[str]) -> bool:
    """Whether ``open`` is asked to write: the file's contents do not reach the program."""
    if callee is not builtins.open:
        return False
    mode = args[len(args) - len(keywords) + list(keywords).index("mode")] if "mode" in keywords else (*args, "r", "r")[1]
    return isinstance(mode, str) and not set(mode).isdisjoint("wax") and "+" not in mode
