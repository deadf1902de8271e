"""Checks each peer against the float64 reference, then times all in turn, round by round."""

from __future__ import annotations

import gc
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import system
from benchmarks.peers import REFERENCES, Peer, PeerMissing, leaves, load, tree_map
from benchmarks.roofline import KernelLimit, kernel_limits
from benchmarks.workload import Arrays, Workload, to_float64

SLICE = 20e-3  # seconds of one timed batch of calls: caches are warm in a training loop, but not after a pause
PAUSE, LONGEST_PAUSE = 0.01, 0.3  # seconds; before each batch
MAX_REPEATS = 5000
WARM_UP = 3


@dataclass(slots=True)
class Row:
    """One peer on one workload; times in seconds per call, ``peak`` in bytes above the memory in use before."""

    workload: str
    peer: str
    first: float = math.nan
    median: float = math.nan
    low: float = math.nan
    high: float = math.nan
    best: float = math.nan
    error: float = math.nan
    faults: float = math.nan
    allocations: float = math.nan
    peak: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    failure: str = ""


@dataclass(slots=True)
class Outcome:
    """All rows of one workload.

    ``bytes`` is the least that it must move, ``copy`` the seconds of a copy of so many, ``products`` the seconds of its
    matrix products in NumPy (NaN without any), ``kernels`` the larger kernels of jitgrad beside their limits.
    """

    workload: str
    title: str
    sizes: str
    bytes: int
    reference: str
    copy: float
    rows: list[Row]
    products: float = math.nan
    kernels: list[KernelLimit] = field(default_factory=list)


@dataclass(slots=True)
class _Running:
    """A peer that passed the check, ready to be timed."""

    row: Row
    call: Callable[[], Any]
    products: Sequence[Any] = ()
    kernels: Callable[[], list[KernelLimit]] = list
    repeats: int = 1
    times: list[float] = field(default_factory=list)
    faults: int = 0
    allocations: int = 0


def _call(peer: Peer, function: Callable[..., Any], arguments: Sequence[Any], carries: bool) -> Callable[[], Any]:
    """One call as in a user's loop: it passes the state on, and returns when the results are computed."""
    wait = peer.wait
    if not carries:
        return lambda: wait(function(*arguments))
    state, rest = arguments[0], arguments[1:]

    def step() -> Any:
        nonlocal state
        out = wait(function(state, *rest))
        state = out[-1]
        return out

    return step


def reference_of(workload: Workload, inputs: Arrays, threads: int) -> tuple[str, list[np.ndarray[Any, Any]]]:
    """(library, arrays) of the float64 reference."""
    failures = []
    for name in REFERENCES:
        try:
            peer = load(name, threads)
            out = peer.wait(workload.function(peer)(*tree_map(peer.array, to_float64(inputs))))
        except PeerMissing as error:
            failures.append(str(error))
            continue
        return name, [np.array(x) for x in peer.arrays(out)]
    raise PeerMissing(f"no library for the reference: {'; '.join(failures)}")


def error_of(results: Sequence[Any], expected: Sequence[Any], *, complete: bool = False) -> float:
    """The largest difference, divided by the largest number of the same array.

    ``complete``: all expected arrays must be there (a variant may return only the first ones).

    Raises:
        ValueError: for a result of another shape, or a missing one.
    """
    if complete and len(results) != len(expected):
        raise ValueError(f"there are {len(results)} results; the reference has {len(expected)}")
    worst = 0.0
    for a, b in zip(results, expected, strict=False):
        a = np.asarray(a, np.float64)
        if a.shape != b.shape:
            raise ValueError(f"a result has shape {a.shape}; the reference says {b.shape}")
        if b.size:
            scale = max(float(np.max(np.abs(b))), 1e-12)
            worst = max(worst, float(np.max(np.abs(a - b))) / scale)
    return worst


def _step_names(function: Any, arguments: Sequence[Any]) -> dict[str, int]:
    """The kernels and library calls of a compiled jitgrad function, with the number of calls of each."""
    if not hasattr(function, "lookup"):
        return {}
    steps = function.lookup(*arguments).program.steps
    return dict(Counter(s.kernel.name if hasattr(s, "kernel") else f"[{s.op.name}]" for s in steps))


def _products(function: Any, arguments: Sequence[Any]) -> list[Any]:
    """The avals of the operands of each matrix product in a compiled jitgrad function."""
    if not hasattr(function, "lookup"):
        return []
    steps = function.lookup(*arguments).program.plan.steps
    return [[place.aval for place in s.reads] for s in steps if hasattr(s, "op") and s.op.name == "matmul"]


def _multiplying(products: Sequence[Any]) -> Callable[[], Any]:
    """A function that computes ``products`` with NumPy, into existing memory."""
    operands = [[np.ones(aval.shape, aval.dtype) for aval in avals] for avals in products]
    matmuls = [(a, b, a @ b) for a, b in operands]

    def run() -> None:
        for a, b, out in matmuls:
            np.matmul(a, b, out=out)

    return run


