"""The threads that LLVM compiles kernels in, without the GIL, while others lower kernels or run eager code."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread, current_thread
from typing import Any, ClassVar, Generic, TypeVar

from jitgrad.backends.llvm.parallel_llvm import LLVM_LOCK, llvmlite_lock
from jitgrad.core.fork import pause_at_fork

_T = TypeVar("_T")
_MOST = 4  # a program has few kernels that take long, and other threads may want the cores


class Compilation(Generic[_T]):
    """What a thread for LLVM makes."""

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make: Callable[[], _T] | None = make
        self._made = Event()
        self._outcome: _T | BaseException | None = None

    def run(self) -> None:
        """Make it; what the compiler raises is raised by `result`."""
        assert self._make is not None
        try:
            self._outcome = self._make()
        except BaseException as error:
            self._outcome = error
        self._made.set()

    @property
    def made(self) -> bool:
        """Whether `result` would not wait."""
        return self._outcome is not None

    def result(self) -> _T:
        """The result; waits for it, and raises what the compiler raised."""
        if self._outcome is None:  # else without the lock of the event, which another thread may hold in a fork
            _CompileThreads.hurry(self)
            self._made.wait()
        with LLVM_LOCK:
            self._make = None  # with the lock, finalizers do not wait for threads that write object code
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome


class _CompileThreads:
    """As many threads as there is work for, at most one for each CPU, and one for each thread that waits.

    They end when there is nothing to do. Executors of the standard library have a lock that every fork takes before
    `finish`, for which whoever holds one of theirs may wait.
    """

    starting = Lock()  # held by a fork: nobody starts work
    lock = Lock()
    waiting: ClassVar[deque[Compilation[Any]]] = deque()
    threads: ClassVar[list[Thread]] = []

    @classmethod
    def start(cls, compilation: Compilation[Any]) -> None:
        with cls.starting:
            with cls.lock:
                cls.waiting.append(compilation)
                if len(cls.threads) >= _thread_limit():
                    return
                if cls._started(cls._work):
                    return
            cls._work()

    @classmethod
    def hurry(cls, compilation: Compilation[Any]) -> None:
        """Begin ``compilation``, if it has not begun, in a new thread: the calling one waits, and leaves it its CPU."""
        if not cls.starting.acquire(blocking=False):
            return  # a fork finishes all work, and may wait for what the calling thread holds
        try:
            with cls.lock:
                if compilation in cls.waiting and cls._started(lambda: cls._run(compilation)):
                    cls.waiting.remove(compilation)
        finally:
            cls.starting.release()

    @classmethod
    def _started(cls, work: Callable[[], None]) -> bool:
        cls.threads.append(thread := Thread(target=work, name=f"jitgrad.llvm.{len(cls.threads)}"))
        try:
            thread.start()
        except RuntimeError:  # an interpreter that shuts down starts no threads
            cls.threads.remove(thread)
            return False
        return True

    @classmethod
    def _run(cls, compilation: Compilation[Any]) -> None:
        compilation.run()
        cls._work()  # like every thread that is counted: nobody is started for work while so many run

    @classmethod
    def _work(cls) -> None:
        while True:
            with cls.lock:
                if not cls.waiting:
                    cls.threads = [thread for thread in cls.threads if thread is not current_thread()]
                    return
                compilation = cls.waiting.popleft()
            compilation.run()

    @classmethod
    def finish(cls) -> None:
        """Finish pending work and end the threads; holds the locks until `resume`."""
        cls.starting.acquire()
        for thread in cls.threads:
            thread.join()
        cls.lock.acquire()
        LLVM_LOCK.acquire()
        llvmlite_lock().__enter__()

    @classmethod
    def resume(cls) -> None:
        llvmlite_lock().__exit__(None, None, None)
        LLVM_LOCK.release()
        cls.lock.release()
        cls.starting.release()


def _thread_limit() -> int:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cpus, _MOST)


def start_compiling(make: Callable[[], _T]) -> Compilation[_T]:
    """Call ``make`` in a thread for LLVM."""
    compilation = Compilation(make)
    _CompileThreads.start(compilation)
    return compilation


# A child has one thread, and must not inherit locks that others hold.
pause_at_fork(_CompileThreads.finish, _CompileThreads.resume)
