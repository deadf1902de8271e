"""The thread pool: runs instruction tables in compiled code, and shares large kernels among worker threads.

Workers are Python threads that stay in compiled code without the GIL. Results do not depend on their number: the blocks of
a kernel are fixed (`jitgrad.runtime.executor.instruction_loop`), and only the threads that run them vary. A second Python
thread that runs a table at the same time runs all its blocks itself.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from collections.abc import Callable
from threading import Lock, Thread, current_thread, get_native_id, main_thread

from jitgrad.core import config
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.eager import blas
from jitgrad.runtime.executor import deferred_interrupts, denormals, fastcall, instruction_loop

_JOIN_SECONDS = 1.0  # a worker stops within microseconds unless a kernel of another thread is still running
_WORD_BYTES, _WORD_BITS = 8, 64


def _c_function(name: str) -> int:
    """The address of a C library function; 0 where there is none."""
    function = getattr(ctypes.CDLL(None), name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


class ThreadPool:
    """A control block, its compiled loop and ``threads - 1`` workers, started at the first `run`.

    ``run(table, count)`` runs the ``count`` instructions at address ``table`` without the GIL; it may be
    called from any thread. The caller keeps alive all memory that the instructions point to.
    """

    def __init__(self, threads: int) -> None:
        self.threads: int = threads if sys.platform != "win32" else 1  # no POSIX condition variables there
        self._control = (ctypes.c_int64 * (instruction_loop.CONTROL_WORDS + instruction_loop.INSTRUCTION_WORDS))()
        address = ctypes.addressof(self._control)
        address += -address % 64  # a cache line
        self._words = (ctypes.c_int64 * instruction_loop.CONTROL_WORDS).from_address(address)
        self._table = (ctypes.c_int64 * 1)(address)
        self._binding = (ctypes.c_int64 * 2)(0, ctypes.addressof(self._table))
        self._words[instruction_loop.BLAS_THREADS], self._words[instruction_loop.SET_BLAS_THREADS] = blas.thread_functions()
        self._words[instruction_loop.SELF] = address
        self._words[instruction_loop.BLAS_STATE] = ctypes.addressof(blas.STATE)
        self._words[instruction_loop.CPUS] = os.cpu_count() or 1
        self._workers: list[Thread] = []
        self._loop = instruction_loop.loop()
        # a running call of a pool that was replaced still uses all of these
        owners = self._loop, self._table, self._control
        self.run: Callable[[int, int], None] = fastcall.bind(self._loop.address, self._binding, *owners)
        if self.threads > 1:
            self._prepare()

    def _address(self, word: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._table[0] + word * _WORD_BYTES)

    def _prepare(self) -> None:
        """Initialise the condition variable and start the workers."""
        process = ctypes.CDLL(None)
        process.pthread_mutex_init(self._address(instruction_loop.MUTEX), None)
        process.pthread_cond_init(self._address(instruction_loop.CONDITION), None)
        for word, name in (
            (instruction_loop.LOCK, "pthread_mutex_lock"),
            (instruction_loop.UNLOCK, "pthread_mutex_unlock"),
            (instruction_loop.WAIT, "pthread_cond_wait"),
            (instruction_loop.SIGNAL, "pthread_cond_signal"),
            (instruction_loop.YIELD, "sched_yield"),
            (instruction_loop.CPU, "sched_getcpu"),
            (instruction_loop.SET_AFFINITY, "sched_setaffinity"),
        ):
            self._words[word] = _c_function(name)
        self._words[instruction_loop.WORKERS] = self.threads - 1
        self._read_cpus()
        for k in range(1, self.threads):
            worker = Thread(target=self._work, args=(k,), name=f"jitgrad-{k}", daemon=True)
            worker.start()
            self._workers.append(worker)

    def _read_cpus(self) -> None:
        """Store the CPUs that workers may run on; none where the system has no such call."""
        self._words[instruction_loop.CALLER_CPU] = -1
        cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
        if len(cpus) < 2 or max(cpus) >= instruction_loop.MASK_WORDS * _WORD_BITS:
            self._words[instruction_loop.CPU] = 0
            return
        for word in range(instruction_loop.MASK_WORDS):
            bits = sum(1 << cpu % _WORD_BITS for cpu in cpus if cpu // _WORD_BITS == word)
            self._words[instruction_loop.ALLOWED + word] = ctypes.c_int64(bits).value

    def _work(self, k: int) -> None:
        """A worker's thread."""
        denormals.follow()
        if k <= instruction_loop.MAX_PLACED:
            self._words[instruction_loop.THREADS + k - 1] = get_native_id()
            self._words[instruction_loop.CALLER_CPU] = -1  # the next caller sets the CPUs of this worker too
        self.run(0, instruction_loop.WORKER)

    def cancel(self, table: int) -> None:
        """Skip the remaining blocks of the run of ``table``; 0: of none."""
        self._words[instruction_loop.CANCELLED] = table

    def stop(self) -> None:
        """Stop the workers. Tables that other threads are running finish on those threads."""
        if not self._workers:
            return
        process = ctypes.CDLL(None)
        mutex, condition = self._address(instruction_loop.MUTEX), self._address(instruction_loop.CONDITION)
        self._words[instruction_loop.STOPPED] = 1
        for k in range(instruction_loop.MAX_PLACED):
            self._words[instruction_loop.THREADS + k] = 0  # the system may reuse these ids
        process.pthread_mutex_lock(mutex)
        process.pthread_cond_broadcast(condition)
        process.pthread_mutex_unlock(mutex)
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.join(_JOIN_SECONDS)


