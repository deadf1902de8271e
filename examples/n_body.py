"""A thousand bodies under their own gravity: leapfrog steps whose forces are the gradient of an energy.

    python examples/n_body.py [--picture bodies.png] [--device cuda]

Only the potential energy is written down; `jg.grad` makes the forces. All pairs of bodies are computed in one
pass that writes no matrix of pairs. Energy is conserved to a few 1e-4, which shows that forces and energy agree.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import jitgrad as jg

SOFTENING = 0.05  # in units of the radius of the cloud; keeps close pairs from flying apart


def potential(places: Any, masses: Any) -> Any:
    """The potential energy of bodies at ``places`` [n, 3] with ``masses`` [n], in units with G = 1."""
    squares = SOFTENING**2
    for k in range(3):
        squares = squares + (places[:, k, None] - places[None, :, k]) ** 2
    pairs = masses[:, None] * masses[None, :] / jg.sqrt(squares)
    return 0.5 * ((masses * masses).sum() / SOFTENING - pairs.sum())  # without the bodies' energies in their own fields


def energy(places: Any, speeds: Any, masses: Any) -> Any:
    return potential(places, masses) + 0.5 * (masses * (speeds * speeds).sum(axis=1)).sum()


def advance(places: Any, speeds: Any, masses: Any, step: float, count: int) -> tuple[Any, Any]:
    """``count`` leapfrog steps of ``step`` time units."""
    for _ in range(count):
        places = places + 0.5 * step * speeds
        speeds = speeds - step * jg.grad(potential)(places, masses) / masses[:, None]
        places = places + 0.5 * step * speeds
    return places, speeds


def cloud(bodies: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Places and speeds [bodies, 3] of a turning, slightly flat cloud, and masses [bodies]."""
    generator = np.random.default_rng(0)
    places = generator.normal(size=(bodies, 3)) * [0.6, 0.6, 0.2]
    speeds = 0.7 * np.stack([-places[:, 1], places[:, 0], 0 * places[:, 0]], axis=1)
    return places, speeds, np.full(bodies, 1 / bodies)


def main(bodies: int = 1000, rounds: int = 40, picture: str = "", device: str = "cpu") -> float:
    """Returns the largest relative change of the energy."""
    places, speeds, masses = (jg.tensor(x).to(device) for x in cloud(bodies))
    steps = jg.jit(advance, static_argnames=("step", "count"))
    total = jg.jit(energy)
    first, worst, tracks = total(places, speeds, masses).item(), 0.0, [places.cpu().numpy()]
    start = time.perf_counter()
    for k in range(rounds):
        places, speeds = steps(places, speeds, masses, step=0.01, count=5)
        tracks.append(places.cpu().numpy())
        worst = max(worst, abs(total(places, speeds, masses).item() / first - 1))
        if k == 0:
            print(f"first five steps, with tracing and compiling: {time.perf_counter() - start:.1f} s")
            start = time.perf_counter()
        if k % 10 == 0:
            print(f"time {0.05 * (k + 1):.2f}: energy changed by {worst:.1e} at most")
    print(f"later steps: {(time.perf_counter() - start) / max(1, rounds - 1) / 5 * 1e3:.2f} ms for {bodies**2:,} pairs")
    if picture:
        save(picture, np.stack(tracks))
    return worst


def save(path: str, tracks: np.ndarray[Any, Any]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 5))
    axes.plot(tracks[:, :, 0], tracks[:, :, 1], linewidth=0.2, color="tab:blue")
    axes.plot(tracks[-1, :, 0], tracks[-1, :, 1], ".", markersize=2, color="black")
    axes.set_aspect("equal")
    figure.savefig(path, bbox_inches="tight", dpi=150)
    print(f"saved {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="", help="where to save a picture; needs matplotlib")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    main(picture=options.picture, device=options.device)
