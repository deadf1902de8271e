"""The registry of targets: every name that `jit` and JITGRAD_BACKEND take."""

from __future__ import annotations

from jitgrad.backends.base import Target
from jitgrad.backends.cpu.backend import CpuTarget
from jitgrad.backends.numba import NumbaTarget
from jitgrad.backends.python import PythonTarget
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError, DeviceError

# that of CUDA is imported when it is used: a first call on the host takes a tenth less time without it
TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        CpuTarget(),
        NumbaTarget(),
        PythonTarget(),
    )
}
_CUDA = "cuda"


def _cuda_target(for_host: bool = False) -> Target:
    """The target of the device; ``for_host``: for functions of tensors on the host, which the calls copy."""
    from jitgrad.backends.cuda_target.target import CUDA, CUDA_FOR_HOST

    return CUDA_FOR_HOST if for_host else CUDA


def find_target(name: str | None, device: str = "cpu") -> Target:
    """The target called ``name``, for tensors on ``device``; for None the one of that device, which on
    the host is what JITGRAD_BACKEND names now.

    Raises:
        ArgumentError: if there is none of that name.
        DeviceError: if it cannot use tensors on that device.
    """
    if name is None and device != "cpu":
        return TARGETS[device] if device in TARGETS else _cuda_target()
    given = config.read("JITGRAD_BACKEND") if name is None else name
    if given not in (*TARGETS, _CUDA):
        asked = f"JITGRAD_BACKEND={given!r}" if name is None else f"backend={given!r}"
        raise ArgumentError(f"{asked}: expected one of {', '.join((*TARGETS, _CUDA))}")
    if device not in ("cpu", given):
        raise DeviceError(f"backend={given!r} runs on the host, and the tensors are on {device}: move them with .cpu()")
    return TARGETS[given] if given in TARGETS else _cuda_target(for_host=device == "cpu")
