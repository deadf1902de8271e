"""Pictures: the Mandelbrot set, a ray marcher, and differentiable rendering of Gaussians; float32 but for the first."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program, value_of
from benchmarks.workload import Arrays, Sizes


def _mandelbrot(xp: Any, cx: Any, cy: Any) -> Any:
    """Smooth colours: the number of iterations until escape, and a fraction from the last radius."""
    x, y, count, last = 0.0 * cx, 0.0 * cy, 0.0 * cx, 4.0 + 0.0 * cx
    for _ in range(30):
        inside = x * x + y * y < 256.0
        x, y = xp.where(inside, x * x - y * y + cx, x), xp.where(inside, 2 * x * y + cy, y)
        count = count + xp.where(inside, 1.0, 0.0)
    last = x * x + y * y + 1e-9
    return xp.where(last > 256.0, count + 1.0 - xp.log(0.5 * xp.log(xp.where(last > 256.0, last, 256.0))) / 0.6931, 0.0)


def _plane(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    x, y = np.meshgrid(np.linspace(-2, 0.7, n), np.linspace(-1.2, 1.2, n))
    return x.copy(), y.copy()


def _ray_marcher(xp: Any, x: Any, y: Any) -> Any:
    """A sphere above a plane with waves: 24 steps along each ray, and the light on what it meets."""

    def distance(px: Any, py: Any, pz: Any) -> Any:
        sphere = xp.sqrt(px * px + py * py + (pz - 3) * (pz - 3)) - 1
        floor = py + 1 + 0.1 * xp.sin(3 * px) * xp.sin(3 * pz)
        return xp.minimum(sphere, floor)

    norm = 1 / xp.sqrt(x * x + y * y + 1)
    dx, dy, dz, t = x * norm, y * norm, norm, 0.0 * x
    for _ in range(24):
        t = t + xp.minimum(distance(t * dx, t * dy, t * dz), 1.0 + 0.0 * t)
    px, py, pz, h = t * dx, t * dy, t * dz, 1e-2
    nx, ny, nz = (
        distance(px + h * i, py + h * j, pz + h * k) - distance(px - h * i, py - h * j, pz - h * k)
        for i, j, k in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    )
    light = (0.5 * nx + 0.8 * ny - 0.3 * nz) / xp.sqrt(nx * nx + ny * ny + nz * nz + 1e-9)
    return xp.where(t < 20, xp.where(light > 0.1, light, 0.1), 0.0)


def _view(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    x, y = np.meshgrid(np.linspace(-1, 1, n, dtype=np.float32), np.linspace(-0.7, 0.9, n, dtype=np.float32))
    return x.copy(), y.copy()


def _splats(xp: Any, centres: Any, spreads: Any, colours: Any, grid: Any, picture: Any) -> Any:
    """The error of a picture drawn with round Gaussians, by their places, sizes and colours."""
    dx = grid[:, None] - centres[:, 0][None, :]
    dy = grid[:, None] - centres[:, 1][None, :]
    narrow = xp.exp(-spreads)[None, :]
    across, down = xp.exp(-dx * dx * narrow), xp.exp(-dy * dy * narrow)
    error = xp.matmul(down * colours[None, :], xp.permute_dims(across, (1, 0))) - picture
    return xp.mean(error * error)


def _gaussians(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    k, n = sizes["splats"], sizes["n"]
    arrays = rng.uniform(-1, 1, (k, 2)), rng.normal(-3, 0.5, k), rng.normal(size=k), np.linspace(-1, 1, n)
    return tuple(a.astype(np.float32) for a in (*arrays, rng.random((n, n))))


PROGRAMS = (
    program(
        "mandelbrot", "Mandelbrot set with smooth colours, 30 iterations of 1,000 x 1,000", _plane, value_of(_mandelbrot),
        {"n": 1000}, {"n": 8}, "arithmetic: 12 operations an iteration", gradients=False, tolerance=1e-6,
    ),
    program(
        "ray_marcher", "24 steps of 512 x 512 rays", _view, value_of(_ray_marcher), {"n": 512}, {"n": 8},
        "arithmetic: two sines and a root a step", gradients=False, tolerance=0.2,
    ),
    program(
        "splats", "a picture of 256 x 256 from 400 Gaussians: value and 3 gradients", _gaussians,
        gradient_of(_splats, (0, 1, 2)), {"splats": 400, "n": 256}, {"splats": 5, "n": 8},
        "exp of two matrices, and three products",
    ),
)  # fmt: skip
