"""Pauses garbage collection during compilation, which allocates many long-lived objects."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Start no garbage collection within the block.

    The many small objects of a trace, a plan and a translation trigger full collections that free nothing: one takes
    50 ms, longer than the compilation of a kernel, and all of them a seventh of the first call over thousands of tensors.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
