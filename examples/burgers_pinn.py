"""A network that solves Burgers' equation: first and second derivatives of its output are part of the loss.

    python examples/burgers_pinn.py [--picture burgers.png] [--device cuda]

u_t + u u_x = (0.01 / pi) u_xx on -1 < x < 1 with u(0, x) = -sin(pi x), after M. Raissi, P. Perdikaris and
G. E. Karniadakis, "Physics-informed neural networks", Journal of Computational Physics 378, 2019. Derivatives by x and t
are gradients of the network; the gradient by the weights goes through them, so a step has third-order terms.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad import nn, optim

VISCOSITY = 0.01 / np.pi


def network(width: int, layers: int) -> nn.Module:
    """u of [n, 2] points (t, x); [n, 1]."""
    hidden = [part for _ in range(layers - 1) for part in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), *hidden, nn.Linear(width, 1))


def residual(model: nn.Module, t: Any, x: Any) -> Any:
    """u_t + u u_x - viscosity u_xx at points with coordinates ``t`` and ``x`` [n, 1]."""

    def u(t: Any, x: Any) -> Any:
        return model(jg.concat([t, x], axis=1))

    def u_x(x: Any) -> Any:
        return jg.grad(lambda x: u(t, x).sum())(x)

    u_t = jg.grad(lambda t: u(t, x).sum())(t)
    u_xx = jg.grad(lambda x: u_x(x).sum())(x)
    return u_t + u(t, x) * u_x(x) - VISCOSITY * u_xx


def main(
    steps: int = 1500, points: int = 2000, width: int = 24, layers: int = 4, picture: str = "", device: str = "cpu"
) -> list[float]:
    """Returns the loss of every step."""
    jg.manual_seed(0)
    generator = np.random.default_rng(0)
    model = network(width, layers).to(device)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    edges = np.linspace(-1, 1, 200, dtype=np.float32)[:, None]
    start_x = jg.tensor(edges).to(device)
    start_u = jg.tensor(-np.sin(np.pi * edges)).to(device)
    wall = jg.tensor(np.repeat([[-1.0], [1.0]], 50, axis=0).astype(np.float32)).to(device)
    wall_t = jg.tensor(np.tile(np.linspace(0, 1, 50, dtype=np.float32), 2)[:, None]).to(device)

    @jg.jit
    def step(t: Any, x: Any) -> Any:
        optimizer.zero_grad()
        inside = (residual(model, t, x) ** 2).mean()
        start = ((model(jg.concat([0 * start_x, start_x], axis=1)) - start_u) ** 2).mean()
        walls = (model(jg.concat([wall_t, wall], axis=1)) ** 2).mean()
        loss = inside + start + walls
        loss.backward()
        optimizer.step()
        return loss

    losses: list[float] = []
    begin = time.perf_counter()
    for k in range(steps):
        t, x = generator.random((2, points, 1), dtype=np.float32)
        losses.append(step(jg.tensor(t).to(device), jg.tensor(2 * x - 1).to(device)).item())
        if k == 0:
            print(f"first step, with tracing and compiling: {time.perf_counter() - begin:.1f} s")
            begin = time.perf_counter()
        if k % max(1, steps // 10) == 0:
            print(f"step {k:5d}   loss {losses[-1]:.4f}")
    print(f"later steps: {(time.perf_counter() - begin) / max(1, steps - 1) * 1e3:.2f} ms each")
    if picture:
        save(picture, model.to("cpu"))
    return losses


def save(path: str, model: nn.Module) -> None:
    import matplotlib.pyplot as plt

    x = np.linspace(-1, 1, 400, dtype=np.float32)[:, None]
    figure, axes = plt.subplots(figsize=(5, 3))
    for t in (0.0, 0.25, 0.5, 0.75):
        with jg.no_grad():
            axes.plot(x, model(jg.tensor(np.hstack([np.full_like(x, t), x]))).numpy(), label=f"t = {t}")
    axes.set(xlabel="x", ylabel="u")
    axes.legend()
    figure.savefig(path, bbox_inches="tight")
    print(f"saved {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="", help="where to save a picture; needs matplotlib")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    main(picture=options.picture, device=options.device)
