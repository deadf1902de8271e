"""An LSTM that learns to write documentation, from the documentation strings of Python's standard library.

    python examples/lstm_text.py [--picture text.png] [--device cuda]

S. Hochreiter and J. Schmidhuber, "Long short-term memory", 1997. The text is cut into as many streams as a batch has rows.
The state at the end of a window is where the next one starts, so the model reads on where it stopped; gradients stay
within a window. Forward, backward through time, clipping and Adam are one compiled step.
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

MODULES = "argparse collections datetime functools inspect itertools json logging pathlib random re string threading"


def documentation() -> str:
    """The documentation strings of ``MODULES``, of their functions and classes, and of the methods of these."""
    texts = []
    for name in MODULES.split():
        module = import_module(name)
        parts = [x for x in vars(module).values() if getattr(x, "__module__", "") == name]
        methods = [y for x in parts if inspect.isclass(x) for y in vars(x).values() if callable(y)]
        texts += [inspect.getdoc(x) or "" for x in (module, *parts, *methods)]
    text = "\n\n".join(dict.fromkeys(texts))
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")


class Writer(nn.Module):
    """Scores for the next character, and the state after it."""

    def __init__(self, characters: int, width: int, layers: int) -> None:
        self.characters = nn.Embedding(characters, 48)
        self.lstm = nn.LSTM(48, width, num_layers=layers)
        self.scores = nn.Linear(width, characters)

    def forward(self, codes: Any, state: Any) -> tuple[Any, Any]:
        """[time, batch] integers and a state -> [time, batch, characters] scores and the next state."""
        outputs, state = self.lstm(self.characters(codes), state)
        return self.scores(outputs), state

    def start(self, batch: int, device: str = "cpu") -> Any:
        """The state before any character: outputs and cells [layers, batch, width]."""
        shape = (self.lstm.num_layers, batch, self.lstm.hidden_size)
        return jg.zeros(shape, device=device), jg.zeros(shape, device=device)

    def write(self, alphabet: str, start: str, length: int) -> str:
        """``start`` continued by ``length`` characters, drawn at temperature 0.7."""
        generator = np.random.default_rng(0)
        codes = [alphabet.index(c) for c in start]
        read = jg.jit(self.forward)
        with jg.no_grad():
            state = self.start(1)
            for k in range(len(start) + length):
                scores, state = read(jg.tensor([[codes[k]]]), state)
                if k + 1 == len(codes):
                    p = jg.softmax(scores[0, 0] / 0.7).numpy().astype(np.float64)
                    codes.append(int(generator.choice(len(p), p=p / p.sum())))
        return "".join(alphabet[k] for k in codes)


def loss_of(model: Writer, window: Any, state: Any) -> tuple[Any, Any]:
    """The mean loss per character of ``window`` [time + 1, batch], and the state after it, cut from its history."""
    scores, (h, c) = model(window[:-1], state)
    loss = jg.cross_entropy(scores.reshape(-1, scores.shape[-1]), window[1:].reshape(-1))
    return loss, (h.detach(), c.detach())


def training_step(model: Writer) -> Callable[[Any, Any], tuple[Any, Any]]:
    """A function that takes a window and a state, updates ``model``, and returns loss and next state."""
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    def step(window: Any, state: Any) -> tuple[Any, Any]:
        optimizer.zero_grad()
        loss, state = loss_of(model, window, state)
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, state

    return step


def streams(codes: np.ndarray[Any, Any], batch: int) -> np.ndarray[Any, Any]:
    """[length, batch]: ``codes`` cut into ``batch`` columns of successive characters."""
    length = len(codes) // batch
    return codes[: length * batch].reshape(batch, length).T


def main(
    steps: int = 600, window: int = 32, batch: int = 32, width: int = 128, layers: int = 2, every: int = 50,
    picture: str = "", device: str = "cpu",
) -> list[float]:  # fmt: skip
    """Train, and print a text; returns the loss of every step. The last tenth of the text is for the test."""
    text = documentation()
    alphabet = "".join(sorted(set(text)))
    codes = np.array([alphabet.index(c) for c in text], np.int64)
    train, test = streams(codes[: len(codes) * 9 // 10], batch), streams(codes[len(codes) * 9 // 10 :], batch)
    print(f"{len(text):,} characters, {len(alphabet)} different ones")
    jg.manual_seed(0)
    model = Writer(len(alphabet), width, layers).to(device)
    step = training_step(model)
    fused = jg.jit(step)
    losses: list[float] = []
    state = model.start(batch, device)
    times: dict[str, list[float]] = {"fused": [], "eager": []}
    for k in range(steps):
        place = k % ((len(train) - 1) // window) * window
        if place == 0:
            state = model.start(batch, device)
        kind = "eager" if 0 < k <= 3 else "fused"
        start = time.perf_counter()
        loss, state = (step if kind == "eager" else fused)(jg.tensor(train[place : place + window + 1]).to(device), state)
        losses.append(loss.item())
        times[kind].append(time.perf_counter() - start)
        if k == 0:
            print(f"first step, with tracing and compiling: {times['fused'].pop():.1f} s")
        if k % every == 0 or k == steps - 1:
            print(f"step {k:4d}   loss {losses[-1]:.3f}")
    for kind, taken in times.items():
        print(f"{kind} steps: {np.median(taken) * 1e3:.1f} ms each" if taken else f"no {kind} steps")
    judge(model.to("cpu"), test, alphabet)
    if picture:
        save(picture, model, losses, test[:900, 0], alphabet)
    return losses


def judge(model: Writer, test: np.ndarray[Any, Any], alphabet: str) -> None:
    """Print the loss on unseen text, and a text of the model's own."""
    with jg.no_grad():
        unseen = loss_of(model, jg.tensor(test), model.start(test.shape[1]))[0].item()
    print(f"text that it has not seen: {unseen / np.log(2):.2f} bits per character\n")
    print(model.write(alphabet, "Return the ", 240))


def save(path: str, model: Writer, losses: list[float], codes: np.ndarray[Any, Any], alphabet: str) -> None:
    """The loss while training, and how surprised the model is by each character of an unseen text."""
    from matplotlib.figure import Figure

    with jg.no_grad():
        scores, _ = model(jg.tensor(codes[:-1, None]), model.start(1))
        chances = jg.softmax(scores[:, 0]).numpy()
    seen = chances[np.arange(len(codes) - 1), codes[1:]]
    figure = Figure(figsize=(12, 4), layout="constrained")
    curve, words = figure.subplots(1, 2, width_ratios=(1, 2))
    curve.plot(losses)
    curve.set(xlabel="step", ylabel="loss per character", title="training")
    words.set(xlim=(0, 72), ylim=(14, 0), title="unseen text: likely characters are light, surprises dark")
    words.axis("off")
    row, column = 0, 0
    for code, p in zip(codes[1:], seen, strict=True):
        if alphabet[code] == "\n" or column == 72:
            row, column = row + 1, 0
        if row >= 13:
            break
        if alphabet[code] != "\n":
            shade = f"{0.8 * float(p):.3f}"
            words.text(column, row + 1, alphabet[code], color=shade, family="monospace", fontsize=9)
            column += 1
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="", help="where to save a picture; needs matplotlib")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    main(picture=options.picture, device=options.device)
