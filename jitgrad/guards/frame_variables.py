"""The present values of the variables of a running frame."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

from jitgrad.guards.object_state import MISSING

_variable: Callable[[FrameType, str], Any] | None = None
if sys.version_info >= (3, 13) and sys.implementation.name == "cpython":
    _variable = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)(("PyFrame_GetVar", ctypes.pythonapi))


def local_variable(frame: FrameType, name: str) -> Any:
    """The local variable ``name`` of ``frame``, or MISSING.

    A comprehension may keep a variable of its own where the function keeps a cell of that name. Python 3.13.0 takes
    it for the cell when ``f_locals`` is read, and crashes.
    """
    if _variable is None or name not in frame.f_code.co_cellvars:
        return frame.f_locals.get(name, MISSING)
    try:
        return _variable(frame, name)
    except NameError:
        return MISSING


def free_variable(frame: FrameType, name: str) -> Any:
    """The variable ``name`` that code shares with a function around it, or MISSING.

    ``f_locals`` of the body of a class leaves out the variables of the functions around it.
    """
    around: FrameType | None = frame
    while around is not None:
        value = local_variable(around, name)
        if value is not MISSING or around.f_code.co_flags & CO_OPTIMIZED:
            return value
        around = around.f_back  # the body runs in a call of the code around it
    return MISSING
