"""What a memory budget costs: the table of docs/memory.md.

    python tools/memory_curve.py [--rounds N]

For a deep MLP and a small transformer: the temporaries of a step with budgets of ever smaller parts of what it takes
without one, the bytes and arithmetic that are computed again, and its time: the median of its ratios to that of the step
without a budget, which runs in turn with it, on one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.core.errors import MemoryBudgetError

PARTS = (1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2)


def training(model: nn.Module, loss_of: Callable[..., Any]) -> Callable[..., Any]:
    optimizer = optim.Adam(model.parameters(), lr=1e-4)

    def step(*data: Any) -> Any:
        loss = loss_of(*data)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def deep_mlp() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """32 layers of 128 units with GELU, 1024 rows."""
    jg.manual_seed(0)
    layers = [layer for _ in range(32) for layer in (nn.Linear(128, 128), nn.GELU())]
    model = nn.Sequential(*layers)
    return training(model, lambda x, y: ((model(x) - y) ** 2).mean()), (jg.randn(1024, 128), jg.randn(1024, 128))


def transformer() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """4 layers of width 64 with 4 heads and dropout, 16 sequences of 64 words."""
    jg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(100, 64), nn.TransformerEncoder(layer, 4), nn.Linear(64, 100))

    def loss_of(x: Any, y: Any) -> Any:
        return jg.cross_entropy(model(x).reshape(-1, 100), y.reshape(-1))

    return training(model, loss_of), (jg.randint(0, 100, (16, 64)), jg.randint(0, 100, (16, 64)))


def compiled(make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]], budget: float | None) -> tuple[Any, tuple[Any, ...]]:
    step, args = make()
    f = jg.jit(step, memory_budget=budget, check="off")
    for _ in range(3):
        f(*args)
    return f, args


def seconds(f: Any, args: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    f(*args)
    return time.perf_counter() - start


def rows(make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]], rounds: int) -> None:
    whole, args = compiled(make, None)
    print("| budget | temporaries | part | computed again | more work | time |\n|---|---|---|---|---|---|")
    for part in PARTS:
        try:
            f, own = compiled(make, part)
        except MemoryBudgetError as error:
            print(f"| {part} | {str(error).partition('at least ')[2].partition(' when')[0]} at least | | | | |")
            return
        ratio = median([seconds(f, own) / seconds(whole, args) for _ in range(rounds)])
        report = f.explain(*own).budget
        print(
            f"| {part} | {report.after / 1e6:.1f} MB | {report.after / report.before:.2f} | {report.steps} steps, "
            f"{report.extra_bytes / 1e6:.1f} MB | {report.extra:.0%} | {ratio:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    jg.set_num_threads(1)  # other work on the machine then disturbs less
    for make in (deep_mlp, transformer):
        print(make.__doc__)
        rows(make, rounds)


if __name__ == "__main__":
    main()
