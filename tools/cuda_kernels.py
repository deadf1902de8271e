"""Proves CUDA kernels without a GPU: assembles every kernel that a set of programs has, and runs random ones.

    python tools/cuda_kernels.py [--programs 300] [--quick]

Programs are every op of the registry in every dtype, the workloads of the benchmarks, the golden programs of the tests,
and random ones with their gradients. Their kernels are assembled for three architectures with ptxas, which says what
spills; the random programs run in the emulator besides, and are compared with the cpu target. The last lines are a table.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jitgrad as jg
from benchmarks import peers as libraries
from benchmarks.workloads import ALL
from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.compile import CudaCode, compile_source
from jitgrad.backends.cuda.ptxas import assemble
from jitgrad.backends.emulated import EmulatedTarget
from jitgrad.backends.targets import TARGETS
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import JitgradError
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.testing import sample_operands
from jitgrad.testing.programs import random_program
from jitgrad.testing.samples import DOMAINS

ARCHITECTURES = {"sm_80": Capability(8, 0), "sm_90": Capability(9, 0), "sm_100": Capability(9, 0)}
BATCH = 64  # kernels that ptxas gets at once
BOUND = {"f4": 4e-6, "f8": 2e-13}


@dataclass(frozen=True, slots=True)
class Collected:
    """One function of a kernel that a program has."""

    origin: str
    source: Source
    entry: str
    functions: dict[str, Any]


class Collector(EmulatedTarget):
    """The emulated target; it keeps every kernel that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.origin = ""
        self.kernels: list[Collected] = []

    def load(self, kernel: Kernel, source: Source, entry: str) -> Any:
        self.kernels.append(Collected(self.origin, source, entry, user_functions(kernel)))
        return super().load(kernel, source, entry)


def compiled_only(function: Callable[..., Any], *args: Any) -> None:
    """Compile ``function`` for arguments like these, and run nothing."""
    _ = jg.jit(function, check="off", backend="emulated").lookup(*args).program


def op_programs() -> Iterator[tuple[str, Callable[[], None]]]:
    """Each op of the registry, in each dtype that it takes."""
    for op in REGISTRY.values():
        for dtype in "?bhilBHILefd" if op.domain and set(op.domain) <= set(DOMAINS) else ():
            yield f"op {op} {dtype}", lambda op=op, dtype=dtype: compile_op(op, dtype)


def compile_op(op: OpDef, dtype: str) -> None:
    shape = (6, 40) if op.kind in (Kind.ELEMENTWISE, Kind.REDUCE) else (3, 4)  # attributes of the others fit the second
    operands = sample_operands(op, np.random.default_rng(0), shape, np.dtype(dtype))
    compiled_only(lambda *xs: apply_op(op, *xs, **op.sample_attrs), *map(jg.tensor, operands))


def workload_programs(quick: bool) -> Iterator[tuple[str, Callable[[], None]]]:
    (peer,) = libraries.load_all(["jitgrad"], threads=1, say=lambda text: None)
    for name, workload in ALL.items():
        def build(workload: Any = workload) -> None:
            inputs = workload.inputs(np.random.default_rng(0), workload.quick if quick else workload.sizes)
            compiled_only(workload.function(peer), *libraries.tree_map(peer.array, inputs))

        yield f"workload {name}", build


def random_programs(count: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for seed in range(count):
        yield f"random program {seed}", lambda seed=seed: run_random(seed)


def run_random(seed: int) -> None:
    """Run a random program and its gradients in the emulator and on the CPU."""
    program = random_program(seed)

    def loss(*xs: Any) -> Any:
        return sum((y * y).sum() for y in program(*xs))

    def both(*xs: Any) -> Any:
        return *program(*xs), *jg.grad(loss, argnums=tuple(range(len(xs))))(*xs)

    kind = ("f4", "f8")[seed % 2]
    args = [jg.tensor(x) for x in program.operands(np.dtype(kind))]
    found, wanted = (jg.jit(both, check="off", backend=name)(*args) for name in ("emulated", "cpu"))
    for a, b in zip(found, wanted, strict=True):
        error = np.abs(a.numpy().astype(np.float64) - b.numpy()).max(initial=0)
        if not error <= BOUND[kind] * max(1e-3, np.abs(b.numpy()).max(initial=0)):
            raise AssertionError(f"differs by {error}")


def collect(programs: Iterator[tuple[str, Callable[[], None]]], target: Collector) -> tuple[int, list[str]]:
    """Compile or run the programs; gives how many, and what failed."""
    done, failed = 0, []
    for name, build in programs:
        target.origin = name
        try:
            build()
        except JitgradError as error:
            if name.startswith("op ") and "dtype" in type(error).__name__.lower():
                continue  # the op does not take this dtype
            failed.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        except AssertionError as error:
            failed.append(f"{name}: {error}")
        done += 1
    return done, failed


def distinct(kernels: list[Collected]) -> list[Collected]:
    return list({(k.source.identity, k.source.params, k.entry): k for k in kernels}.values())


def assembled(kernels: list[Collected]) -> None:
    """Compile and assemble all kernels, and print what they need."""
    seconds: dict[str, list[float]] = {}
    for architecture, capability in ARCHITECTURES.items():
        codes: list[CudaCode] = []
        for kernel in kernels:
            start = time.perf_counter()
            codes.append(compile_source(kernel.source, kernel.entry, capability, kernel.functions))
            seconds.setdefault(architecture, []).append(time.perf_counter() - start)
        usage = [u for k in range(0, len(codes), BATCH) for u in assemble(codes[k : k + BATCH], architecture)]
        for kernel, used in zip(kernels, usage, strict=True):
            if used.spilled or used.local:
                print(f"  {architecture} {kernel.origin} {kernel.entry}: {used.local} bytes local, {used.spilled} spilled")
        most = max(usage, key=lambda u: u.registers).registers
        times = 1e3 * np.array(seconds[architecture])
        print(
            f"{architecture}: {len(usage)} kernels, {sum(u.spilled > 0 for u in usage)} spill, {sum(u.local > 0 for u in usage)} "
            f"use local memory, at most {most} registers; compile {np.median(times):.0f} ms median, {times.max():.0f} ms longest"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300, help="random programs")
    parser.add_argument("--quick", action="store_true", help="the workloads at their small sizes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    target = Collector()
    TARGETS["emulated"] = target
    failures: list[str] = []
    groups = {
        "op and dtype": op_programs(),
        "workload": workload_programs(options.quick),
        "random program": random_programs(options.programs),
    }
    counts = {}
    for name, programs in groups.items():
        counts[name], failed = collect(programs, target)
        failures += failed
    for failure in failures:
        print("FAILED", failure)
    assembled(distinct(target.kernels))
    print(", ".join(f"{count} {name}s" for name, count in counts.items()), f"and {len(failures)} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
