"""Ctrl-C while a call changes state: all of it has changed afterwards, or nothing has."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.jit import interrupted_calls
from jitgrad.runtime.executor.deferred_interrupts import deferring, was_deferred

SCRIPT = """
import os, random, signal, sys, threading, time
from types import SimpleNamespace
import numpy as np
import jitgrad as jg

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
n = 1 << (9 if os.environ["JITGRAD_BACKEND"] == "python" else 18)
w, m, c = jg.tensor(np.zeros(n, "f4")), jg.tensor(np.zeros(n, "f4")), jg.zeros(())
state = SimpleNamespace(steps=0, log=[])

def step(x):
    state.steps += 1
    w.add_(x)
    m.mul_(0.0)
    m.add_(w)
    c.add_(1.0)
    state.log.append(c * 1.0)
    for _ in range(3):
        x = jg.tanh(x) + jg.sin(w) * 0.0
    return x.sum()

g, x = jg.jit(step, check="off"), jg.ones(n)
for _ in range(4):
    g(x)
start = time.perf_counter()
g(x)
seconds, numbers, hits = time.perf_counter() - start, random.Random(0), 0
for _ in range(int(sys.argv[1])):
    timer = threading.Timer(3 * seconds * numbers.random(), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while timer.is_alive():
            g(x)
        time.sleep(0.2)
    except KeyboardInterrupt:
        hits += 1
    timer.join()
    a, b = w.numpy(), m.numpy()
    counts = {state.steps, len(state.log), c.item(), *map(float, (a.min(), a.max(), b.min(), b.max()))}
    assert len(counts) == 1, counts
print(hits > 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("backend", ["cpu", "python"])
def test_a_signal_leaves_all_of_the_state_changed_or_nothing(backend: str) -> None:
    env = dict(os.environ, JITGRAD_BACKEND=backend)

    trials = "30" if backend == "cpu" else "8"
    command = [sys.executable, "-c", SCRIPT, trials]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)

    assert (run.returncode, run.stdout) == (0, "True\n"), run.stderr


def test_an_interrupt_is_raised_at_the_end_of_the_outermost_call() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), deferring():
        with deferring():
            assert was_deferred(KeyboardInterrupt())
            reached.append("inner")
        reached.append("outer")

    assert reached == ["inner", "outer"]
    assert not was_deferred(KeyboardInterrupt())


@pytest.mark.parametrize("line", range(-1, 12))
def test_a_fast_call_goes_on_behind_any_of_its_lines(line: int) -> None:
    """A tracer raises the interrupt so many lines behind the one that runs the program."""
    state, w, log = SimpleNamespace(steps=0), jg.zeros(4), []

    def step(x: Any) -> Any:
        state.steps += 1
        w.add_(x)
        log.append(w * 2.0)
        return w.sum()

    compiled = jg.jit(step, check="off", backend="cpu")
    for _ in range(4):
        compiled(jg.ones(4))
    (fast_call,) = compiled._fast_calls.in_order
    code = next(f.__code__ for cell in fast_call.__closure__ or () if callable(f := cell.cell_contents))
    wanted = interrupted_calls._texts[code]._run_line + line

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is not code:
            return None
        if event == "line" and frame.f_lineno == wanted:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        compiled(jg.ones(4))
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)

    after = (state.steps, w.tolist(), len(log))
    assert after == ((4, [4.0] * 4, 4) if line <= 0 else (5, [5.0] * 4, 5))
