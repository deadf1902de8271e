"""Threads of Python for library functions that release the GIL while they compute.

The workers of `jitgrad.runtime.executor.thread_pool` stay in compiled code, and cannot call NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Lock

from jitgrad.runtime.executor import denormals, thread_pool


class _Threads:
    """The executor of this process, and how many threads it has."""

    lock = Lock()
    executor: ThreadPoolExecutor | None = None
    count: int = 0


def run_shared(function: Callable[[slice], None], length: int) -> None:
    """Call ``function`` for disjoint slices of ``range(length)``, one for each thread; the caller runs the first.

    All of them are over when this returns or raises. NumPy's error state is the caller's.
    """
    parts = max(1, min(thread_pool.get_num_threads(), length))
    stops = [length * (k + 1) // parts for k in range(parts)]
    first, *others = [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
    if not others:
        function(first)
        return
    submitted = _submit(function, others)
    try:
        function(first)
    finally:
        wait(submitted)  # they write to memory of the caller
    for future in submitted:
        future.result()


def _submit(function: Callable[[slice], None], parts: list[slice]) -> list[Future[None]]:
    with _Threads.lock:
        if _Threads.executor is None or _Threads.count < len(parts):
            if _Threads.executor is not None:
                _Threads.executor.shutdown(wait=False)
            _Threads.executor = ThreadPoolExecutor(len(parts), "jitgrad-library")
            _Threads.count = len(parts)
        return [_Threads.executor.submit(copy_context().run, _run, function, part) for part in parts]


def _run(function: Callable[[slice], None], part: slice) -> None:
    denormals.follow()
    function(part)


def _forget_in_child() -> None:
    """A forked child does not have the threads."""
    _Threads.lock, _Threads.executor = Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
