"""Pairs of particles: Lennard-Jones energies and gravitation."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program, value_of
from benchmarks.workload import Arrays, Sizes


def _lennard_jones(xp: Any, p: Any) -> Any:
    """Half the sum over all pairs; a particle's pair with itself is kept at a distance by a constant."""
    r2 = 0.0
    for k in range(3):
        d = p[:, k : k + 1] - p[:, k]
        r2 = r2 + d * d
    s = 1.0 / (r2 + 0.5)
    s6 = s * s * s
    return 2.0 * xp.sum(s6 * s6 - s6)


def _n_body(xp: Any, x: Any, v: Any, m: Any) -> Any:
    """Leapfrog steps of bodies with softened gravitation."""
    for _ in range(4):
        d = x[:, None, :] - x[None, :, :]
        r2 = xp.sum(d * d, 2) + 0.01
        pull = m[None, :] / (r2 * xp.sqrt(r2))
        v = v - 0.01 * xp.sum(d * pull[:, :, None], 1)
        x = x + 0.01 * v
    return x, v


def _bodies(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    return rng.normal(size=(n, 3)), 0.1 * rng.normal(size=(n, 3)), rng.uniform(0.5, 1, n) / n


PROGRAMS = (
    program(
        "lennard_jones", "Lennard-Jones energy of 1,000 particles and its forces",
        lambda rng, sizes: (3 * rng.normal(size=(sizes["n"], 3)),), gradient_of(_lennard_jones),
        {"n": 1000}, {"n": 7}, "arithmetic: 30 operations a pair", tolerance=1e-9,
    ),
    program(
        "n_body", "gravitation of 500 bodies, 4 leapfrog steps", _bodies, value_of(_n_body), {"n": 500}, {"n": 5},
        "arithmetic: a root and a division for each pair and step", gradients=False, tolerance=1e-9,
    ),
)  # fmt: skip
