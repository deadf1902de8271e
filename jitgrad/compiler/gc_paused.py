"""The collector of cycles and compilation: many objects at once, which stay, or go without its help."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Within it, no collection of cycles starts by itself.

    The many small objects of a translation, of a trace and of a plan set off full collections that find nothing: a single one
    takes longer (50 ms) than the compilation of a kernel, and a seventh of the first call over thousands of tensors.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
