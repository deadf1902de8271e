"""Programs as other people write them: physics, statistics, finance and graphics, each one function over a namespace.

They are written from the mathematics and not tuned for any library. Arrays are float64 unless a field of use computes
in float32.
"""

from __future__ import annotations

from benchmarks.programs import atmosphere, finance, fluids, graphics, learning, ocean, particles, sequences, statistics
from benchmarks.workload import Workload

PROGRAMS: tuple[Workload, ...] = (
    *ocean.PROGRAMS,
    *atmosphere.PROGRAMS,
    *fluids.PROGRAMS,
    *particles.PROGRAMS,
    *statistics.PROGRAMS,
    *finance.PROGRAMS,
    *graphics.PROGRAMS,
    *learning.PROGRAMS,
    *sequences.PROGRAMS,
)

__all__ = ["PROGRAMS"]
