"""NumPy functions without NumPy's warnings about NaN, infinities and division by zero, in `jitgrad.eager.array_memory`."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, Token
from functools import partial
from typing import Any

import numpy as np
from numpy._core import umath

from jitgrad.eager.array_memory import keeps_memory, kept_memory, restore_memory

# What np.errstate sets, and a value for it, without an object for each use. Another NumPy may not have them.
_SETTINGS: ContextVar[Any] = getattr(umath, "_extobj_contextvar", ContextVar("unused"))
_IGNORING: Any = getattr(umath, "_make_extobj", lambda **_: None)(all="ignore")
KNOWN: bool = _IGNORING is not None  # whether this NumPy has them


def quietly(function: Callable[..., Any], *arrays: Any, **attrs: Any) -> Any:
    """``function(*arrays, **attrs)`` without NumPy's warnings."""
    if not KNOWN:
        with np.errstate(all="ignore"):
            return function(*arrays, **attrs)
    token, memory = _SETTINGS.set(_IGNORING), kept_memory()
    try:
        return function(*arrays, **attrs)
    finally:
        _SETTINGS.reset(token)
        if memory is not None:
            restore_memory(memory)


Silence = tuple[Token[Any], Token[Any] | None]


def silence() -> Silence | None:
    """Switch warnings off, and kept memory on, until `restore`; None if this NumPy needs np.errstate."""
    return (_SETTINGS.set(_IGNORING), kept_memory()) if KNOWN else None


def restore(tokens: Silence) -> None:
    """Undo `silence`."""
    _SETTINGS.reset(tokens[0])
    if tokens[1] is not None:
        restore_memory(tokens[1])


def _returns_arrays() -> bool:
    """Whether ufuncs take ``out=...``, for an array even without axes (NumPy 2.3)."""
    try:
        return isinstance(np.add(np.zeros(()), 1.0, out=...), np.ndarray)
    except TypeError:
        return False


RETURNS_ARRAYS: bool = KNOWN and _returns_arrays()
_quiet = Context()
_quiet.run(_SETTINGS.set, _IGNORING)
run_quietly: Callable[..., Any] = _quiet.run  # a call in the context of `quiet_context`


def keeps_large_arrays() -> bool:
    """Whether large results of functions without warnings lie in kept memory."""
    return RETURNS_ARRAYS and keeps_memory(_quiet)


def quiet_context(function: Callable[..., Any], needs_out: bool) -> Callable[..., np.ndarray[Any, Any]]:
    """``function`` without NumPy's warnings, with ``out=...`` if it needs that.

    It runs in a context of its own, which is entered in a third of the time of a change of the current one; it must
    not ask its context for anything else. Two threads cannot be within the context at the same time: the
    second one gets a RuntimeError.
    """
    return partial(_quiet.run, function, out=...) if needs_out else partial(_quiet.run, function)
