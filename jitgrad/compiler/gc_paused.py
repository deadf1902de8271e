"""Pauses garbage collection during compilation, which allocates many long-lived objects."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator


class _Paused:
    count = 0  # blocks that have paused collections


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Start no garbage collection within the block.

    The many small objects of a trace, a plan and a translation trigger full collections that free nothing: one takes
    50 ms, longer than the compilation of a kernel, and all of them a seventh of the first call over thousands of tensors.
    """
    if not gc.isenabled():
        yield
        return
    _Paused.count += 1
    gc.disable()
    try:
        yield
    finally:
        _Paused.count -= 1
        gc.enable()


def _resume_in_child() -> None:
    """A forked child does not have the thread that would resume collections."""
    if _Paused.count:
        _Paused.count = 0
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
