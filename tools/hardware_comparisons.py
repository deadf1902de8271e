"""What `tools/check_cuda_hardware.py` compares on the device: bits with the CPU's kernels, threads with each other, and the
benchmarks with other compilers. Each function gives lines of its table: what, what was found, and whether it is right."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Line = tuple[str, str, bool | None]

SCALE = 16  # of the benchmarks' sizes
COMPILERS = ("torch.compile", "torch.compile.max-autotune", "jax")
# value and gradient of elementwise chains and normalisations: what the goal is about; the first are worth most
GOAL_WORKLOADS = (
    "gelu_chain", "rms_norm", "cross_entropy", "residual_norm_gelu", "swiglu", "batch_norm", "dropout_residual_norm",
)  # fmt: skip
OTHER_WORKLOADS = ("adam_mixed", "logistic", "transformer")
SMALL_WORKLOADS = ("mlp_step_32", "deep_mlp_step", "lstm_cell")  # many launches, little work in each
GOAL, SMALL_GOAL = 1.5, 3.0  # geometric means of the speed-ups over the fastest other compiler


def _basic_uses() -> dict[str, tuple[Any, Any]]:
    """Functions of one argument, and an argument for each."""
    import numpy as np

    import jitgrad as jg

    x = np.random.default_rng(1).standard_normal((48, 64)).astype(np.float32)
    z = x[:, :32] + 1j * x[:, 32:]

    def graph(x: Any) -> Any:
        for _ in range(8):
            x = jg.softmax(x, axis=0) - jg.softmax(x, axis=1)
        return x

    def in_place(x: Any) -> Any:
        y = x.clone()
        y[::2, 1:] += 1.0
        return y

    return {
        "a copy there and back": (lambda x: x.clone(), x),
        "one op": (lambda x: x * 2.0, x),
        "a compiled kernel": (jg.jit(lambda x: jg.tanh(x) * x, check="off"), x),
        "a reduction": (jg.jit(lambda x: jg.softmax(x, axis=1).sum(0), check="off"), x),
        "a strided view": (lambda x: x.T[::2, ::-1] + 1.0, x),
        "a change in place": (in_place, x),
        "a product, float32": (lambda x: x @ x.T, x),
        "a product, float64": (lambda x: x @ x.T, x.astype(np.float64)),
        "a product, complex64": (lambda z: z @ z.T, z.astype(np.complex64)),
        "a product, complex128": (lambda z: z @ z.T, z.astype(np.complex128)),
        "complex arithmetic": (jg.jit(lambda z: jg.exp(z) * z.conj() / (z + 2.0), check="off"), z.astype(np.complex64)),
        "a complex transform": (lambda z: jg.fft.ifft(jg.fft.fft2(z), axis=0), z.astype(np.complex64)),
        "a real transform": (lambda x: jg.fft.irfft(jg.fft.rfft(x) * 2.0), x),
        "a gradient": (jg.grad(lambda x: (jg.gelu(x) ** 2).sum()), x),
        "a CUDA graph": (jg.jit(graph, check="off"), x),
        "the first-call check": (jg.jit(lambda x: jg.layer_norm(x, (64,))), x),
    }


def check_basics() -> Iterator[Line]:
    """One small use of each thing that a device does, each by itself: what fails here explains what fails later."""
    import numpy as np

    import jitgrad as jg

    for what, (function, given) in _basic_uses().items():
        try:
            on_device = jg.tensor(given, device="cuda")
            found = [function(on_device).cpu().numpy() for _ in range(4)]  # a graph is captured in the second call
            expected = function(jg.tensor(given)).numpy()
            wrong = max(float(np.abs(y - expected).max()) for y in found) / max(float(np.abs(expected).max()), 1e-30)
            yield what, f"differs by {wrong:.1e} of the largest element", wrong < 1e-4
        except Exception as error:
            yield what, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", False


def compare_bits(limit: int | None = None) -> Iterator[Line]:
    """Whether each elementwise op has the bits of the CPU's kernels, in float32 and float64; ``limit``: of so many ops."""
    import numpy as np

    import jitgrad as jg
    from jitgrad.core.dispatch import apply_op
    from jitgrad.core.errors import DtypeError
    from jitgrad.core.op import Kind
    from jitgrad.testing import sample_operands
    from jitgrad.testing.on_device import ops_to_check

    ops = [op for op in ops_to_check() if op.kind is Kind.ELEMENTWISE and op.scalar is not None]
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        different, failed, count = [], [], 0
        for op in ops[:limit]:
            operands = [jg.tensor(x) for x in sample_operands(op, np.random.default_rng(0), (65, 67), dtype)]

            def f(*xs: Any, op: Any = op) -> Any:
                return apply_op(op, *xs, **op.sample_attrs)

            try:
                expected = jg.jit(f, check="off")(*operands).numpy()
            except DtypeError:
                continue  # the op does not take this dtype
            count += 1
            try:
                found = jg.jit(f, check="off")(*[x.to("cuda") for x in operands]).cpu().numpy()
            except Exception as error:
                failed.append(f"{op.name}: {type(error).__name__}: {str(error)[:80]}")
                continue
            if found.tobytes() != expected.tobytes():
                different.append(op.name)
        same = count - len(different) - len(failed)
        text = f"{same} of {count} elementwise ops" + (f"; not {', '.join(different)}" if different else "")
        yield f"as the CPU's kernels, {dtype}", "; ".join([text, *failed[:3]]), same == count


