"""Locks that a forked child can take, whatever other threads of the parent were doing."""

from __future__ import annotations

import functools
import logging  # noqa: F401 (forks run hooks in reverse order: ours before this one, which takes a lock that imports need)
import os
from collections.abc import Callable
from threading import RLock
from typing import Any, ClassVar, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_locks: WeakSet[Any] = WeakSet()

# Held while a module is imported at its first use: a fork waits, because the child would inherit
# the import lock of that module, which no thread would ever release.
importing: RLock = RLock()


def fork_safe_lock() -> RLock:
    """A reentrant lock that is free in a forked child if another thread holds it.

    What it guards must be usable at any time: results that are complete before they are stored.
    """
    lock = RLock()
    _locks.add(lock)
    return lock


class cached_property(functools.cached_property[T]):
    """The standard one, whose lock (up to Python 3.11) a forked child can take."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if (lock := getattr(self, "lock", None)) is not None:
            _locks.add(lock)


class _Pauses:
    """What other threads do that must not be under way in a fork."""

    registered: ClassVar[list[tuple[Callable[[], None], Callable[[], None]]]] = []
    running: ClassVar[list[tuple[Callable[[], None], Callable[[], None]]]] = []

    @classmethod
    def begin(cls) -> None:
        while True:
            for entry in cls.registered[len(cls.running) :]:
                entry[0]()  # without the lock, which what it waits for may need
                cls.running.append(entry)
            importing.acquire()
            if len(cls.running) == len(cls.registered):
                return
            importing.release()  # a module that was being imported registered a pause

    @classmethod
    def end(cls) -> None:
        importing.release()
        for _, resume in reversed(cls.running):
            resume()
        cls.running = []


def pause_at_fork(pause: Callable[[], None], resume: Callable[[], None]) -> None:
    """Call ``pause`` before a fork, and ``resume`` after it in parent and child.

    Modules that are imported at their first use call this: hooks of `os` that are registered while a
    fork waits for the import would run after it alone.
    """
    _Pauses.registered.append((pause, resume))


def _renew_in_child() -> None:
    """Free the locks of threads that the child does not have; those of this thread stay held."""
    for lock in tuple(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_Pauses.begin, after_in_parent=_Pauses.end, after_in_child=_Pauses.end)
    os.register_at_fork(after_in_child=_renew_in_child)
