"""KeyboardInterrupts that came while a call changed state: they are raised when all of it has changed.

Only the main thread gets them. It does between two instructions of Python code, after a C function has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


class _Waiting:
    calls: int = 0  # of the main thread that change state now
    interrupt: KeyboardInterrupt | None = None


@contextmanager
def deferring() -> Iterator[None]:
    """Within it, `was_deferred` keeps an interrupt of the main thread, which is raised at the end."""
    if current_thread() is not main_thread():
        yield
        return
    _Waiting.calls += 1
    try:
        yield
    finally:
        _Waiting.calls -= 1
        if not _Waiting.calls and (interrupt := _Waiting.interrupt) is not None:
            _Waiting.interrupt = None
            raise interrupt


def was_deferred(interrupt: KeyboardInterrupt) -> bool:
    """Whether ``interrupt`` is raised at the end of the call that runs, which goes on."""
    if not _Waiting.calls:
        return False
    _Waiting.interrupt = interrupt
    return True


def call_to_the_end(run: Callable[[int, int], None], table: int, count: int) -> None:
    """``run(table, count)``, which is native code: an interrupt comes when it has returned, and may be deferred."""
    try:
        run(table, count)
    except KeyboardInterrupt as interrupt:
        if not was_deferred(interrupt):
            raise
