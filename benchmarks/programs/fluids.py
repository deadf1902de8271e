"""Partial differential equations on grids: shallow water, Burgers, reaction and diffusion, total variation."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program, value_of
from benchmarks.workload import Arrays, Sizes


def _shallow_water(xp: Any, h: Any, u: Any, v: Any) -> Any:
    """Ten steps on a periodic grid; the gradient of the energy at the end by the height at the start."""
    g, dt, dx, friction = 9.81, 1.0, 1e3, 1e-4

    def ddx(a: Any) -> Any:
        return (xp.roll(a, -1, 1) - xp.roll(a, 1, 1)) / (2 * dx)

    def ddy(a: Any) -> Any:
        return (xp.roll(a, -1, 0) - xp.roll(a, 1, 0)) / (2 * dx)

    for _ in range(10):
        u = u + dt * (-u * ddx(u) - v * ddy(u) + 1e-4 * v - g * ddx(h) - friction * u)
        v = v + dt * (-u * ddx(v) - v * ddy(v) - 1e-4 * u - g * ddy(h) - friction * v)
        h = h - dt * (ddx(h * u) + ddy(h * v))
    return xp.sum(h * h) * 1e-6 + xp.sum(h * (u * u + v * v))


def _basin(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    x = np.linspace(-1, 1, n)
    return 100 + np.exp(-20 * (x[:, None] ** 2 + x**2)), 0.1 * rng.normal(size=(n, n)), 0.1 * rng.normal(size=(n, n))


def _burgers(xp: Any, u: Any) -> Any:
    """Twenty upwind steps of Burgers' equation with viscosity."""
    for _ in range(20):
        left, right = xp.roll(u, 1, 0), xp.roll(u, -1, 0)
        slope = xp.where(u > 0, u - left, right - u)
        u = u - 0.2 * u * slope + 0.1 * (left - 2 * u + right)
    return u


def _gray_scott(xp: Any, u: Any, v: Any) -> Any:
    def laplacian(a: Any) -> Any:
        return xp.roll(a, 1, 0) + xp.roll(a, -1, 0) + xp.roll(a, 1, 1) + xp.roll(a, -1, 1) - 4 * a

    for _ in range(4):
        reaction = u * v * v
        u, v = u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u), v + 0.08 * laplacian(v) + reaction - 0.1 * v
    return u, v


def _total_variation(xp: Any, x: Any) -> Any:
    corner = x[:-1, :-1, :-1]
    dx, dy, dz = x[1:, :-1, :-1] - corner, x[:-1, 1:, :-1] - corner, x[:-1, :-1, 1:] - corner
    return xp.sum(xp.sqrt(dx * dx + dy * dy + dz * dz + 1e-6))


PROGRAMS = (
    program(
        "shallow_water", "shallow water, 10 steps of 256 x 256: value, d/dheight", _basin, gradient_of(_shallow_water),
        {"n": 256}, {"n": 8}, "memory and cache: three fields a step, forward and back", tolerance=1e-8,
    ),
    program(
        "burgers", "20 upwind steps of Burgers' equation, a million points",
        lambda rng, sizes: (np.sin(np.linspace(0, 20, sizes["n"])) + 0.1 * rng.normal(size=sizes["n"]),),
        value_of(_burgers), {"n": 1_000_000}, {"n": 20}, "memory: an array read and written a step",
        gradients=False, tolerance=1e-9,
    ),
    program(
        "gray_scott", "4 steps of reaction and diffusion, 1,024 x 1,024, float32",
        lambda rng, sizes: tuple(rng.random((sizes["n"], sizes["n"]), np.float32) for _ in range(2)),
        value_of(_gray_scott), {"n": 1024}, {"n": 9}, "memory: two fields read and written a step", gradients=False,
    ),
    program(
        "total_variation", "total variation of a volume of 128 x 128 x 128, float32: value and gradient",
        lambda rng, sizes: (rng.random((sizes["n"],) * 3, np.float32),), gradient_of(_total_variation),
        {"n": 128}, {"n": 6}, "memory: the volume read, three differences between, the gradient written",
    ),
)  # fmt: skip
