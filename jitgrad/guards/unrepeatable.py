"""Calls of clocks, random generators and files, which give something else on every call."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.guards.attributes import UNKNOWN
from jitgrad.guards.containers import MUTATORS, mutate
from jitgrad.guards.part_of import Parts
from jitgrad.guards.shadow import ShadowFrame, Unrepeatable

# unrepeatable numbers give unrepeatable numbers, and texts give texts
_PASSES_ON = (round, abs, float, int, min, max, divmod, sum, len, hash, ord, str, repr, ascii, format)
_TEXTS = (str, repr, ascii, format)
_TEXT_METHODS = ("__str__", "__repr__", "__format__")
_TEXT_REMEDY = "it may be printed or logged; to compute with elements, use ops"


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
    frame.refuse(value)
    return UNKNOWN


def text_of_tensor(callee: Any, args: Sequence[Any]) -> Unrepeatable | None:
    """What a call gives that writes a tensor as text: in a trace the text of one without elements."""
    receiver, name = getattr(callee, "__self__", None), getattr(callee, "__name__", "")
    if not (callee in _TEXTS or name in _TEXT_METHODS or (name == "format" and isinstance(receiver, str))):
        return None
    return next((_text_of(x) for x in (receiver, *args) if isinstance(x, Tensor)), None)


def _text_of(tensor: Tensor) -> Unrepeatable:
    return Unrepeatable(f"the text of a tensor {tensor.aval}", _TEXT_REMEDY)


def filled_template(template: Any, value: Any) -> Unrepeatable | None:
    """What ``template % value`` gives, if it writes a tensor as text."""
    values = value.values if isinstance(value, Parts) else value if isinstance(value, tuple) else (value,)
    return text_of_tensor(format, values) if isinstance(template, str) else None


def pass_unrepeatable(frame: ShadowFrame, callee: Any, value: Unrepeatable, args: list[Any]) -> Any:
    """Printing, formatting and keeping a clock's reading is harmless; computing with it gives another."""
    name = getattr(callee, "__name__", "")
    if name in MUTATORS and args and frame.reads.path_of(args[0]) is not None:
        mutate(frame.reads, args[0], frame.origin())
        frame.observer.tainted[id(args[0])] = value
        return UNKNOWN
    if isinstance(callee, np.ufunc) or getattr(callee, "__module__", "") == "numpy":
        frame.refuse(value)
    return value if callee in _PASSES_ON or getattr(callee, "__module__", "") == "math" else UNKNOWN


def writes_file(callee: Any, args: list[Any], keywords: Sequence[str]) -> bool:
    """Whether ``open`` is asked to write: the file's contents do not reach the program."""
    if callee is not builtins.open:
        return False
    mode = args[len(args) - len(keywords) + list(keywords).index("mode")] if "mode" in keywords else (*args, "r", "r")[1]
    return isinstance(mode, str) and not set(mode).isdisjoint("wax") and "+" not in mode
