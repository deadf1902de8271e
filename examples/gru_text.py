"""A character GRU that learns to write Python: forty unrolled steps, backward and Adam in one function.

    python examples/gru_text.py [--device cuda]

The text is the source of a module of the standard library. One call of ``step`` is a whole training
step on a batch of windows of the text. All time steps have the same shapes, so they share their kernels: twice as
many steps take longer to trace, but compile almost no new kernels.
"""

from __future__ import annotations

import argparse
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad import nn, optim


@dataclass(frozen=True, slots=True)
class Text:
    """A text as indices into its alphabet."""

    alphabet: str
    codes: np.ndarray[Any, Any]

    def windows(self, length: int, batch: int, generator: np.random.Generator) -> Any:
        """[length + 1, batch] int64: random stretches of the text, time along the first axis."""
        starts = generator.integers(0, len(self.codes) - length, batch)
        return jg.tensor(self.codes[starts[None, :] + np.arange(length + 1)[:, None]])


def read_text(path: str) -> Text:
    text = Path(path).read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(text)))
    return Text(alphabet, np.array([alphabet.index(c) for c in text], np.int64))


class Writer(nn.Module):
    """Scores for the next character, from the characters so far."""

    def __init__(self, characters: int, hidden: int) -> None:
        self.embedding = nn.Embedding(characters, 32)
        self.cell = nn.GRUCell(32, hidden)
        self.scores = nn.Linear(hidden, characters)

    def forward(self, codes: Any) -> Any:
        """[time, batch] integers -> [time, batch, characters] scores; the state starts at zero."""
        inputs = self.embedding(codes)
        state, states = None, []
        for x in jg.unstack(inputs):
            state = self.cell(x, state)
            states.append(state)
        return self.scores(jg.stack(states))

    def write(self, text: Text, start: str, length: int, generator: np.random.Generator) -> str:
        """``start`` continued by ``length`` characters drawn from the model's probabilities."""
        codes = [text.alphabet.index(c) for c in start]
        state = None
        with jg.no_grad():
            for k in range(len(start) + length - 1):
                state = self.cell(self.embedding(jg.tensor([codes[k]])), state)
                if k + 1 == len(codes):
                    p = jg.softmax(self.scores(state)[0]).numpy().astype(np.float64)
                    codes.append(int(generator.choice(len(p), p=p / p.sum())))
        return "".join(text.alphabet[c] for c in codes)


def main(
    steps: int = 400, unroll: int = 40, batch: int = 32, hidden: int = 128, every: int = 100, device: str = "cpu"
) -> list[float]:
    """Train, print a sample and the compile counters; returns the loss of every step."""
    text = read_text(textwrap.__file__)
    generator = np.random.default_rng(0)
    jg.manual_seed(0)
    model = Writer(len(text.alphabet), hidden).to(device)
    optimizer = optim.Adam(model.parameters(), lr=4e-3)

    @jg.jit
    def step(windows: Any) -> Any:
        optimizer.zero_grad()
        scores = model(windows[:-1])
        loss = jg.cross_entropy(scores.reshape((-1, scores.shape[-1])), windows[1:].reshape(-1))
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    losses: list[float] = []
    start = time.perf_counter()
    for k in range(steps):
        losses.append(step(text.windows(unroll, batch, generator).to(device)).item())
        if k == 0:
            first, start = time.perf_counter() - start, time.perf_counter()
            print(f"first step, with tracing, compiling and an eager check: {first:.1f} s; {step.cache_info()}")
        if k % every == 0 or k == steps - 1:
            print(f"step {k:4d}   loss {losses[-1]:.3f}")
    print(f"later steps: {(time.perf_counter() - start) / max(steps - 1, 1) * 1e3:.1f} ms each")
    model.to("cpu")  # single characters are faster there
    print(model.write(text, "def ", 300, generator))
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    main(device=parser.parse_args().device)