def _prepare(workload: Workload, name: str, peer: Peer, inputs: Arrays, expected: list[Any]) -> _Running:
    """Compile, check the first result, warm up. Failures are stored in the row."""
    row = Row(workload.name, name)
    running = _Running(row, lambda: None)
    before = system.resident()
    system.forget_peak()
    try:
        if name in workload.variants:
            function, arguments, arrays = workload.variants[name](inputs)
            running.call = _call(peer, function, arguments, carries=False)
        else:
            compiler = peer.donating if workload.carries and peer.donating else peer.compile
            function = compiler(workload.function(peer))
            arguments = tuple(tree_map(peer.array, inputs))
            arrays = peer.arrays
            running.call = _call(peer, function, arguments, workload.carries)
        start = time.perf_counter()
        out = running.call()
        row.first = time.perf_counter() - start
        row.error = error_of(arrays(out), expected, complete=name not in workload.variants)
        if not row.error <= workload.tolerance:
            raise ArithmeticError(f"wrong: error {row.error:.1e}, allowed {workload.tolerance:.0e}")
        row.steps = _step_names(function, arguments)
        if name == "jitgrad":
            running.products = _products(function, arguments)
            running.kernels = lambda: kernel_limits(function, tuple(tree_map(peer.array, inputs)))
        del out
        _warm_up(running)
    except Exception as error:  # a library's failure is a line in the table; the others go on
        text = str(error).strip().splitlines()
        row.failure = f"{type(error).__name__}: {text[0] if text else ''}"[:200]
    row.peak = max(0, system.peak() - before)
    return running


def _warm_up(running: _Running) -> None:
    for _ in range(WARM_UP):
        start = time.perf_counter()
        running.call()
        seconds = time.perf_counter() - start
    running.repeats = max(1, min(MAX_REPEATS, math.ceil(SLICE / max(seconds, 1e-9))))


def until_idle() -> None:
    """Sleep until no thread of this process runs.

    Threads of OpenMP and BLAS libraries spin after their last work (OpenBLAS's for 0.11 s) on cores that the next library
    needs.
    """
    end = time.perf_counter() + LONGEST_PAUSE
    while time.perf_counter() < end:
        used = time.process_time()
        time.sleep(PAUSE)
        if time.process_time() - used < 0.2 * PAUSE:
            return


def _round(running: _Running) -> None:
    """One timed batch, after a pause."""
    call, repeats = running.call, running.repeats
    until_idle()
    call()  # not timed: the caches hold the data of the library before
    faults, allocations = system.faults(), system.allocations()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    seconds = time.perf_counter() - start
    running.faults += system.faults() - faults
    running.allocations += system.allocations() - allocations
    running.times.append(seconds / repeats)


def _copying(nbytes: int) -> Callable[[], Any]:
    """A function that copies: it reads and writes ``nbytes`` in total."""
    source = np.ones(max(1, nbytes // 8), np.float32)
    target = np.zeros_like(source)
    return lambda: np.copyto(target, source)


def _finish(running: _Running) -> None:
    row, times = running.row, running.times
    if not times:
        return
    row.low, row.median, row.high = (float(np.quantile(times, q)) for q in (0.25, 0.5, 0.75))
    row.best = min(times)
    calls = running.repeats * len(times)
    row.faults = running.faults / calls
    if row.peer.startswith("jitgrad"):
        row.allocations = running.allocations / calls


def rounds(runners: Sequence[_Running], seconds: float, least: int = 5, most: int = 40) -> None:
    """Time all in turn, so that other load of the machine affects all equally.

    Each round has another order, so that no runner always follows the same one.
    """
    done, order, start = 0, random.Random(0), time.perf_counter()
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        while done < least or (done < most and time.perf_counter() - start < seconds):
            for running in order.sample(runners, len(runners)):
                _round(running)
            done += 1
    finally:
        if enabled:
            gc.enable()


def measure(
    workload: Workload,
    peers: Sequence[Peer],
    *,
    quick: bool,
    seconds: float,
    threads: int,
    say: Callable[[str], None] = lambda text: None,
    scale: int = 1,
) -> Outcome:
    """Run ``workload`` with ``peers``, and its variants, at ``scale`` times its sizes."""
    sizes = workload.scaled(workload.quick if quick else workload.sizes, scale)
    inputs = workload.inputs(np.random.default_rng(0), sizes)
    say("reference")
    reference, expected = reference_of(workload, inputs, threads)
    runners = []
    for name, peer in _contestants(workload, peers):
        say(name)
        runners.append(_prepare(workload, name, peer, inputs, expected))
    nbytes = sum(x.nbytes for x in leaves(inputs)) + sum(x.size * _itemsize(inputs) for x in expected)
    copy = _Running(Row(workload.name, "copy"), _copying(nbytes))
    products = _Running(Row(workload.name, "products"), _multiplying([p for r in runners for p in r.products]))
    limits = [copy, products] if any(r.products for r in runners) else [copy]
    for running in limits:
        _warm_up(running)
    say("timing")
    rounds([*limits, *(r for r in runners if not r.row.failure)], seconds)
    for running in (*limits, *runners):
        _finish(running)
    text = ", ".join(f"{k}={v if not isinstance(v, tuple) else _short(v)}" for k, v in sizes.items())
    rows = [r.row for r in runners]
    kernels = [kernel for r in runners if not r.row.failure for kernel in r.kernels()]
    return Outcome(
        workload.name, workload.title, text, nbytes, reference, copy.row.median, rows, products.row.median, kernels
    )


def _contestants(workload: Workload, peers: Sequence[Peer]) -> list[tuple[str, Peer]]:
    by_library = {peer.name.split(".")[0]: peer for peer in reversed(peers)}
    plain = [(p.name, p) for p in peers if p.value_and_grad is not None or not workload.gradients]
    return plain + [(v, by_library[v.split(".")[0]]) for v in workload.variants if v.split(".")[0] in by_library]


def _itemsize(inputs: Arrays) -> int:
    return max(int(x.dtype.itemsize) for x in leaves(inputs) if x.dtype.kind == "f")


def _short(values: tuple[Any, ...]) -> str:
    shown = ",".join(map(str, values)) if len(values) < 8 else f"{values[0]},{values[1]}...{values[-1]} ({len(values)})"
    return f"({shown})"
