"""The registry of targets: every name that `jit` and JITGRAD_BACKEND take."""

from __future__ import annotations

from jitgrad.backends.base import Target
from jitgrad.backends.cpu.backend import CpuTarget
from jitgrad.backends.cuda_target.target import CUDA, CudaTarget
from jitgrad.backends.numba import NumbaTarget
from jitgrad.backends.python import PythonTarget
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError, DeviceError

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        CpuTarget(),
        NumbaTarget(),
        PythonTarget(),
        CUDA,
    )
}

# for functions of tensors on the host, which the calls copy
CUDA_FOR_HOST = CudaTarget(results_on_host=True)


def find_target(name: str | None, device: str = "cpu") -> Target:
    """The target called ``name``, for tensors on ``device``; for None the one of that device, which on
    the host is what JITGRAD_BACKEND names now.

    Raises:
        ArgumentError: if there is none of that name.
        DeviceError: if it cannot use tensors on that device.
    """
    if name is None and device != "cpu":
        return TARGETS[device]
    given = config.read("JITGRAD_BACKEND") if name is None else name
    if given not in TARGETS:
        asked = f"JITGRAD_BACKEND={given!r}" if name is None else f"backend={given!r}"
        raise ArgumentError(f"{asked}: expected one of {', '.join(TARGETS)}")
    if device not in ("cpu", given):
        raise DeviceError(f"backend={given!r} runs on the host, and the tensors are on {device}: move them with .cpu()")
    return CUDA_FOR_HOST if given == "cuda" and device == "cpu" else TARGETS[given]
