"""Training steps of which forward keeps much for backward: each makes a model, its step, and the arguments of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jitgrad as jg
from jitgrad import nn, optim

Function = Callable[..., Any]


class Program(NamedTuple):
    """A step that updates ``model``; the same seed makes the same model, arguments and random numbers."""

    model: nn.Module
    step: Function
    args: tuple[Any, ...]


def _training(model: nn.Module, optimizer: Any, loss_of: Function) -> Function:
    def step(*data: Any) -> Any:
        loss = loss_of(model, *data)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def _squared(model: nn.Module, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


def mlp(
    layers: int = 16, width: int = 32, batch: int = 256, activation: Function = nn.Tanh, dropout: float = 0.0, device: str = "cpu"
) -> Program:
    jg.manual_seed(0)
    modules: list[nn.Module] = []
    for _ in range(layers):
        modules += [nn.Linear(width, width), activation()]
        modules += [nn.Dropout(dropout)] if dropout else []
    model = nn.Sequential(*modules).to(device)
    data = tuple(jg.randn(batch, width).to(device) for _ in range(2))
    return Program(model, _training(model, optim.Adam(model.parameters(), lr=1e-3), _squared), data)


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return jg.relu(x + self.second(jg.relu(self.first(x))))


def residual(blocks: int = 4, channels: int = 6, batch: int = 4, size: int = 10) -> Program:
    jg.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), *[Residual(channels) for _ in range(blocks)])
    optimizer = optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)

    def loss_of(model: nn.Module, x: Any, y: Any) -> Any:
        return ((model(x).mean(axis=(2, 3)) - y) ** 2).mean()

    return Program(model, _training(model, optimizer, loss_of), (jg.randn(batch, 3, size, size), jg.randn(batch, channels)))


def transformer(layers: int = 3, dropout: float = 0.0) -> Program:
    jg.manual_seed(0)
    words, width, length, batch = 30, 16, 20, 4
    layer = nn.TransformerEncoderLayer(width, 2, 32, dropout, batch_first=True)
    model = nn.Sequential(nn.Embedding(words, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, words))

    def loss_of(model: nn.Module, x: Any, y: Any) -> Any:
        return jg.cross_entropy(model(x).reshape(-1, words), y.reshape(-1))

    step = _training(model, optim.SGD(model.parameters(), lr=1e-2), loss_of)
    return Program(model, step, (jg.randint(0, words, (batch, length)), jg.randint(0, words, (batch, length))))


def recurrent(steps: int = 16, width: int = 24, batch: int = 32) -> Program:
    jg.manual_seed(0)
    cell, head = nn.GRUCell(width, width), nn.Linear(width, 1)
    model = nn.ModuleList([cell, head])

    def loss_of(_: nn.Module, x: Any, y: Any) -> Any:
        h, loss = jg.zeros((batch, width)), 0.0
        for t in range(steps):
            h = cell(x[t], h)
            loss = loss + ((head(h) - y[t]) ** 2).mean()
        return loss

    step = _training(model, optim.Adam(model.parameters(), lr=1e-3), loss_of)
    return Program(model, step, (jg.randn(steps, batch, width), jg.randn(steps, batch, 1)))


def with_dropout() -> Program:
    return mlp(activation=nn.GELU, dropout=0.2)


def transformer_with_dropout() -> Program:
    return transformer(dropout=0.1)


def with_checkpoint() -> Program:
    """Every second layer under `jg.checkpoint`."""
    program = mlp(layers=8)
    layers = list(program.model)
    pairs = [nn.Sequential(*layers[k : k + 2]) for k in range(0, len(layers), 2)]

    def loss_of(_: nn.Module, x: Any, y: Any) -> Any:
        for k, pair in enumerate(pairs):
            x = jg.checkpoint(pair)(x) if k % 2 else pair(x)
        return ((x - y) ** 2).mean()

    step = _training(program.model, optim.SGD(program.model.parameters(), lr=1e-2), loss_of)
    return Program(program.model, step, program.args)


# with the smallest part of its memory that a program must do with
PROGRAMS: dict[str, tuple[Callable[[], Program], float]] = {
    "deep MLP": (mlp, 0.45),
    "residual": (residual, 0.45),
    "transformer": (transformer, 0.5),
    "recurrent": (recurrent, 0.6),
    "dropout": (with_dropout, 0.4),
    "transformer with dropout": (transformer_with_dropout, 0.5),
    "checkpoint": (with_checkpoint, 0.7),
}
