"""Ctrl-C stops a long program between two blocks, and leaves the state as it was before the call."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, threading
import numpy as np
import jitgrad as jg

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
x, count = jg.tensor(np.linspace(0, 1, 1 << 22, dtype="f4"), requires_grad=True), jg.zeros(1000)

def f(x):
    count[...] = count + 1
    for _ in range(30):
        x = jg.tan(x) * 0.9 + jg.erf(x)
    return x.sum()

g = jg.jit(f, check="off")

def interrupted(call):  # long before the call would have ended
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        return True
    return False

def check(calls, *stopped):  # a call that ran to its end before it heard of the interrupt would have counted
    print(count[0].item() == count[-1].item() == calls, *stopped)

g(x)
loss = g(x)
check(2)
check(2, interrupted(lambda: g(x)), interrupted(lambda: g(x)))
check(2, interrupted(lambda: loss.backward(retain_graph=True)))
print(x.grad is None)
loss.backward()
print(x.grad is not None, g(x).item() == loss.item())
check(3)
print([jg.jit(lambda x: x * 2)(jg.ones(2)).tolist() for _ in range(3)])
"""


@pytest.mark.numba
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_program_is_interrupted_between_blocks(threads: int) -> None:
    env = dict(os.environ, JITGRAD_BACKEND="cpu", JITGRAD_NUM_THREADS=str(threads))

    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=300, check=False
    )

    assert run.returncode == 0, run.stderr
    lines = ["True", "True True True", "True True", "True", "True True", "True", str([[2.0, 2.0]] * 3)]
    assert run.stdout.splitlines() == lines, run.stdout
