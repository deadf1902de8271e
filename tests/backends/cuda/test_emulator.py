"""The emulator runs kernel text as a GPU does, and finds what a GPU forbids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda import emulator
from jitgrad.backends.cuda.emulator_memory import KernelFault
from tests.backends.cuda.conftest import RecordingTarget, normal

BASE = 0x1000


def run(source: str, array: np.ndarray[Any, Any], *args: int, blocks: int = 1, threads: int = 32) -> None:
    """Launch ``kernel`` of ``source`` on ``array``, which is all the memory of the device."""
    kind = {"f": "f32", "d": "f64", "q": "i64", "l": "i64"}[array.dtype.char]
    memory = array.view(np.uint8)
    params = (f"{kind}*", *["i64"] * (len(args)))
    emulator.launch(source, "kernel", params, blocks, threads, (BASE, *args, array.size), lambda at: (memory, at - BASE))


def kernel(*lines: str) -> str:
    return "def kernel(x, iterations):\n    threads(32)\n" + "".join(f"    {line}\n" for line in lines)


def test_threads_run_in_step() -> None:
    x = np.zeros(64, np.int64)
    run(kernel("i = block() * 32 + thread()", "x[i] = i * i"), x, blocks=2)
    assert x.tolist() == [i * i for i in range(64)]


def test_branches_and_loops_mask_threads() -> None:
    x = np.zeros(32, np.int64)
    source = kernel(
        "t = thread()",
        "s = to_i64(0)",
        "for k in range(t):",
        "    s = s + k",
        "if t % 2 == 0:",
        "    s = -s",
        "else:",
        "    s = s + 1000",
        "x[t] = s",
    )
    run(source, x)
    sums = [t * (t - 1) // 2 for t in range(32)]
    assert x.tolist() == [-s if t % 2 == 0 else s + 1000 for t, s in enumerate(sums)]


def test_shuffles_exchange_numbers_within_a_warp() -> None:
    x = np.arange(32, dtype=np.float32)
    run(kernel("v = x[thread()]", "x[thread()] = v + shuffle_xor(v, 1)"), x)
    assert x.tolist() == [float(t + (t ^ 1)) for t in range(32)]


def test_shared_memory_is_seen_after_a_barrier() -> None:
    x = np.arange(32, dtype=np.float32)
    run(kernel("h = shared_f32(32)", "h[thread()] = x[thread()]", "barrier()", "x[thread()] = h[31 - thread()]"), x)
    assert x.tolist() == list(range(31, -1, -1))


FAULTS: dict[str, tuple[list[str], str]] = {
    "out of bounds": (["x[thread() + 1] = to_f32(0.0)"], "element 32 of x, which has 32"),
    "two writers": (["x[thread() // 2] = to_f32(0.0)"], "another thread write one element"),
    "read of a write": (["x[thread()] = to_f32(1.0)", "a = x[31 - thread()]"], "reads what another thread has just written"),
    "write of a read": (["a = x[31 - thread()]", "x[thread()] = a"], "writes what another thread has just read"),
    "no barrier": (["h = shared_f32(32)", "h[thread()] = x[thread()]", "a = h[31 - thread()]"], "just written of shared"),
    "unset shared memory": (["h = shared_f32(32)", "a = h[thread()]"], "reads what nothing has written"),
    "barrier in a branch": (["if thread() < 7:", "    barrier()"], "not all threads of a block reach a barrier"),
    "shuffle in a branch": (["if thread() < 7:", "    a = shuffle_xor(to_f32(1.0), 1)"], "not all threads of a warp reach"),
    "wrong dtype": (["x[thread()] = to_f64(1.0)"], "float64 is stored in x, memory of float32"),
    "mixed floats": (["a = to_f64(1.0) + to_f32(1.0)"], "need"),
    "unaligned vector": (["v = scratch_f32(4)", "copy_vector(v, at(x, thread() % 8 * 2), 4)"], "is not at a multiple of its"),
    "unset scratch": (["v = scratch_f32(4)", "a = v[0]"], "is read before it is written"),
    "scratch by thread": (["v = scratch_f32(4)", "v[thread() % 4] = to_f32(0.0)"], "cannot be in registers"),
    "wrong block": (["threads(64)"], "runs in blocks of 64 threads, launched with 32"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str) -> None:
    lines, message = FAULTS[fault]
    with pytest.raises(KernelFault, match=message):
        run(kernel(*lines), np.zeros(32, np.float32))


def softmax(x: Any) -> Any:
    return jg.softmax(x, axis=1)


def sum_of_shares(x: Any) -> Any:
    return (x / x.sum(axis=1, keepdims=True)).sum(axis=0)


def total(x: Any) -> Any:
    return x.sum()


def columns(x: Any) -> Any:
    return jg.exp(x).sum(axis=0)


def with_transposed(x: Any) -> Any:
    return x.T * 2.0 + x


READ, WRITTEN, BOUNDS, RESULT = "just read of", "just written|nothing has written", "which has", ""
SHARED = "just written of shared memory|nothing has written"
# A mistake in a kernel that this package writes: what is replaced, by what, and what the emulator says of it, or that the
# result differs.
PLANTED: dict[str, tuple[Callable[..., Any], tuple[int, ...], str, str, str]] = {
    "dropped first barrier": (
        sum_of_shares, (600, 300), "        barrier()\n        if thread() % 32 == 0:", "        if thread() % 32 == 0:", READ,
    ),
    "dropped second barrier": (total, (3000,), "    barrier()\n    r2 = ", "    r2 = ", WRITTEN),
    "dropped barrier of a tile": (with_transposed, (80, 80), "    barrier()\n", "", WRITTEN),
    "dropped barrier of column sums": (
        columns, (1000, 10), "        barrier()\n        if thread() < 16", "        if thread() < 16", WRITTEN,
    ),
    "barrier that some threads miss": (
        columns, (1000, 10),
        "        barrier()\n        if thread()", "        if j < n:\n            barrier()\n        if thread()",
        "not all threads of a block reach a barrier",
    ),
    "wrong stride": (jg.tanh, (60, 4), "(block() * 256 + thread()) * 4", "(block() * 256 + thread()) * 8", RESULT),
    "wrong stride of a tile": (with_transposed, (80, 80), "thread() % 32 * 33 + k", "thread() % 32 * 32 + k", SHARED),
    "tail one too long": (jg.tanh, (1001,), "if j + u < iterations:", "if j + u <= iterations:", BOUNDS),
    "tail of rows one too long": (
        with_transposed, (80, 80), "if r < iterations and j < n:", "if r < iterations and j <= n:", SHARED,
    ),
    "missing mask of the last vector": (jg.tanh, (1001,), "if whole and j + 4 <= iterations:", "if whole:", BOUNDS),
    "missing mask of a sum": (total, (3001,), "select(j + u < stop, a1, to_f32(0.0))", "a1", RESULT),
    "missing mask of a row": (softmax, (37, 200), "size = select(r < stop, n, 0)", "size = n", BOUNDS),
    "overlapping rows": (softmax, (40, 50), "r = start + thread() // 32", "r = start + thread() // 64", "another thread"),
    "race of blocks": (jg.tanh, (3000,), "(block() * 256 + thread())", "(block() * 255 + thread())", "another thread"),
    "all threads store": (total, (3000,), "if thread() == 0:", "if thread() <= 1:", "another thread write one element"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_mistakes_in_kernels_are_found(name: str, emulated: RecordingTarget) -> None:
    function, shape, old, new, message = PLANTED[name]
    x = normal(*shape)
    expected = jg.jit(function, check="off", backend="emulated")(x).numpy()
    emulated.replaced.append((old, new))
    emulated._kernels = type(emulated._kernels)(emulated.load)
    if message:
        with pytest.raises(KernelFault, match=message):
            jg.jit(function, check="off", backend="emulated")(x)
    else:
        found = jg.jit(function, check="off", backend="emulated")(x).numpy()
        assert not np.array_equal(found, expected)
    assert emulated.found == {old}, "\n".join(emulated.texts)
