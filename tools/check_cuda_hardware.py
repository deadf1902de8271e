"""Checks and measures jitgrad on the GPU of this machine in one unattended run of less than ten minutes.

    python tools/check_cuda_hardware.py [--limit 570] [--only tests,ops,bandwidth] [--json FILE]

Each part runs in a process of its own with a limit of its own, so a crash or a hang of one costs nothing but its row: the
doctor, one use of each thing, single-pass kernels against the bandwidth of the driver's copy in the same process, bits
against the CPU's kernels, threads, the host's cost of a small training step, memory over many steps of a GRU, the
tests marked "cuda", every op of the registry and random programs against NumPy, compute-sanitizer where that is installed,
and in the time that is left the benchmarks at 16 times their sizes against torch.compile and JAX where these are installed.
Tests and ops come in a mixed order, and end after a time with what they have. The last lines are a small table. Where the
variable OUT names a folder, that table, the rows as JSON and all that the parts print are there after each part. It needs no
network, and of packages what jitgrad and its tests need, cuBLAS and cuFFT. With ``--emulated`` it tries itself out without a
GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools import hardware_comparisons
from tools.hardware_run import Part, Row, results_folder, run_part, table, write_rows

ROOT = Path(__file__).parents[1]
CALLS = 20  # of a kernel, queued while the device is busy with copies
PLUG_BYTES = 256 << 20
GOAL = 0.9  # of the bandwidth of a copy
HOST_GOAL = 10.0  # microseconds to start a step
TESTS_SECONDS = OPS_SECONDS = 75.0  # these parts start nothing later, and say what they had no time for
LIMIT = 570.0  # seconds of the whole run: the limits of all parts but the suite are less, and the suite takes what is left
WARM_STEPS = 10  # results take turns, and graphs are captured
MEASURED = ("basics", "bandwidth", "bits", "threads", "host", "memory", "suite")


# --- parts that measure: each runs in a process of its own -----------------------------------------


def seconds_on_device(run: Callable[[], Any], busy: Callable[[], Any], calls: int) -> float:
    """Seconds of the device for one ``run``.

    The calls wait in the stream behind copies (``busy``), which take longer than the host needs to queue them: so the
    device runs them one after the other, and the host's time does not count.
    """
    from jitgrad.device.cuda import cuda_device

    driver = cuda_device().driver
    run()
    driver.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    queueing = time.perf_counter() - start
    driver.synchronize()
    start = time.perf_counter()
    busy()
    driver.synchronize()
    plugs = min(int(2 * queueing / max(time.perf_counter() - start, 1e-6)) + 2, 500)
    for _ in range(plugs):
        busy()
    first = driver.record_event()
    for _ in range(calls):
        run()
    last = driver.record_event()
    elapsed = driver.milliseconds_between(first, last)
    for event in (first, last):
        driver.destroy_event(event)
    return elapsed / 1e3 / calls


def single_pass_functions() -> dict[str, tuple[Callable[..., Any], int]]:
    """Functions that are one kernel over their largest argument, with the number of arguments of its shape."""
    import jitgrad as jg

    return {
        "x * y + 0.5": (lambda x, y: x * y + 0.5, 2),
        "tanh gelu": (lambda x: jg.gelu(x, approximate="tanh"), 1),
        "softmax of rows": (lambda x: jg.softmax(x, axis=1), 1),
        "layer norm": (lambda x: jg.layer_norm(x, (x.shape[1],)), 1),
        "sum of all": (lambda x: (x * x).sum(), 1),
        "sums of columns": (lambda x: (x * x).sum(axis=0), 1),
        "transposed": (lambda x, y: x.T * 2.0 + y, 2),
    }


def measure_bandwidth(sizes: tuple[int, ...], plug_bytes: int, calls: int, goal: float) -> Iterator[Row]:
    """Single-pass kernels against a copy of as many bytes; ``sizes`` in bytes of one array."""
    import numpy as np

    import jitgrad as jg
    from jitgrad.device.cuda import cuda_device

    device = cuda_device()
    plug = device.empty((plug_bytes,), np.dtype(np.uint8)), device.empty((plug_bytes,), np.dtype(np.uint8))

    def busy() -> None:
        device.driver.copy_on_device(plug[0].address, plug[1].address, plug_bytes)

    rng = np.random.default_rng(0)
    for size in sizes:
        columns = 1024 if size >= 1 << 22 else 64
        rows = size // 4 // columns
        arrays = [jg.tensor(rng.standard_normal((rows, columns), np.float32), device="cuda") for _ in range(2)]
        one, other = (x._data.address for x in arrays)
        seconds = seconds_on_device(lambda a=one, b=other, n=size: device.driver.copy_on_device(a, b, n), busy, calls)
        arrays[0] = jg.tensor(rng.standard_normal((rows, columns), np.float32), device="cuda")
        copy = 2 * size / seconds
        yield Row("bandwidth", f"copy of {size / 1e6:.0f} MB", f"{copy / 1e9:.0f} GB/s")
        for name, (function, count) in single_pass_functions().items():
            given = arrays[:count]
            if name == "transposed":
                given[1] = given[1].reshape((columns, rows))
            try:
                rate, row = measured(f"{name}, {size / 1e6:.0f} MB", function, given, busy, calls, copy)
                yield replace(row, ok=rate >= goal * copy)
            except Exception as error:
                yield Row("bandwidth", name, f"{type(error).__name__}: {str(error)[:150]}", False)


def measured(
    name: str, function: Callable[..., Any], given: list[Any], busy: Callable[[], Any], calls: int, copy: float
) -> tuple[float, Row]:
    """Bytes per second of one kernel, and its row, after a comparison of its results with those of the host."""
    import numpy as np

    import jitgrad as jg

    f = jg.jit(function, check="off")
    found, expected = f(*given), jg.jit(function, check="off")(*[x.cpu() for x in given])
    scale = float(abs(expected.numpy()).max())
    np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-4, atol=1e-5 * scale)
    kernels = f.kernels(*given)
    moved = sum(k.bytes_read + k.bytes_written for k in kernels)
    rate = moved / seconds_on_device(lambda: f(*given), busy, calls)
    registers = "/".join(str(r.registers) for k in kernels for r in k.resources)
    text = f"{rate / 1e9:.0f} GB/s, {rate / copy:.0%} of the copy; {len(kernels)} kernel, registers {registers}"
    return rate, Row("bandwidth", name, text)


def small_step(width: int = 64) -> Callable[[], Any]:
    """A training step of a small network with Adam on the device."""
    import jitgrad as jg
    from jitgrad import nn, optim

    jg.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)).to("cuda")
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    x, t = jg.randn(32, width).to("cuda"), jg.randn(32, 1).to("cuda")

    @jg.jit
    def step(x: Any, t: Any) -> Any:
        optimizer.zero_grad()
        loss = jg.mse_loss(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: step(x, t)


def measure_host(calls: int, goal: float) -> Iterator[Row]:
    """The host's time for a step, in microseconds at most ``goal``, and the time with the device's."""
    from jitgrad.device.cuda import synchronize

    step = small_step()
    for _ in range(3):
        step()
    synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        step()
    queued = time.perf_counter() - start
    synchronize()
    total = time.perf_counter() - start
    yield Row("host", "small training step", f"{queued / calls * 1e6:.0f} us to queue, {total / calls * 1e6:.0f} us in all",
              queued / calls * 1e6 <= goal)  # fmt: skip


def gru_step(hidden: int) -> Callable[[], Any]:
    """A training step of a recurrent network on the device."""
    import jitgrad as jg
    from jitgrad import nn, optim

    jg.manual_seed(0)
    model = nn.GRU(8, hidden).to("cuda")
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    x, t = jg.randn(5, 4, 8).to("cuda"), jg.randn(5, 4, hidden).to("cuda")

    @jg.jit
    def step(x: Any, t: Any) -> Any:
        optimizer.zero_grad()
        loss = jg.mse_loss(model(x)[0], t)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: step(x, t)


def measure_memory(steps: int, hidden: int) -> Iterator[Row]:
    """Whether a training loop holds as much memory at its end as after its first steps."""
    import jitgrad as jg

    step = gru_step(hidden)
    for _ in range(WARM_STEPS):
        step()
    before = jg.cuda.memory_stats()
    for _ in range(steps):
        step()
    after = jg.cuda.memory_stats()
    flat = after.bytes_held == before.bytes_held
    yield Row("memory", f"after {steps} steps of a GRU", f"{after.bytes_held:,} bytes held, {before.bytes_held:,} before", flat)


def measure(part: str, emulated: bool, seconds: float = 20.0) -> Iterator[Row]:
    """The rows of a part that measures."""
    from jitgrad.backends.cuda_target.emulated_device import emulated_device

    with emulated_device() if emulated else nullcontext():
        if part == "bandwidth":
            if emulated:
                yield from measure_bandwidth((1 << 14,), plug_bytes=1 << 12, calls=1, goal=0.0)
            else:
                yield from measure_bandwidth((16 << 20, 64 << 20, 256 << 20), PLUG_BYTES, CALLS, GOAL)
        elif part == "host":
            yield from measure_host(2, math.inf) if emulated else measure_host(500, HOST_GOAL)
        elif part == "basics":
            yield from (Row(part, *line) for line in hardware_comparisons.check_basics())
        elif part == "memory":
            yield from measure_memory(3, 4) if emulated else measure_memory(1000, 64)
        else:
            yield from (Row(part, *line) for line in compared(part, emulated, seconds))


def compared(part: str, emulated: bool, seconds: float) -> Iterator[hardware_comparisons.Line]:
    """The lines of a part that compares; the suite starts no workload after ``seconds``."""
    compare = hardware_comparisons
    if part == "bits":
        return compare.compare_bits(3 if emulated else None)
    if part == "threads":
        return compare.compare_threads(2, 1) if emulated else compare.compare_threads(8, 50)
    names = (*compare.GOAL_WORKLOADS, *compare.OTHER_WORKLOADS)
    if emulated:
        return compare.compare_speed(20.0, names[:2], (), 1, quick=True)
    return compare.compare_speed(seconds, names, compare.COMPILERS, compare.SCALE, quick=False)


# --- the run ---------------------------------------------------------------------------------------


def parts(emulated: bool) -> list[Part]:
    """All parts, in order: what is most worth knowing comes first."""
    me, python = str(Path(__file__)), sys.executable
    flag = ["--emulated"] if emulated else []
    check = [python, str(ROOT / "tools" / "check_cuda_ops.py"), *([] if emulated else ["--hardware"])]
    tests = [python, str(ROOT / "tools" / "bounded_tests.py"), str(TESTS_SECONDS), "-q", "-m", "not slow" if emulated else "cuda"]
    result = [
        Part("doctor", [python, "-m", "jitgrad", "doctor"], 30),
        Part("basics", [python, me, "--part", "basics", *flag], 40),
        Part("bandwidth", [python, me, "--part", "bandwidth", *flag], 80),
        Part("bits", [python, me, "--part", "bits", *flag], 50),
        Part("threads", [python, me, "--part", "threads", *flag], 25),
        Part("host", [python, me, "--part", "host", *flag], 25),
        Part("memory", [python, me, "--part", "memory", *flag], 40),
        Part("tests", [*tests, str(ROOT / "tests" / "device")], TESTS_SECONDS + 25),
        Part("ops", [*check, "--programs", "2" if emulated else "30", "--seconds", str(OPS_SECONDS)], OPS_SECONDS + 20),
    ]
    return [*result, *sanitized(python, me), Part("suite", [python, me, "--part", "suite", *flag], LIMIT)]


def sanitized(python: str, me: str) -> list[Part]:
    """Small parts under compute-sanitizer; where it is not installed, a line that says so."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        line = Row("sanitizer", "memcheck, racecheck", "compute-sanitizer is not installed: skipped")
        return [Part("sanitizer", [python, "-c", f"print({json.dumps(asdict(line))!r})"], 20)]
    options = ["--error-exitcode", "3", python, me, "--part", "threads"]
    return [Part(tool, [sanitizer, "--tool", tool, *options], 40) for tool in ("memcheck", "racecheck")]


