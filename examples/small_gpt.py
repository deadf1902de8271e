"""A small GPT on the documentation strings of Python's standard library, character by character.

    python examples/small_gpt.py [--device cuda]

Four causal transformer layers, AdamW and clipping in one compiled step; the same function eagerly, for comparison.
"""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad import nn, optim


def documentation(modules: str = "argparse collections datetime functools itertools json logging random re string") -> str:
    """The documentation strings of ``modules`` of the standard library and of what they define."""
    texts = []
    for name in modules.split():
        module = import_module(name)
        for part in (module, *vars(module).values()):
            own = part is module or getattr(part, "__module__", "") == name
            members = vars(part).values() if own and inspect.isclass(part) else ()
            texts += [inspect.getdoc(x) or "" for x in (part, *members) if own and (x is part or callable(x))]
    text = "\n\n".join(dict.fromkeys(texts))
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")


class GPT(nn.Module):
    """Scores for the next character of each place, from the characters before."""

    def __init__(self, characters: int, context: int, width: int, layers: int) -> None:
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Embedding(context, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, characters)
        self.context = context

    def forward(self, codes: Any) -> Any:
        """[batch, time] integers -> [batch, time, characters]."""
        time = codes.shape[1]
        x = self.characters(codes) + self.places(jg.arange(time, device=codes.device))
        hidden = jg.triu(jg.ones((time, time), dtype=jg.bool, device=codes.device), 1)
        for layer in self.layers:
            x = layer(x, src_mask=hidden, is_causal=True)
        return self.scores(self.norm(x))

    def write(self, alphabet: str, start: str, length: int) -> str:
        """``start`` continued by ``length`` characters, drawn at temperature 0.8."""
        codes = [alphabet.index(c) for c in start]
        generator = np.random.default_rng(0)
        with jg.no_grad():
            for _ in range(length):
                scores = self(jg.tensor([codes[-self.context :]]))[0, -1]
                p = jg.softmax(scores / 0.8).numpy().astype(np.float64)
                codes.append(int(generator.choice(len(p), p=p / p.sum())))
        return "".join(alphabet[k] for k in codes)


def training_step(model: GPT) -> Callable[[Any], Any]:
    """A function that takes windows [batch, context + 1] of codes, updates ``model`` and returns the loss."""
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)

    def step(windows: Any) -> Any:
        optimizer.zero_grad()
        scores = model(windows[:, :-1])
        loss = jg.cross_entropy(scores.reshape(-1, scores.shape[-1]), windows[:, 1:].reshape(-1))
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def main(
    steps: int = 300, context: int = 64, batch: int = 16, width: int = 96, layers: int = 3, device: str = "cpu"
) -> list[float]:
    """Train, and print a text; returns the loss of every step."""
    text = documentation()
    alphabet = "".join(sorted(set(text)))
    codes = np.array([alphabet.index(c) for c in text], np.int64)
    print(f"{len(text):,} characters, {len(alphabet)} different ones")
    jg.manual_seed(0)
    generator = np.random.default_rng(0)
    model = GPT(len(alphabet), context, width, layers).to(device)
    step = training_step(model)
    fused = jg.jit(step)
    losses: list[float] = []
    times: dict[str, list[float]] = {"fused": [], "eager": []}
    for k in range(steps):
        starts = generator.integers(0, len(codes) - context, batch)
        windows = jg.tensor(codes[starts[:, None] + np.arange(context + 1)]).to(device)
        kind = "eager" if 0 < k <= 5 else "fused"
        start = time.perf_counter()
        losses.append((step if kind == "eager" else fused)(windows).item())
        times[kind].append(time.perf_counter() - start)
        if k == 0:
            print(f"first step, with tracing and compiling: {times['fused'].pop():.1f} s")
        if k % 50 == 0 or k == steps - 1:
            print(f"step {k:4d}   loss {losses[-1]:.3f}")
    for kind, taken in times.items():
        if taken:
            print(f"{kind} steps: {np.median(taken) * 1e3:.1f} ms each")
    print(model.to("cpu").write(alphabet, "Return the ", 200))
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    main(device=parser.parse_args().device)
