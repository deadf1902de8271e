"""Compute capabilities, and the PTX that kernels for them are written in."""

from __future__ import annotations

from typing import NamedTuple

from jitgrad.core.errors import BackendError

LEAST = (8, 0)


class Capability(NamedTuple):
    """The compute capability of a GPU: ``Capability(9, 0)`` is Hopper."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"sm_{self.major}{self.minor}"


class PtxVersion(NamedTuple):
    """What LLVM compiles for: the instruction set of ``processor`` in a version of PTX.

    PTX runs on every later GPU as well, and a driver reads the versions up to its own. So this is
    an old version of PTX for the highest of three instruction sets that the GPU has.
    """

    processor: str
    features: str


_VERSIONS = {  # by least capability, and by the least version of LLVM that knows it
    (9, 0): (17, PtxVersion("sm_90", "+ptx78")),
    LEAST: (0, PtxVersion("sm_80", "+ptx70")),
}


def ptx_version(capability: Capability, llvm: int) -> PtxVersion:
    """The PTX for GPUs of ``capability`` that version ``llvm`` of LLVM can write.

    Raises:
        BackendError: if kernels are not compiled for GPUs as old as that.
    """
    for least, (version, found) in _VERSIONS.items():
        if tuple(capability) >= least and llvm >= version:
            return found
    name = f"compute capability {capability.major}.{capability.minor}"
    raise BackendError(f"{name}: kernels need {LEAST[0]}.{LEAST[1]} or higher (Ampere and later GPUs)")
