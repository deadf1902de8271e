"""Code that is used while LLVM still compiles it."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import threading
from typing import Any

import numpy as np
import pytest

from jitgrad.backends.llvm import compile_threads, parallel_llvm, target
from jitgrad.backends.llvm.code_object import CodeObject, compile_control_code, compile_entry
from jitgrad.backends.llvm.kernel_frontend import source_to_llvm
from jitgrad.core.errors import BackendError

pytestmark = pytest.mark.numba

LONG_LOOP = "def kernel(x, y, n, start, stop):\n    for i in range(start, stop):\n        x[i] = y[i + n] + y[i]\n"
TWICE = "def kernel(x, start, stop):\n    for i in range(start, stop):\n        x[i] = x[i] + x[i]\n"


def handed_out(source: str = TWICE) -> CodeObject:
    return compile_entry(source, "kernel", {}, params=("f32*",), key=None, wait=False)


def twice(code: CodeObject) -> list[float]:
    x = np.arange(5, dtype=np.float32)
    words = np.array([x.ctypes.data], np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)(words.ctypes.data, 0, 5)
    return x.tolist()


def test_whoever_needs_the_address_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    run = target._Job.run
    monkeypatch.setattr(target._Job, "run", lambda job: release.wait(30) and run(job))

    code = handed_out()
    assert code._loaded is None
    release.set()

    assert twice(code) == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_an_error_of_llvm_comes_with_the_result() -> None:
    with pytest.raises(BackendError, match="malformed"):
        target.compile_aside("define void @kernel( {", [], "kernel").result()


def test_without_threads_the_caller_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the interpreter no thread takes work any more."""

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(compile_threads, "Thread", type("Closed", (threading.Thread,), {"start": start}))

    assert twice(handed_out()) == [0.0, 2.0, 4.0, 6.0, 8.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_waits_for_code_that_is_compiling() -> None:
    code = handed_out()

    child = os.fork()
    if child == 0:
        again = handed_out(TWICE + "\n")
        os._exit(0 if twice(code) == twice(again) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert twice(code) == [0.0, 2.0, 4.0, 6.0, 8.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_asks_for_code_while_a_thread_of_its_parent_does() -> None:
    """The lock of what that thread waits with stays held in the child."""
    compilation = target.compile_aside(*source_to_llvm(TWICE, "kernel", ["f32*"], {}, 256), "kernel")
    compilation.result()
    locked, release = threading.Event(), threading.Event()

    def wait_with_lock() -> None:
        with compilation._made._cond:
            locked.set()
            release.wait(60)

    thread = threading.Thread(target=wait_with_lock)
    thread.start()
    locked.wait()

    if (child := os.fork()) == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        os._exit(0 if compilation.result().object_code else 1)
    release.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_threads_that_start_compiling_do_not_hold_up_a_fork() -> None:
    """A fork takes locks of `concurrent.futures` before ours, so ours must not wait for those."""
    import concurrent.futures.thread as executors

    submitting = threading.Thread(target=lambda: handed_out(TWICE + "# anew\n").address)
    with executors._global_shutdown_lock:
        submitting.start()
        submitting.join(30)
        assert not submitting.is_alive()


def test_code_that_several_threads_ask_for_is_loaded_once() -> None:
    code = handed_out()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(code.address)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert len(set(found)) == 1



@pytest.mark.skipif(compile_threads._thread_limit() < 2, reason="needs two CPUs")
def test_two_kernels_compile_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits inside a call into LLVM until the other is there, too."""
    both, optimize_module = threading.Barrier(2), target.optimize_module
    monkeypatch.setattr(target, "optimize_module", lambda *given: both.wait(30) is not None and optimize_module(*given))

    first, second = handed_out(TWICE + "# first\n"), handed_out(TWICE + "# second\n")

    assert twice(first) == twice(second) == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_object_code_does_not_depend_on_what_else_compiles() -> None:
    texts = [source_to_llvm(LONG_LOOP.replace("] +", f"] {op}"), "kernel", ["f32*", "f32*", "i64"], {}, 256) for op in "+-*/"]
    alone = [target._Job(*text, "kernel").run().object_code for text in texts]

    at_once = [target.compile_aside(*text, "kernel") for text in texts]

    assert [compilation.result().object_code for compilation in at_once] == alone


def test_functions_and_variables_that_a_module_lacks() -> None:
    text = 'declare double @fmod(double)\ndeclare void @"a b"()\n@x = external global i8\n@y = internal global i8 0\n'

    assert target.externals(text + "declare i64 @llvm.abs(i64)\n  call void @called()\n") == ("a b", "fmod", "x")


@pytest.mark.skipif(not parallel_llvm.skips_strength_reduction(), reason="sets no option")
def test_others_call_llvm_when_no_thread_writes_object_code() -> None:
    """The option would change their code, too."""
    called = threading.Event()

    def call() -> None:
        target.binding.get_default_triple()
        called.set()

    other = threading.Thread(target=call)
    with parallel_llvm.without_strength_reduction():
        other.start()
        assert not called.wait(0.2)
        target.binding.get_default_triple()  # as a finalizer in this thread does
    other.join(30)

    assert called.is_set()


def test_strength_reduction_is_off_for_kernels_only() -> None:
    """The option holds for the whole process, in which numba compiles, too."""

    def module() -> Any:  # writing object code changes it
        text, linked = source_to_llvm(LONG_LOOP, "kernel", ["f32*", "f32*", "i64"], {}, 256)
        return target.optimize(text, linked, "kernel")

    def as_others() -> bytes:
        return bytes(target.target_machine().emit_object(module()))

    before, kernel = as_others(), target.emit(module())

    assert as_others() == before
    assert (kernel != before) == parallel_llvm.skips_strength_reduction()


@pytest.mark.parametrize("library", ["thread_pool", "f32"])
def test_control_code_keeps_its_loops(library: str) -> None:
    """Tiles of products are vectors already; unrolled, their code took twice as long to compile, and ran no faster."""
    source = "def entry(p, start, stop):\n    for i in range(start, stop):\n        p[i] = i\n"

    code = compile_control_code(source, "entry", library)

    assert "store i64" in code.llvm
    assert "<" not in code.llvm.split("define", 1)[1].split("\n}", 1)[0]  # no vectors


def test_control_code_called_once_is_inlined() -> None:
    source = "def part(p):\n    p[0] = p[0] + 1\n\ndef entry(p, start, stop):\n    part(p)\n"

    code = compile_control_code(source, "entry", "thread_pool")

    assert code.llvm.count("define") == 1
    assert "alloca" not in code.llvm


def test_whoever_waits_does_not_wait_for_code_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check's eager run needs small functions at once, while threads still compile the program's kernels."""
    release, run = threading.Event(), target._Job.run
    blocked = [threading.Event() for _ in range(2)]
    jobs: list[Any] = []

    def run_later(job: Any) -> Any:
        jobs.append(job)
        if len(jobs) <= len(blocked):
            blocked[len(jobs) - 1].set()
            release.wait(30)
        return run(job)

    monkeypatch.setattr(target._Job, "run", run_later)
    monkeypatch.setattr(compile_threads, "_thread_limit", lambda: 2)
    try:
        earlier = [handed_out() for _ in range(3)]
        assert all(event.wait(30) for event in blocked)

        assert twice(handed_out()) == [0.0, 2.0, 4.0, 6.0, 8.0]
        assert all(code._loaded is None for code in earlier)
    finally:
        release.set()
    assert [twice(code) for code in earlier] == [[0.0, 2.0, 4.0, 6.0, 8.0]] * 3


def test_a_thread_for_code_that_is_waited_for_goes_on_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts among the threads, so that no other is started for code that comes meanwhile: nobody compiled that."""
    monkeypatch.setattr(compile_threads, "_thread_limit", lambda: 1)
    events = threading.Event(), threading.Event()
    first, second = (compile_threads.start_compiling(lambda e=event: e.wait(30)) for event in events)
    (worker,) = compile_threads._CompileThreads.threads
    compile_threads._CompileThreads.hurry(second)
    events[0].set()
    assert first.result()
    worker.join(30)

    third = compile_threads.start_compiling(lambda: True)
    events[1].set()

    assert third._made.wait(30)