def default_threads() -> int:
    """JITGRAD_NUM_THREADS, else OMP_NUM_THREADS, else the cores this process may run on."""
    chosen: int | None = config.read("JITGRAD_NUM_THREADS")
    if chosen is not None:
        return chosen
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdigit() and int(first) > 0:
        return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Current:
    """The process's pool, and the number of threads requested for it."""

    lock = Lock()
    threads: int | None = None
    pool: ThreadPool | None = None


def current_pool() -> ThreadPool:
    """The pool of this process, started on first use."""
    pool = _Current.pool
    if pool is None:
        with _Current.lock:
            pool = _Current.pool
            if pool is None:
                pool = _Current.pool = ThreadPool(get_num_threads())
                blas.limit_blas_threads(pool.threads)
    return pool


def run(table: int, count: int) -> None:
    """Run the ``count`` instructions at address ``table`` (layout: `jitgrad.runtime.executor.instruction_loop`)."""
    (_Current.pool or current_pool()).run(table, count)


def run_to_the_end(table: int, count: int) -> None:
    """`run`; an exception of Ctrl-C that comes when it has returned is deferred until the call has changed its state."""
    deferred_interrupts.call_to_the_end((_Current.pool or current_pool()).run, table, count)


def run_interruptibly(table: int, count: int) -> None:
    """`run`, but the main thread waits in Python, where an exception of a signal handler reaches it.

    Blocks that have not started are skipped then, and the exception goes on: whatever the table writes is incomplete.
    """
    if current_thread() is not main_thread():  # the only one that handles signals
        run(table, count)
        return
    _InterruptibleRun(_Current.pool or current_pool(), table, count).wait()


class _InterruptibleRun:
    """A table that another thread runs."""

    def __init__(self, pool: ThreadPool, table: int, count: int) -> None:
        self.pool = pool
        self.table = table
        self.count = count
        self.abandoned = False
        self.finished = Lock()
        self.thread = Thread(target=self._run, name="jitgrad-call", daemon=True)

    def _run(self) -> None:
        try:
            if not self.abandoned:
                self.pool.run(self.table, self.count)
        finally:
            self.finished.release()

    def wait(self) -> None:
        """Start and wait; a signal may raise in any line."""
        self.finished.acquire()
        try:
            self.thread.start()
            self.finished.acquire()
        except BaseException:
            self.abandoned = True
            if self.thread.ident is not None:  # else it will do nothing
                self.pool.cancel(self.table)
                self._join()
                self.pool.cancel(0)
            raise

    def _join(self) -> None:
        while self.thread.is_alive():
            try:
                self.thread.join()
            except BaseException:  # another Ctrl-C: the memory is in use until the thread ends
                continue


def get_num_threads() -> int:
    """The number of threads that run a kernel, the caller included."""
    return _Current.threads if _Current.threads is not None else default_threads()


def set_num_threads(count: int) -> None:
    """Run kernels and BLAS on ``count`` threads, the caller included; results do not depend on it.

    Raises:
        ArgumentError: if ``count`` is not a positive integer.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"set_num_threads: expected a positive integer, got {shown(count)}")
    with _Current.lock:
        _Current.threads = count
        blas.set_blas_threads(count)
    _restart()


def _restart() -> None:
    """Stop the workers; the next call starts new ones."""
    with _Current.lock:
        pool, _Current.pool = _Current.pool, None
    if pool is not None:
        pool.stop()


def set_flush_denormal(mode: bool) -> bool:
    """Let arithmetic take denormal numbers for 0, or, with False, compute with them (the default).

    These are smaller than 1.2e-38 (float32) or 2.2e-308 (float64), and CPUs take up to a hundred times as long for them,
    in products above all. Holds for kernels, for NumPy in the calling thread and in threads that it starts later. Eager
    and compiled execution have the same zeros then, which differ from NumPy's results elsewhere.

    Returns:
        Whether the processor can; only x86-64 ones do.

    Raises:
        ArgumentError: if ``mode`` is not a bool.
    """
    if not isinstance(mode, bool):
        raise ArgumentError(f"set_flush_denormal: expected True or False, got {shown(mode)}")
    supported = denormals.flush(mode)
    _restart()
    return supported


def _stop_at_exit() -> None:
    if _Current.pool is not None:
        _Current.pool.stop()


def _forget_after_fork() -> None:
    """A forked child has the control block but no workers: it starts its own pool when it needs one."""
    _Current.lock = Lock()
    _Current.pool = None
    users, before = blas.STATE[instruction_loop.BLAS_USERS], blas.STATE[instruction_loop.BLAS_BEFORE]
    ctypes.memset(blas.STATE, 0, ctypes.sizeof(blas.STATE))
    if users:
        blas.set_blas_threads(before)


atexit.register(_stop_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
