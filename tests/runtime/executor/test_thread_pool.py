"""The thread pool: same bits for any number of threads; safe to fork, interrupt, share and exit."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import compile_control_code, compile_entry
from jitgrad.core.errors import ArgumentError
from jitgrad.eager import blas
from jitgrad.runtime.executor import instruction_loop, thread_pool

SUM = """
def kernel(x, p, block_size, start, stop):
    acc = to_f32(0.0)
    for i in range(start, stop):
        acc = reassoc_add(acc, x[i])
    p[start // block_size] = acc
"""
TOTAL = """
def kernel(p, out, blocks, start, stop):
    acc = to_f32(0.0)
    for i in range(blocks):
        acc = acc + p[i]
    out[start] = out[start] + acc
"""
N, BLOCK_SIZE = 10_000, 300


@pytest.fixture(autouse=True)
def restore_threads():
    before = thread_pool.get_num_threads()
    yield
    thread_pool.set_num_threads(before)


class SumStep:
    """A two-instruction program: partial sums of ``x`` per block, then their sum added to ``out``."""

    def __init__(self, seed=0):
        self.x = np.random.default_rng(seed).standard_normal(N).astype(np.float32)
        self.partial, self.out = np.zeros(-(-N // BLOCK_SIZE), np.float32), np.zeros(1, np.float32)
        self.kernels = [
            compile_entry(SUM, "kernel", {}, params=("f32*", "f32*", "i64"), key=""),
            compile_entry(TOTAL, "kernel", {}, params=("f32*", "f32*", "i64"), key=""),
        ]
        self.args = [
            np.array([self.x.ctypes.data, self.partial.ctypes.data, BLOCK_SIZE]),
            np.array([self.partial.ctypes.data, self.out.ctypes.data, len(self.partial)]),
        ]
        first, second = (k.address for k in self.kernels)
        rows = [[instruction_loop.KERNEL, first, self.args[0].ctypes.data, N, BLOCK_SIZE, 0, 0, 0]]
        rows += [[instruction_loop.CALL, second, self.args[1].ctypes.data, 1, 1, 0, 0, 0]]
        self.table = np.array(rows, np.int64)

    def __call__(self):
        """The sum of x, as a fresh array."""
        self.out[0] = 0
        self.partial[:] = np.nan
        thread_pool.run(self.table.ctypes.data, len(self.table))
        return self.out.copy()


def test_same_bits_for_any_number_of_threads():
    step, results = SumStep(), []
    for threads in (1, 2, 3, 5):
        thread_pool.set_num_threads(threads)
        results += [step().tobytes() for _ in range(20)]

    assert len(set(results)) == 1
    np.testing.assert_allclose(np.frombuffer(results[0], np.float32), step.x.astype(np.float64).sum(), rtol=1e-3)


@pytest.mark.parametrize("threads", [2, 4])
def test_thousands_of_tiny_steps(threads):
    source = "def kernel(x, start, stop):\n    for i in range(start, stop):\n        x[i] = x[i] + 1\n"
    kernel = compile_entry(source, "kernel", {}, params=("i64*",), key="")
    x = np.zeros(16, np.int64)
    args = np.array([x.ctypes.data])
    table = np.array([[instruction_loop.KERNEL, kernel.address, args.ctypes.data, 16, g, 0, 0, 0] for g in (1, 3, 16, 5)])
    thread_pool.set_num_threads(threads)

    for _ in range(5000):
        thread_pool.run(table.ctypes.data, 4)

    assert set(x) == {20_000}


def test_sleeping_workers_take_part_again():
    """Each of two blocks waits for the other to start, after a pause longer than workers spin."""
    source = """
def kernel(seen, start, stop):
    atomic_add(seen, 0, 1)
    patience = 20000000
    while atomic_load(seen, 0) < 2 and patience > 0:
        pause()
        patience -= 1
    seen[1 + start] = patience
"""
    kernel = compile_control_code(source, "kernel", "thread_pool")
    seen = np.zeros(3, np.int64)
    args = np.array([seen.ctypes.data])
    table = np.array([[instruction_loop.KERNEL, kernel.address, args.ctypes.data, 2, 1, 0, 0, 0]])
    thread_pool.set_num_threads(2)
    for _ in range(5):
        seen[:] = 0
        thread_pool.run(table.ctypes.data, 1)
        assert seen.min() > 0
        threading.Event().wait(0.02)
        assert thread_pool.current_pool()._words[instruction_loop.SLEEPERS] == 1


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs and Linux"
)
def test_workers_keep_clear_of_the_callers_cpu():
    """A worker on the caller's CPU saves no time, and the scheduler leaves it there for milliseconds."""
    thread_pool.set_num_threads(3)
    step, allowed = SumStep(), os.sched_getaffinity(0)
    step()  # the pool starts, with the CPUs that this thread may use now
    workers = thread_pool.current_pool()._workers
    for cpu in sorted(allowed)[:2]:
        os.sched_setaffinity(0, {cpu})
        try:
            for _ in range(20_000):  # a worker moves when it takes part, which on a busy machine is not every time
                step()
                if all(os.sched_getaffinity(w.native_id) == allowed - {cpu} for w in workers):
                    break
            assert [os.sched_getaffinity(w.native_id) for w in workers] == [allowed - {cpu}] * 2
        finally:
            os.sched_setaffinity(0, allowed)


def test_many_python_threads_at_once():
    thread_pool.set_num_threads(3)
    steps = [SumStep(seed) for seed in range(4)]
    expected = [step().tobytes() for step in steps]
    wrong = []

    def work(step, answer):
        wrong.extend(1 for _ in range(500) if step().tobytes() != answer)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(steps, expected, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


def test_set_num_threads_while_running():
    step = SumStep()
    expected, wrong, done = step().tobytes(), [], threading.Event()

    def work():
        while not done.is_set():
            wrong.extend([1] if step().tobytes() != expected else [])

    thread = threading.Thread(target=work)
    thread.start()
    for k in range(30):
        thread_pool.set_num_threads(1 + k % 4)
    done.set()
    thread.join()

    assert not wrong


def test_set_num_threads_starts_and_stops_workers():
    step = SumStep()
    thread_pool.set_num_threads(4)
    step()
    assert sum(t.name.startswith("jitgrad-") for t in threading.enumerate()) == 3

    thread_pool.set_num_threads(1)
    step()
    assert sum(t.name.startswith("jitgrad-") for t in threading.enumerate()) == 0
    assert thread_pool.get_num_threads() == 1


def test_blas_gets_the_same_number_of_threads():
    if blas.get_blas_threads() is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    thread_pool.set_num_threads(1)
    assert blas.get_blas_threads() == 1


def test_products_on_many_python_threads_have_the_same_bits():
    found = blas.find_blas()
    if found is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    a = np.random.default_rng(0).standard_normal((3, 900)).astype(np.float32)
    b = np.random.default_rng(1).standard_normal((900, 800)).astype(np.float32)
    before, results = blas.get_blas_threads(), []

    def work():
        one = int(np.float32(1).view(np.uint32))
        for _ in range(50):
            c = np.empty((3, 800), np.float32)
            table = [3, 800, 900, 0, 0, one, a.ctypes.data, 900, b.ctypes.data, 800, 0, c.ctypes.data, 800, 1, 0, 0, 0]
            args = np.array(table)
            instruction = np.array([instruction_loop.SGEMM, found.sgemm, args.ctypes.data, 0, 0, 0, 0, 0])
            thread_pool.run(instruction.ctypes.data, 1)
            results.append(c.tobytes())

    thread_pool.set_num_threads(2)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(results)) == 1
    assert len(results) == 150
    assert blas.get_blas_threads() == 2
    blas.set_blas_threads(before)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_bad_thread_counts(count):
    with pytest.raises(ArgumentError, match="positive integer"):
        thread_pool.set_num_threads(count)


@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({"JITGRAD_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "many"}, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None),
    ],
)
def test_default_number_of_threads(monkeypatch, variables, threads):
    for name in ("JITGRAD_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert thread_pool.default_threads() == (threads or os.cpu_count())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child_computes_the_same():
    thread_pool.set_num_threads(3)
    step = SumStep()
    expected = step().tobytes()

    child = os.fork()
    if child == 0:
        right = all(step().tobytes() == expected for _ in range(50))
        os._exit(0 if right and thread_pool.current_pool().threads == 3 else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert step().tobytes() == expected


SCRIPT = """
import os, signal, sys, threading
sys.path.insert(0, {folder!r})
import importlib.util
spec = importlib.util.spec_from_file_location("test_thread_pool", {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.thread_pool.set_num_threads(3)
step = module.SumStep()
expected = step().tobytes()
"""


def in_new_process(body):
    script = SCRIPT.format(folder=os.getcwd(), file=__file__) + body
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)


def test_exit_with_parked_and_spinning_workers():
    for _ in range(3):
        done = in_new_process("[step() for _ in range(10)]; print('end')")
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_exit_while_a_daemon_thread_runs_tables():
    done = in_new_process(
        "threading.Thread(target=lambda: [step() for _ in range(10**9)], daemon=True).start()\nprint('end')"
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_interrupt_leaves_the_pool_usable():
    done = in_new_process(
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it\n"
        "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    while True: step()\n"
        "except KeyboardInterrupt:\n"
        "    print(step().tobytes() == expected)\n"
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_native_loop_comes_from_disk_without_numba():
    instruction_loop.loop()

    done = in_new_process("print(module.instruction_loop.loop().from_disk, 'numba' in sys.modules)")

    assert done.stdout.split() == ["True", "False"], done.stderr
