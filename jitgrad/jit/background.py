"""Compiling in a thread, for functions that run eagerly until their program is there."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from jitgrad.core.fork import importing
from jitgrad.jit.executable import Executable

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


class _Thread:
    """One thread for all functions: more would only share the interpreter with the eager calls."""

    lock = Lock()
    executor: ThreadPoolExecutor | None = None

    @classmethod
    def submit(cls, compile: Callable[[], Executable]) -> Future[Executable]:
        with importing:
            from concurrent.futures import ThreadPoolExecutor

        with cls.lock:
            cls.executor = cls.executor or ThreadPoolExecutor(1, "jitgrad.compile")
            return cls.executor.submit(contextvars.copy_context().run, _ready, compile)


def _ready(compile: Callable[[], Executable]) -> Executable:
    """The executable, with the machine code of all its programs loaded."""
    executable = compile()
    executable.program.prepare()
    if executable.traced.differentiable:
        executable.op.backward.prepare()
    return executable


class Pending:
    """The executables that are being compiled for one @jit function, by the signature of their calls.

    The function holds a lock while it uses this.
    """

    alive: ClassVar[WeakSet[Pending]] = WeakSet()

    def __init__(self) -> None:
        self._futures: dict[Any, Future[Executable]] = {}
        self.alive.add(self)

    def __contains__(self, key: Any) -> bool:
        return key in self._futures

    def start(self, key: Any, compile: Callable[[], Executable]) -> None:
        """Compile an executable for calls with the signature ``key``."""
        self._futures[key] = _Thread.submit(compile)

    def take(self, key: Any, wait: bool) -> Executable | None:
        """The executable for ``key`` if it is there, or will be; without ``wait`` only if it is compiled.

        What its compilation raised is raised here.
        """
        future = self._futures.get(key)
        if future is None or not (wait or future.done()):
            return None
        del self._futures[key]
        return future.result()

    def clear(self) -> None:
        """Forget all of them."""
        self._futures.clear()


def _forget_in_child() -> None:
    """A forked child does not have the thread: its next calls start anew."""
    _Thread.lock, _Thread.executor = Lock(), None
    for pending in Pending.alive:
        pending.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
