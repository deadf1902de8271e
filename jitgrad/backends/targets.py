"""The registry of targets: every name that `jit` and JITGRAD_BACKEND take."""

from __future__ import annotations

from jitgrad.backends.base import Backend
from jitgrad.backends.cpu.backend import CpuBackend
from jitgrad.backends.numba import NumbaBackend
from jitgrad.backends.python import PythonBackend
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError

TARGETS: dict[str, Backend] = {target.name: target for target in (CpuBackend(), NumbaBackend(), PythonBackend())}


def find_target(name: str | None) -> Backend:
    """The target called ``name``; for None the one that JITGRAD_BACKEND names now.

    Raises:
        ArgumentError: if there is none of that name.
    """
    given = config.read("JITGRAD_BACKEND") if name is None else name
    if given not in TARGETS:
        asked = f"JITGRAD_BACKEND={given!r}" if name is None else f"backend={given!r}"
        raise ArgumentError(f"{asked}: expected one of {', '.join(TARGETS)}")
    return TARGETS[given]
