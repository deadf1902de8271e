"""Proves CUDA kernels without a GPU: assembles every kernel that a set of programs has, and runs random ones.

    python tools/cuda_kernels.py [--programs 300] [--quick] [--every N]
    python tools/cuda_kernels.py --tests tests [-j 2] [--known]

Programs are every op of the registry in every dtype, the workloads of the benchmarks, the examples, and random ones with
their gradients. Their kernels are assembled for three architectures with ptxas, which says what spills, and their text is
checked for vector accesses and for contracted arithmetic. The examples and the random programs run in the emulator
besides, and the latter are compared with the cpu target. The last lines are a table. With ``--tests``, the programs are
those that the tests in these paths compile for any target, without the tests that compare with PyTorch and JAX. What is
known of a text is kept in ``--cache``: a run that was stopped goes on, and one after a change does what changed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jitgrad as jg
import jitgrad.scipy
from benchmarks import peers as libraries
from benchmarks.workloads import ALL
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.targets import TARGETS
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import JitgradError
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.testing import sample_operands
from jitgrad.testing.programs import random_program
from jitgrad.testing.samples import DOMAINS
from tools.assembled_kernels import Results, assembled, compiled
from tools.collected_kernels import Collected, Collector
from tools.suite_kernels import suite_kernels

ARCHITECTURES = {"sm_80": Capability(8, 0), "sm_90": Capability(9, 0), "sm_100": Capability(9, 0)}
BOUND = {"f4": 4e-6, "f8": 2e-13}
MAX_REGISTERS = 128  # two blocks of 256 threads on each processor
JIT = jg.jit


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


def example_programs() -> Iterator[tuple[str, Callable[[], None]]]:
    """The programs of examples/, at their sizes, for a step or a few."""

    def call(module: str, name: str = "main", **sizes: Any) -> Any:
        return getattr(importlib.import_module(f"examples.{module}"), name)(**sizes)

    def ejected() -> None:
        call("eject_step", "make_step", width=16)(jg.rand(256, 2), jg.rand(256, 1))

    yield "example black_box_loss", lambda: call("black_box_loss", steps=2)
    yield "example digits", lambda: call("digits", epochs=1, batch=1024)
    yield "example gru_text", lambda: call("gru_text", steps=1)
    yield "example eject_step", ejected


def emulated_jit(function: Any, **options: Any) -> Any:
    """``jit`` for the examples, which name no target."""
    return JIT(function, **{**options, "backend": "emulated", "check": "off"})


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
            with contextlib.redirect_stdout(io.StringIO()):  # examples print
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


def report(kernels: list[Collected], jobs: int, results: Results) -> int:
    """Compile and assemble all kernels, and print what they need; gives how many have faults."""
    faults = 0
    for architecture, capability in ARCHITECTURES.items():
        codes = compiled(kernels, capability, jobs, results)
        usage, different = assembled(codes, architecture, jobs, results)
        for kernel, code, used in zip(kernels, codes, usage, strict=True):
            found = [*code.faults, *([str(used)] if used.spilled or used.local else [])]
            faults += len(found)
            if used.registers > MAX_REGISTERS:
                found.append(str(used))
            for text in dict.fromkeys(found):
                print(f"  {architecture} {kernel.origin} {kernel.entry}: {text}")
        wide = sum(".v4" in code.ptx or ".v2" in code.ptx for code in codes)
        most, alone = max(used.registers for used in usage), sum(used.blocks == 1 for used in usage)
        spills, local = sum(used.spilled > 0 for used in usage), sum(used.local > 0 for used in usage)
        print(
            f"{architecture}: {len(usage)} kernels, {different} different but for numbers, {wide} with vectors, {spills} spill, "
            f"{local} use local memory, at most {most} registers, {alone} that registers leave one block",
            flush=True,
        )
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300, help="random programs")
    parser.add_argument("--every", type=int, default=1, help="assemble every so manieth kernel only")
    parser.add_argument("--quick", action="store_true", help="the workloads at their small sizes")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="the kernels of these tests, and no others")
    parser.add_argument("--jobs", "-j", type=int, default=2, help="processes")
    parser.add_argument("--cache", default=".cuda_kernels", help="folder of what is known from earlier runs")
    parser.add_argument("--known", action="store_true", help="with --tests: only what earlier runs have collected")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Results(Path(options.cache))
    if options.tests:
        kernels, counts, failures = kernels_of_tests(options, results)
    else:
        target = Collector()
        counts, failures = programs(options, target)
        kernels = target.kernels
    for failure in failures:
        print("FAILED", failure)
    faults = report(kernels[:: options.every], options.jobs, results)
    print(", ".join(f"{count} {name}s" for name, count in counts.items()), f"and {len(failures) + faults} failures")
    return int(bool(failures or faults))


def kernels_of_tests(options: argparse.Namespace, results: Results) -> tuple[list[Collected], dict[str, int], list[str]]:
    """The kernels of tests, the counts of files and programs, and what the CUDA target refused."""
    found = suite_kernels(options.tests, ARCHITECTURES.values(), options.jobs, results, run=not options.known)
    if found.unfinished:
        print(f"{found.unfinished} of {found.files} test files have not run yet")
    counts = {"test file": found.files - found.unfinished, "program": found.programs}
    return found.kernels, counts, [f"{count} graphs of the tests: {why}" for why, count in found.refused.items()]


def programs(options: argparse.Namespace, target: Collector) -> tuple[dict[str, int], list[str]]:
    """Compile or run all groups of programs; gives how many each has, and what failed."""
    TARGETS["emulated"] = target
    failures: list[str] = []
    groups = {
        "op and dtype": op_programs(),
        "workload": workload_programs(options.quick),
        "example": example_programs(),
        "random program": random_programs(options.programs),
    }
    jg.jit = emulated_jit  # before the examples are imported
    counts = {}
    for name, group in groups.items():
        counts[name], failed = collect(group, target)
        failures += failed
    return counts, failures


if __name__ == "__main__":
    sys.exit(main())
