"""Turns of threads that observe Python frames.

CPython 3.12 crashes where two threads trace opcodes at once, and in a child that is forked meanwhile: its bytecode is
rewritten in place for `sys.settrace`. Other versions need no turns.
"""

from __future__ import annotations

import sys
from typing import Any

from jitgrad.core.fork import fork_safe_lock, pause_at_fork

NEEDED: bool = sys.version_info[:2] == (3, 12)
_MOST_SECONDS = 10.0  # the function that another thread observes may wait for this thread
_lock: Any = fork_safe_lock()


def begin_turn() -> None:
    """Wait until no other thread observes frames, but not for ever."""
    if NEEDED:
        _lock.acquire(timeout=_MOST_SECONDS)


def end_turn() -> None:
    """Let other threads observe, if `begin_turn` did not give up waiting for them."""
    if NEEDED and _lock._is_owned():
        _lock.release()


if NEEDED:
    pause_at_fork(begin_turn, end_turn)
