"""Measures three steps, eager and fused, on this machine and draws docs/speed.svg: ``make picture``."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad import nn, optim

PICTURE = Path(__file__).with_name("speed.svg")
WIDTH, LEFT, BAR, GAP = 760, 20, 20, 74
COLOURS = {"eager": "#9aa5b1", "fused": "#0b7285"}


def chain() -> tuple[Any, tuple[Any, ...]]:
    """A tanh-gelu of a product, squared and summed, with both gradients: two inputs of 4 million float32."""
    generator = np.random.default_rng(0)
    x, w = (jg.tensor(generator.standard_normal(4_000_000, np.float32)) for _ in range(2))

    def loss(x: Any, w: Any) -> Any:
        h = x * w
        y = 0.5 * h * (1 + jg.tanh(0.7978845608 * (h + 0.044715 * h**3)))
        return (y * y).sum()

    return jg.jit(jg.value_and_grad(loss, argnums=(0, 1))), (x, w)


def cross_entropy() -> tuple[Any, tuple[Any, ...]]:
    """Softmax cross-entropy and its gradient, 8192 rows of 1000 float32 scores."""
    generator = np.random.default_rng(0)
    scores = jg.tensor(generator.standard_normal((8192, 1000), np.float32))
    labels = jg.tensor(generator.integers(0, 1000, 8192))
    return jg.jit(jg.value_and_grad(jg.cross_entropy)), (scores, labels)


def digits_step() -> tuple[Any, tuple[Any, ...]]:
    """A whole training step with Adam: a 64-256-128-10 network, batch 64, float32."""
    generator = np.random.default_rng(0)
    jg.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    # The same batch over and over would be learnt by heart: gradients would shrink to denormals, which are slow.
    optimizer = optim.Adam(model.parameters(), lr=1e-7)

    @jg.jit
    def step(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = jg.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, (jg.tensor(generator.random((64, 64), np.float32)), jg.tensor(generator.integers(0, 10, 64)))


WORKLOADS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "elementwise chain, 4M float32: value and two gradients": chain,
    "softmax cross-entropy, 8192 x 1000 float32: value and gradient": cross_entropy,
    "training step of an MLP on digits, batch 64: forward, backward, Adam": digits_step,
}


def milliseconds(run: Callable[[], Any], seconds: float) -> float:
    """The fastest of as many calls as fit into ``seconds``: what other programs on the machine disturb least."""
    run()
    gc.collect()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < until:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def measure(seconds: float = 2.0) -> dict[str, dict[str, float]]:
    """Milliseconds per call by workload, then "eager" and "fused"."""
    found = {}
    for name, make in WORKLOADS.items():
        step, args = make()
        found[name] = {"eager": milliseconds(lambda s=step, a=args: s.eager(*a), seconds)}
        found[name]["fused"] = milliseconds(lambda s=step, a=args: s(*a), seconds)
        print(f"{name}: eager {found[name]['eager']:.3g} ms, fused {found[name]['fused']:.3g} ms")
    return found


def draw(found: dict[str, dict[str, float]], threads: int) -> str:
    """Two bars for each workload, the slower one across the picture."""
    parts = []
    for k, (name, times) in enumerate(found.items()):
        top = 44 + k * GAP
        parts.append(f'<text x="{LEFT}" y="{top}" font-weight="bold">{name}</text>')
        longest = max(times.values())
        for row, (how, value) in enumerate(times.items()):
            y = top + 8 + row * (BAR + 2)
            length = max(2.0, (WIDTH - 2 * LEFT - 190) * value / longest)
            label = f"{how} {value:.3g} ms"
            if how == "fused":
                label += f", {times['eager'] / value:.1f} times faster"
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[how]}"/>')
            parts.append(f'<text x="{LEFT + length + 8:.1f}" y="{y + 15}">{label}</text>')
    height = 44 + len(found) * GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            'font-family="sans-serif" font-size="13" fill="#212529">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            f'<text x="{LEFT}" y="20" fill="#5c6770">fastest call on {threads} threads; shorter is better</text>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(measure(), jg.get_num_threads()), encoding="utf-8")
