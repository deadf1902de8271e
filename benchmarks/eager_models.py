"""Layers, models, training steps and optimizers of `benchmarks.eager`: the same in jitgrad and PyTorch, with equal parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

WIDTH, CLASSES, STEPS, HEADS = 32, 10, 8, 4
CHANNELS, PIXELS = 3, 12
LEARNING_RATE = 1e-4  # parameters hardly move, however often a step is repeated


def inputs(lib: Any, side: int) -> dict[str, Any]:
    """Batches of ``side`` examples: vectors, lines, images, sequences, and heads of them."""
    rng = np.random.default_rng(1)
    few = min(side, 100)  # examples that take more than some microseconds each
    shapes = {"p": (side, WIDTH), "q": (few, CHANNELS, 4 * PIXELS), "q2": (few, CHANNELS, PIXELS, PIXELS)}
    shapes |= {"s": (few, STEPS, WIDTH), "h": (few, HEADS, STEPS, WIDTH // HEADS)}
    return {name: lib.tensor(rng.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()}


def equal(model: Any, lib: Any) -> Any:
    """``model`` with parameters that are the same in both libraries."""
    rng = np.random.default_rng(2)
    with lib.no_grad():
        for parameter in model.parameters():
            parameter.copy_(lib.tensor(rng.uniform(-0.2, 0.2, tuple(parameter.shape)).astype(np.float32)))
    return model


def layers(lib: Any) -> dict[str, Any]:
    """Layers and models by the names that they have in the calls."""
    nn = lib.nn
    pooled = PIXELS // 2 - 1
    made = {
        "linear": nn.Linear(WIDTH, WIDTH),
        "layer_norm": nn.LayerNorm(WIDTH),
        "mlp": nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES)),
        "conv1d": nn.Conv1d(CHANNELS, 8, 3),
        "conv2d": nn.Conv2d(CHANNELS, 8, 3),
        "cnn": nn.Sequential(
            nn.Conv2d(CHANNELS, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * pooled * pooled, CLASSES)
        ),
        "lstm": nn.LSTM(WIDTH, WIDTH, batch_first=True),
        "gru": nn.GRU(WIDTH, WIDTH, batch_first=True),
        "encoder": nn.TransformerEncoderLayer(WIDTH, HEADS, 64, dropout=0.0, batch_first=True),
    }
    attention = equal(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), lib)
    found: dict[str, Any] = {name: equal(layer, lib) for name, layer in made.items()}
    found["attention"] = lambda s: attention(s, s, s, need_weights=False)[0]
    return found


class _Reader:
    """A model that reads sequences: ``body``, then the scores of its last step."""

    def __init__(self, lib: Any, body: Any, first_of_pair: bool) -> None:
        self.body, self.first_of_pair = body, first_of_pair
        self.head = equal(lib.nn.Linear(WIDTH, CLASSES), lib)

    def parameters(self) -> Iterator[Any]:
        yield from self.body.parameters()
        yield from self.head.parameters()

    def __call__(self, s: Any) -> Any:
        out = self.body(s)
        return self.head((out[0] if self.first_of_pair else out)[:, -1])


def training_steps(lib: Any, batches: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Complete steps: gradients set to None, forward, loss, backward, update by Adam."""
    fresh = layers(lib)
    models = {
        "step_linear": (fresh["linear"], "p"),
        "step_mlp": (fresh["mlp"], "p"),
        "step_cnn": (fresh["cnn"], "q2"),
        "step_lstm": (_Reader(lib, fresh["lstm"], True), "s"),
        "step_transformer": (_Reader(lib, fresh["encoder"], False), "s"),
    }
    return {name: _step(lib, model, batches[batch]) for name, (model, batch) in models.items()}


def _step(lib: Any, model: Any, batch: Any) -> Callable[[], Any]:
    labels = lib.tensor(np.random.default_rng(3).integers(0, CLASSES, batch.shape[0]))
    optimizer = lib.optim.Adam(list(model.parameters()), lr=LEARNING_RATE)

    def step() -> Any:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def updates(lib: Any, side: int) -> dict[str, Any]:
    """Optimizers of 10 and 100 parameters with ``side`` elements, and what else is done with their gradients."""

    def parameters(count: int) -> list[Any]:
        rng = np.random.default_rng(4)
        made = [lib.tensor(rng.normal(size=side).astype(np.float32), requires_grad=True) for _ in range(count)]
        for parameter in made:
            parameter.grad = lib.ones_like(parameter)
        return made

    optim = lib.optim
    hundred = parameters(100)

    def clip(count: int) -> Any:
        return lib.nn.utils.clip_grad_norm_(hundred[:count], 1.0)

    cleared = optim.SGD(parameters(100), lr=LEARNING_RATE)

    def zero_grad(count: int) -> None:
        del count
        cleared.zero_grad()

    return {
        "clip": clip,
        "zero_grad": zero_grad,
        "sgd10": optim.SGD(parameters(10), lr=LEARNING_RATE),
        "sgd100": optim.SGD(parameters(100), lr=LEARNING_RATE),
        "momentum100": optim.SGD(parameters(100), lr=LEARNING_RATE, momentum=0.9),
        "adam10": optim.Adam(parameters(10), lr=LEARNING_RATE),
        "adam100": optim.Adam(parameters(100), lr=LEARNING_RATE),
        "adamw100": optim.AdamW(parameters(100), lr=LEARNING_RATE),
    }
