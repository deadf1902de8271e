"""Memory and page faults of this process, the machine, and the allocations of jitgrad's pools."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

_CLEAR_PEAK = "5"  # proc(5): writing 5 to clear_refs resets the peak of the resident set


def faults() -> int:
    """Minor page faults of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def resident() -> int:
    """Bytes of memory in use now; 0 on systems without /proc."""
    try:
        return _status("VmRSS")
    except OSError:
        return 0


def forget_peak() -> None:
    """Reset the measured peak, on systems that can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_CLEAR_PEAK, encoding="ascii")


def peak() -> int:
    """The most bytes in use since ``forget_peak`` (or since the start, on systems that cannot reset it)."""
    try:
        return _status("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def allocations() -> int:
    """The allocations of jitgrad's pools so far; 0 if jitgrad was never loaded."""
    if "jitgrad.runtime.program" not in sys.modules:
        return 0
    from jitgrad.eager import buffer_pool
    from jitgrad.runtime import program

    pools = {id(p): p for p in (buffer_pool.POOL, getattr(program, "POOL", buffer_pool.POOL))}
    return sum(p.stats().allocations for p in pools.values())


def _cpu_model() -> tuple[str, str]:
    """The CPU's name and the widest vector instructions it has."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine(), ""
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    values = {key.strip(): value.strip() for key, value in fields.items()}
    flags = values.get("flags", "").split()
    vectors = next((name for name in ("avx512f", "avx2", "avx", "asimd") if name in flags), "")
    return values.get("model name", platform.machine()), vectors


def title(facts: Mapping[str, str]) -> str:
    """The machine of `machine` in the titles of sections."""
    return f"{facts['cpu']} ({facts['vectors']})"


def machine(threads: int) -> dict[str, str]:
    """The machine and the versions, as printed above every table."""
    model, vectors = _cpu_model()
    cores = os.cpu_count() or 1
    facts = {"cpu": model, "cores": str(cores), "vectors": vectors, "threads": str(threads)}
    facts["python"] = platform.python_version()
    for name in ("numpy", "numba", "torch", "jax"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if hasattr(os, "getloadavg"):
        facts["load"] = f"{os.getloadavg()[0]:.1f}"
    return facts
