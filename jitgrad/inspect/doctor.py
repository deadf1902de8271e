"""Examines this installation: versions, CPU, BLAS, threads, cache, one real kernel, and CUDA."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from jitgrad.backends.cuda.ptxas import find_ptxas
from jitgrad.backends.llvm import disk_cache
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError, CudaError
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor
from jitgrad.device.cublas import find_cublas
from jitgrad.device.cuda import cuda_device
from jitgrad.device.cufft import CUFFT_MISSING, load_cufft
from jitgrad.eager.blas import find_blas
from jitgrad.inspect.traffic import readable_bytes
from jitgrad.jit.decorator import JitFunction
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.reduce import sum as sum_of
from jitgrad.ops.trigonometric import tanh
from jitgrad.runtime.executor.thread_pool import get_num_threads

PACKAGES = ("jitgrad", "numpy", "llvmlite", "optree", "rich", "click", "jinja2", "pygments")
OPTIONAL = ("numba", "scikit-learn", "safetensors", "cupy", "numba-cuda")
NOTABLE = ("avx512f", "avx2", "avx", "fma", "sse4.2", "neon", "sve")  # features that decide the vector width of kernels


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination; ``ok`` False is a defect, None is information."""

    what: str
    found: str
    ok: bool | None = None


def examine() -> Iterator[Finding]:
    """All findings, in order, each examined when it is yielded."""
    yield Finding("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in PACKAGES:
        installed = _version(name)
        yield Finding(name, installed or "not installed", bool(installed))
    for name in OPTIONAL:
        yield Finding(name, _version(name) or "not installed (optional)")
    yield from _processor()
    yield from _libraries()
    yield from _variables()
    yield _cache()
    yield _kernel()
    yield from _cuda()


def _variables() -> Iterator[Finding]:
    """Environment variables that are set: their values, or that there is no such variable."""
    for name in sorted(name for name in os.environ if name.startswith("JITGRAD_")):
        if name not in config.VARIABLES:
            yield Finding(name, f"there is no such variable{meant(name, config.VARIABLES)}", False)
            continue
        try:
            config.read(name)
            yield Finding(name, os.environ[name])
        except ArgumentError as error:
            yield Finding(name, str(error), False)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> Iterator[Finding]:
    from jitgrad.backends.llvm import target

    present = {feature[1:] for feature in target.features().split(",") if feature.startswith("+")}
    notable = [feature for feature in NOTABLE if feature in present]
    yield Finding("CPU", f"{target.cpu()}, {os.cpu_count()} cores")
    yield Finding("CPU features", " ".join(notable) or "none that matter")
    bits = target.vector_bits()
    yield Finding("vector width", f"{bits} bits" if bits else "what LLVM prefers")


def _libraries() -> Iterator[Finding]:
    blas = find_blas()
    yield Finding("BLAS", f"{blas.library}, called without Python" if blas else "only through np.matmul")
    try:
        yield Finding("threads", str(get_num_threads()))
    except ArgumentError as error:
        yield Finding("threads", str(error), False)


def _cache() -> Finding:
    info = disk_cache.info()
    if info.problem:
        return Finding("kernel cache", info.problem, False)
    size = f"{readable_bytes(info.size)} of {readable_bytes(info.max_size)}"
    return Finding("kernel cache", f"{info.directory}: {info.entries} kernels, {size}", True)


def _kernel() -> Finding:
    """Compile, run and check a kernel on the current backend."""

    def probe(x: Tensor) -> Tensor:
        return sum_of(multiply(tanh(x), x))

    backend = config.read("JITGRAD_BACKEND")
    x = np.linspace(-2, 2, 5000, dtype=np.float32)
    start = time.perf_counter()
    try:
        result = float(JitFunction(probe, check="off")(Tensor(x)).item())
    except Exception as error:
        return Finding(f"a kernel ({backend})", f"{type(error).__name__}: {error}", False)
    seconds = time.perf_counter() - start
    expected = float(np.sum(np.tanh(x, dtype=np.float64) * x))
    right = abs(result - expected) <= 1e-5 * abs(expected)
    verdict = "compiled or loaded, run, right" if right else f"gives {result}, not {expected}"
    return Finding(f"a kernel ({backend})", f"{verdict} ({seconds:.2f} s)", right)


def _cuda() -> Iterator[Finding]:
    """What a CUDA device needs: the driver with a GPU, cuBLAS and cuFFT; ptxas only says more about kernels."""
    try:
        driver = cuda_device().driver
    except CudaError as error:
        yield Finding("GPU", f"none: {error}")
    else:
        capability, memory = ".".join(map(str, driver.capability)), driver.memory_info()
        free = f"{readable_bytes(memory.free)} of {readable_bytes(memory.total)} free"
        yield Finding("GPU", f"{driver.name}, compute capability {capability}, {free}", True)
        yield Finding("CUDA", f"{'.'.join(map(str, driver.version))} is the newest that the driver supports")
    try:
        yield Finding("cuBLAS", find_cublas()._name)
    except CudaError as error:
        yield Finding("cuBLAS", f"not installed (only for CUDA): {error}")
    transforms = load_cufft()
    yield Finding("cuFFT", f"not installed (only for CUDA): {CUFFT_MISSING}" if transforms is None else transforms._name)
    assembler = find_ptxas()
    yield Finding("ptxas", str(assembler) if assembler else "not installed (optional: says what registers CUDA kernels need)")
