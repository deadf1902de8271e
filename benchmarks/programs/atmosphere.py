"""Parts of atmosphere models: thermal radiation through the layers of many columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program
from benchmarks.workload import Arrays, Sizes


def _thermal_radiation(xp: Any, depth: Any, temperature: Any) -> Any:
    """What leaves the top: each layer emits between its two levels, and the layers above absorb, as in Beer's law.

    ``depth`` is the optical depth of each layer, ``temperature`` that of the levels between them, from the top down.
    """
    emission = xp.square(xp.square(temperature))
    above, upward = depth[0] * 0.0, depth[0] * 0.0
    passing = xp.exp(-above)
    for k in range(depth.shape[0]):
        above = above + depth[k]
        below = xp.exp(-above)
        upward = upward + 0.5 * (emission[k] + emission[k + 1]) * (passing - below)
        passing = below
    return xp.sum(upward + emission[-1] * passing)


def _columns(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    layers, columns = sizes["layers"], sizes["columns"]
    return 2.0 * rng.random((layers, columns)) / layers, 0.7 + 0.3 * rng.random((layers + 1, columns))


PROGRAMS = (
    program(
        "radiation", "thermal radiation through 40 layers of 5,000 columns: value and gradients", _columns,
        gradient_of(_thermal_radiation, (0, 1)), {"layers": 40, "columns": 5_000}, {"layers": 4, "columns": 30},
        "memory: each layer is read with the one below, and its gradients are written once", tolerance=1e-8,
    ),
)  # fmt: skip
