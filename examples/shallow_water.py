"""Finds the wave that started a tsunami: a gradient through 120 time steps of the shallow-water equations.

    python examples/shallow_water.py [--picture waves.png] [--device cuda]

A basin with walls is given by its surface at the end of a run. Gradient descent on the surface at the start
finds the bump that leads there. The model (linear shallow water on a staggered grid, forward-backward steps) and its
gradient are one compiled function.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad import optim

DEPTH, GRAVITY, SPACING = 100.0, 9.81, 1000.0  # m, m/s^2, m
STEP = 0.5 * SPACING / float(np.sqrt(2 * GRAVITY * DEPTH))  # s; half of what is stable


def simulate(height: Any, steps: int) -> Any:
    """The surface [m] after ``steps`` time steps from rest, of one [rows, columns] at the start; no flow through walls."""
    rows, columns = height.shape
    u = jg.zeros((rows, columns - 1), dtype=height.dtype, device=height.device)  # between neighbouring columns
    v = jg.zeros((rows - 1, columns), dtype=height.dtype, device=height.device)
    pull, spread = GRAVITY * STEP / SPACING, DEPTH * STEP / SPACING
    for _ in range(steps):
        u = u - pull * (height[:, 1:] - height[:, :-1])
        v = v - pull * (height[1:] - height[:-1])
        across, down = jg.pad(u, ((0, 0), (1, 1))), jg.pad(v, ((1, 1), (0, 0)))
        height = height - spread * (across[:, 1:] - across[:, :-1] + down[1:] - down[:-1])
    return height


def bump(size: int) -> np.ndarray[Any, Any]:
    """A Gaussian bump of 2 m, [size, size] float32."""
    y, x = np.mgrid[0:size, 0:size] / size
    return (2 * np.exp(-((x - 0.3) ** 2 + (y - 0.6) ** 2) / 0.006)).astype(np.float32)


def main(
    size: int = 96, steps: int = 120, descents: int = 60, picture: str = "", device: str = "cpu"
) -> list[float]:
    """Returns the mean squared error [m^2] of the final surface before each descent step."""
    truth = jg.tensor(bump(size)).to(device)
    observed = jg.jit(simulate, static_argnames="steps")(truth, steps=steps)
    guess = jg.zeros((size, size), device=device, requires_grad=True)
    optimizer = optim.Adam([guess], lr=0.08)

    @jg.jit
    def descend() -> Any:
        optimizer.zero_grad()
        error = ((simulate(guess, steps) - observed) ** 2).mean()
        error.backward()
        optimizer.step()
        return error

    errors: list[float] = []
    start = time.perf_counter()
    for k in range(descents):
        errors.append(descend().item())
        if k == 0:
            print(f"first step, with tracing and compiling: {time.perf_counter() - start:.1f} s")
            start = time.perf_counter()
        if k % 10 == 0:
            print(f"descent {k:3d}: error {errors[-1]:.2e} m^2")
    print(f"later steps: {(time.perf_counter() - start) / max(1, descents - 1) * 1e3:.1f} ms each")
    found, true = guess.detach().cpu().numpy(), bump(size)
    places = [tuple(map(int, np.unravel_index(surface.argmax(), surface.shape))) for surface in (found, true)]
    print(f"highest point found at {places[0]}, was at {places[1]}")
    if picture:
        save(picture, {"start": true, "end": observed.cpu().numpy(), "found": found})
    return errors


def save(path: str, surfaces: dict[str, np.ndarray[Any, Any]]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(surfaces), figsize=(9, 3))
    for axis, (name, surface) in zip(axes, surfaces.items(), strict=True):
        axis.imshow(surface, cmap="RdBu", vmin=-1, vmax=1)
        axis.set_title(name)
        axis.axis("off")
    figure.savefig(path, bbox_inches="tight")
    print(f"saved {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="", help="where to save a picture; needs matplotlib")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    main(picture=options.picture, device=options.device)
