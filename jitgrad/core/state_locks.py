"""Locks of tensors that compiled functions change: threads that change one take turns.

A lock serves all tensors of the first program that changes them, so a call takes few. Threads take
the locks of a call in one order, and none while they hold others, so they do not wait in a circle.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any

from jitgrad.core.fork import fork_safe_lock

_changing = fork_safe_lock()
# by the id of a tensor; a reference drops the entry when the tensor is gone
_locks: dict[int, tuple[weakref.ref[Any], RLock]] = {}


def use_lock(tensor: Any, lock: RLock) -> None:
    """``lock`` is that of ``tensor`` from now on."""
    key = id(tensor)
    _locks[key] = weakref.ref(tensor, lambda _: _locks.pop(key, None)), lock


def locks_of(tensors: Iterable[Any]) -> tuple[RLock, ...]:
    """The locks of ``tensors``, in the order in which all threads take them; those without one get one together."""
    found: dict[int, RLock] = {}
    with _changing:
        new = fork_safe_lock()
        for tensor in tensors:
            if id(tensor) not in _locks:
                use_lock(tensor, new)
            lock = _locks[id(tensor)][1]
            found[id(lock)] = lock
    return tuple([found[key] for key in sorted(found)])


class _Several:
    """A context that holds several locks."""

    def __init__(self, locks: Sequence[RLock]) -> None:
        self.locks = locks

    def __enter__(self) -> None:
        for lock in self.locks:
            lock.acquire()

    def __exit__(self, *_: object) -> None:
        for lock in reversed(self.locks):
            lock.release()


def holding(locks: Sequence[RLock]) -> AbstractContextManager[Any]:
    """A context that holds ``locks``, for any number of uses."""
    return nullcontext() if not locks else locks[0] if len(locks) == 1 else _Several(locks)