def compare_threads(threads: int, calls: int) -> Iterator[Line]:
    """Whether threads that run one compiled function at once get what one thread gets."""
    import jitgrad as jg

    gradient = jg.jit(jg.value_and_grad(lambda x, w: (jg.softmax(jg.tanh(x @ w), axis=1) ** 2).sum(), argnums=(0, 1)))
    jg.manual_seed(0)
    inputs = [(jg.randn(64, 32).to("cuda"), jg.randn(32, 48).to("cuda")) for _ in range(threads)]

    def run(k: int) -> bytes:
        value, gradients = gradient(*inputs[k])
        return b"".join(x.cpu().numpy().tobytes() for x in (value, *gradients))

    expected = [run(k) for k in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda k: all(run(k) == expected[k] for _ in range(calls)), range(threads)))
    yield f"{threads} threads, {calls} calls each", f"{sum(found)} have the bits of one thread", all(found)


def compare_speed(seconds: float, names: Sequence[str], compilers: Sequence[str], scale: int, quick: bool) -> Iterator[Line]:
    """The benchmarks against other compilers on the device, each checked against a float64 reference first.

    The numbers are times of the other divided by ours. Workloads that ``seconds`` do not suffice for are named. Small
    steps, which are launched as one CUDA graph, are measured at their own size.
    """
    from benchmarks import peers as libraries

    libraries.prepare_threads(8, "cuda")
    end = time.monotonic() + seconds
    missing: list[str] = []
    peers = libraries.load_all(["jitgrad", *compilers], 8, missing.append, "cuda")
    for text in missing:
        yield "not compared", text, None
    best: dict[str, float] = {}
    groups = [(names, scale)] if quick else [(names[: len(GOAL_WORKLOADS)], scale), (SMALL_WORKLOADS, 1)]
    groups += [] if quick else [(names[len(GOAL_WORKLOADS) :], scale)]
    for group, size in groups:
        for k, name in enumerate(group):
            if time.monotonic() > end:
                yield "no time was left for", ", ".join(group[k:]), None
                break
            try:
                yield _compared(name, peers, size, quick, best)
            except Exception as error:
                yield name, f"{type(error).__name__}: {str(error)[:150]}", False
    yield from _mean("large", best, GOAL_WORKLOADS, GOAL)
    yield from _mean("small", best, SMALL_WORKLOADS, SMALL_GOAL)


def _compared(name: str, peers: Sequence[Any], scale: int, quick: bool, best: dict[str, float]) -> Line:
    """The line of one workload; its smallest ratio enters ``best``."""
    from benchmarks.measure import measure
    from benchmarks.workloads import ALL

    outcome = measure(ALL[name], peers, quick=quick, seconds=0.0 if quick else 1.5, threads=8, scale=scale)
    rows = {row.peer: row for row in outcome.rows}
    ratios = {p: row.median / rows["jitgrad"].median for p, row in rows.items() if p in COMPILERS and not row.failure}
    failures = [f"{row.peer}: {row.failure.splitlines()[0][:60]}" for row in outcome.rows if row.failure]
    if ratios and not rows["jitgrad"].failure:
        best[name] = min(ratios.values())
    text = ", ".join([f"{ratio:.2f} {peer}" for peer, ratio in ratios.items()] + failures) or "right, not compared"
    slower = name in best and best[name] < 1.0
    return f"{name}, {outcome.sizes}"[:32], text, not (rows["jitgrad"].failure or slower)


def _mean(what: str, best: dict[str, float], names: Sequence[str], goal: float) -> Iterator[Line]:
    if reached := [best[name] for name in names if name in best]:
        mean = math.exp(sum(map(math.log, reached)) / len(reached))
        found = f"{mean:.2f} times the fastest other compiler; goal {goal}"
        yield f"geometric mean of {len(reached)} {what}", found, mean >= goal
