"""The registry of targets: every name that `jit` and JITGRAD_BACKEND take."""

from __future__ import annotations

from jitgrad.backends.base import Target
from jitgrad.backends.cpu.backend import CpuTarget
from jitgrad.backends.numba import NumbaTarget
from jitgrad.backends.python import PythonTarget
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        CpuTarget(),
        NumbaTarget(),
        PythonTarget(),
    )
}


def find_target(name: str | None) -> Target:
    """The target called ``name``; for None the one that JITGRAD_BACKEND names now.

    Raises:
        ArgumentError: if there is none of that name.
    """
    given = config.read("JITGRAD_BACKEND") if name is None else name
    if given not in TARGETS:
        asked = f"JITGRAD_BACKEND={given!r}" if name is None else f"backend={given!r}"
        raise ArgumentError(f"{asked}: expected one of {', '.join(TARGETS)}")
    return TARGETS[given]
