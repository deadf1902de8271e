"""Pauses garbage collection during compilation, which allocates many long-lived objects."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator


class _Pause:
    lock = threading.Lock()
    blocks = 0  # running now, in all threads
    resume = False  # whether collections were on before the first of them


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Start no garbage collection within the block, in any thread.

    The many small objects of a trace, a plan and a translation trigger full collections that free nothing: one takes
    50 ms, longer than the compilation of a kernel, and all of them a seventh of the first call over thousands of tensors.
    A collection during a trace would also run finalizers and ``gc.callbacks``, which are not the traced function's.
    """
    with _Pause.lock:
        if _Pause.blocks == 0:
            _Pause.resume = gc.isenabled()
            gc.disable()
        _Pause.blocks += 1
    try:
        yield
    finally:
        with _Pause.lock:
            _Pause.blocks = max(0, _Pause.blocks - 1)  # 0 in a child that was forked within the block
            if _Pause.blocks == 0 and _Pause.resume:
                gc.enable()


def _resume_in_child() -> None:
    """A forked child does not have the threads that would resume collections."""
    _Pause.lock = threading.Lock()
    if _Pause.blocks:
        _Pause.blocks = 0
        if _Pause.resume:
            gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
