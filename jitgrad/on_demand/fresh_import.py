"""Imports modules in the middle of a program as ``import jitgrad`` would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

from jitgrad.core.context import current_interpreter
from jitgrad.core.fork import importing
from jitgrad.core.gc_paused import gc_paused

_T = TypeVar("_T")


def imported(load: Callable[[], _T]) -> _T:
    """What ``load`` imports, as if nothing was running: without trace, grad mode and device of the moment.

    Modules stay, so collections of garbage meanwhile would only take time: an eighth of the import of the compiler.
    """
    observer = sys.gettrace()
    observed = observer is not None and current_interpreter.other() is not None
    if observed:  # by guards, for which what modules do while they are imported is no part of the traced function
        sys.settrace(None)
    try:
        with importing, gc_paused():
            return Context().run(load)
    finally:
        if observed:
            sys.settrace(observer)
