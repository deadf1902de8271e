"""Threads may trace and compile at once, and a child that is forked meanwhile can call compiled functions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import gc, os, sys, threading, time, warnings
import numpy as np
import jitgrad as jg

warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
known = jg.jit(lambda x: jg.tanh(x) * 2 + 1)
x = jg.tensor(np.arange(5.0), requires_grad=True)
stop = False


def compile_all_the_time():
    k = 0
    while not stop:
        k += 1
        y = jg.jit(lambda x: jg.exp(x) * jg.sin(x * k) + x.sum())(x)
        y.sum().backward()
        shared(jg.ones(k % 50 + 1))


shared = jg.jit(lambda x: jg.exp(x).sum() / x)
threads = [threading.Thread(target=compile_all_the_time, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()

for attempt in range(12):
    time.sleep(0.03)
    child = os.fork()
    if child == 0:
        try:
            z = jg.tensor(np.arange(5.0), requires_grad=True)
            (known(z) + jg.jit(lambda x: jg.cos(x) + attempt)(z)).sum().backward()
            shared(jg.ones(3 + attempt))
            good = np.isfinite(z.grad.numpy()).all() and gc.isenabled()
        except BaseException as error:
            print(repr(error), flush=True)
            good = False
        os._exit(0 if good else 1)
    end = time.monotonic() + 60
    while (status := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(child, 9)
            sys.exit(f"child {attempt} hangs")
        time.sleep(0.005)
    if status[1]:
        sys.exit(f"child {attempt} failed")
stop = True
for thread in threads:
    thread.join()
"""


@pytest.mark.numba
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("backend", ["cpu", "python"])
def test_a_child_of_a_process_that_is_compiling_can_compile_and_run(backend: str, tmp_path) -> None:
    env = dict(os.environ, JITGRAD_BACKEND=backend, JITGRAD_CACHE_DIR=str(tmp_path))

    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=300, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr


THREADS = """
import threading
import jitgrad as jg

def trace_often():
    for k in range(40):
        jg.jit(lambda x: jg.exp(x) * jg.sin(x * k) + x.sum())(jg.arange(5.0))

threads = [threading.Thread(target=trace_often) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_trace_at_once_do_not_crash_python(tmp_path) -> None:
    """Python 3.12 did, where `sys.settrace` of several threads rewrites the same bytecode."""
    env = dict(os.environ, JITGRAD_BACKEND="python", JITGRAD_CACHE_DIR=str(tmp_path))

    run = subprocess.run(
        [sys.executable, "-c", THREADS], env=env, capture_output=True, text=True, timeout=300, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr
