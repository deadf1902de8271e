"""All workloads by name, in the order of their runs."""

from __future__ import annotations

from benchmarks.programs import PROGRAMS
from benchmarks.workload import Workload
from benchmarks.workloads import chains, networks, normalisation, optimisers, steps

ALL: dict[str, Workload] = {
    w.name: w
    for group in (
        chains.GRADIENTS,
        normalisation.WORKLOADS,
        networks.WORKLOADS,
        steps.WORKLOADS,
        optimisers.WORKLOADS,
        chains.OVERHEAD,
        chains.SIZES,
        PROGRAMS,
    )
    for w in group
}

__all__ = ["ALL"]