def end_at_once(number: int, _frame: object) -> None:
    """Someone ends the script: `main` prints what there is."""
    raise KeyboardInterrupt(f"signal {number}")


def main() -> int:
    """1 if a part failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for all parts")
    parser.add_argument("--seconds", type=float, default=140.0, help="with --part suite, for starting workloads")
    parser.add_argument("--only", default="", help="parts, comma-separated")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--emulated", action="store_true", help="try the script out, on an emulated device")
    parser.add_argument("--part", choices=MEASURED, help="measure this in the same process")
    options = parser.parse_args()
    if options.part:
        for row in measure(options.part, options.emulated, options.seconds):
            print(json.dumps(asdict(row)), flush=True)
        return 0
    chosen = [p for p in parts(options.emulated) if not options.only or p.name in options.only.split(",")]
    end = time.monotonic() + options.limit
    folder = results_folder()
    signal.signal(signal.SIGTERM, end_at_once)
    rows: list[Row] = []
    try:
        for part in chosen:
            left = min(part.seconds, end - time.monotonic())
            if part.name == "suite":  # a workload that is started may take a minute to compile
                part = replace(part, command=[*part.command, "--seconds", str(max(0.0, left - 60))])
            rows += run_part(part, left, folder) if left > 5 else [Row(part.name, "not run", "no time was left")]
            write_rows(rows, options.json, folder)
    except KeyboardInterrupt as error:
        rows.append(Row("script", "was ended", str(error) or "by Ctrl-C", False))
        write_rows(rows, options.json, folder)
    print(f"\n{table(rows)}", flush=True)
    return int(any(row.ok is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
