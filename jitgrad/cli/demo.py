"""The demonstration: three programs op by op and compiled, with equal results: a training, a model, a differential equation."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad import nn, optim
from jitgrad.autograd import value_and_grad
from jitgrad.core.tensor import Tensor
from jitgrad.inspect import Comparison, KernelView, compare
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.jit.program_cache import CacheInfo
from jitgrad.ops.arithmetic import sqrt
from jitgrad.ops.creation import tensor
from jitgrad.ops.losses import cross_entropy
from jitgrad.ops.random import manual_seed, rand
from jitgrad.ops.special import erfc
from jitgrad.ops.transcendental import exp, log

SAMPLES, PIXELS, PIECE, CLASSES = 1797, 64, 4, 10  # of scikit-learn's digits
TEST_SAMPLES = 360
BATCH = 32


@dataclass(frozen=True, eq=False, slots=True)
class Dataset:
    """Images as rows of 64 pixels in [0, 1] (f32) and their labels (i64); ``source`` names the data set."""

    images: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    source: str


@dataclass(frozen=True, eq=False, slots=True)
class TrainingRun:
    """One training run: the loss of every step, the accuracy on test images, the seconds of all and of the first step."""

    losses: np.ndarray[Any, Any]
    accuracy: float
    seconds: float
    first_step: float


@dataclass(frozen=True, eq=False, slots=True)
class Demonstration:
    """Both trainings, and the comparisons of the two models of ``size`` elements; the kernels of the first model."""

    device: str
    size: int
    dataset: Dataset
    eager: TrainingRun
    fused: TrainingRun
    compiled: CacheInfo
    prices: Comparison
    motion: Comparison
    kernels: list[KernelView]

    @property
    def largest_difference(self) -> float:
        """The largest difference between the losses of the two trainings, over all steps."""
        return float(np.abs(self.eager.losses - self.fused.losses).max())


def load_dataset() -> Dataset:
    """scikit-learn's digits if that is installed, else a generated set of the same size."""
    if importlib.util.find_spec("sklearn") is None:
        return generated_dataset()
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    return Dataset(images, labels, "1,797 handwritten digits of scikit-learn")


def generated_dataset() -> Dataset:
    """One random picture per class plus noise: as many images as the digits, and about as hard."""
    random = np.random.default_rng(0)
    pictures = random.uniform(0, 1, (CLASSES, PIXELS))
    labels = random.integers(0, CLASSES, SAMPLES)
    images = np.clip(pictures[labels] + random.normal(0, 0.35, (SAMPLES, PIXELS)), 0, 1)
    source = "1,797 generated images (scikit-learn, which has handwritten digits, is not installed)"
    return Dataset(images.astype(np.float32), labels.astype(np.int64), source)


class PieceReader(nn.Module):
    """A recurrent network that reads an image half a row at a time, from top to bottom, and then says which digit it saw."""

    def __init__(self, hidden: int = 32) -> None:
        self.pieces: nn.GRU = nn.GRU(PIECE, hidden, batch_first=True)
        self.scores: nn.Linear = nn.Linear(hidden, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """[n, 64] -> [n, 10] scores."""
        states, _ = self.pieces(images.reshape((-1, PIXELS // PIECE, PIECE)))
        scores: Tensor = self.scores(states[:, -1])
        return scores


class Trainer:
    """A `PieceReader` with Adam and a fixed initialisation; ``step`` is one whole training step."""

    def __init__(self, dataset: Dataset, wrap: Callable[[Any], Any], device: str = "cpu") -> None:
        manual_seed(0)
        self.dataset = dataset
        model = PieceReader().to(device)
        # at a higher rate, late steps amplify the rounding of early ones: eager runs one bit apart end apart
        optimizer = optim.Adam(model.parameters(), lr=2e-3)

        def training_step(images: Tensor, labels: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            return loss

        self.model: PieceReader = model
        self.device = device
        self.step: Callable[..., Tensor] = wrap(training_step)

    def batch(self, rows: Any) -> tuple[Tensor, Tensor]:
        arrays = self.dataset.images[rows], self.dataset.labels[rows]
        return tensor(arrays[0], device=self.device), tensor(arrays[1], device=self.device)

    def train(self, epochs: int) -> TrainingRun:
        """Train on all but the last 360 images, in the same order in every run."""
        shuffle = np.random.default_rng(1)
        count = len(self.dataset.images) - TEST_SAMPLES
        losses, ends = [], []
        start = time.perf_counter()
        for _ in range(epochs):
            order = shuffle.permutation(count)
            for k in range(0, count - BATCH + 1, BATCH):
                losses.append(self.step(*self.batch(order[k : k + BATCH])).item())
                ends.append(time.perf_counter() - start)
        images, labels = self.batch(slice(count, None))
        right = self.model(images).detach().cpu().numpy().argmax(axis=1) == labels.cpu().numpy()
        return TrainingRun(np.array(losses), float(right.mean()), ends[-1], ends[0])


def share_below(x: Tensor) -> Any:
    """The standard normal distribution function."""
    return 0.5 * erfc(-0.7071067811865476 * x)


def option_prices(spot: Tensor, strike: Tensor, years: Tensor, volatility: Tensor) -> Any:
    """Prices of European call options (F. Black and M. Scholes, 1973) at an interest rate of 3 %."""
    spread = volatility * sqrt(years)
    d = (log(spot / strike) + 0.03 * years) / spread + 0.5 * spread
    discounted = strike * exp(-0.03 * years)
    return spot * share_below(d) - discounted * share_below(d - spread)


def motion_and_gradients(place: Tensor, speed: Tensor) -> Any:
    """Twelve steps of an oscillator with the force -x - x^3 (G. Duffing, 1918); how far it ends, and its gradient."""

    def distance(x: Any, v: Any) -> Any:
        for _ in range(12):
            v = v - 0.1 * (x + x * x * x)
            x = x + 0.1 * v
        return (x * x).sum()

    return value_and_grad(distance, argnums=(0, 1))(place, speed)


def demonstrate(epochs: int = 80, seconds: float = 1.0, device: str = "cpu", size: int = 500_000) -> Demonstration:
    """Train op by op and compiled on ``device``; then compare both models for about ``seconds`` each."""
    dataset = load_dataset()
    eager = Trainer(dataset, lambda step: step, device).train(epochs)
    trainer = Trainer(dataset, jit, device)
    fused = trainer.train(epochs)
    spot, strike, years, volatility = (
        low + span * rand(size, device=device) for low, span in ((80.0, 40.0), (80.0, 40.0), (0.1, 2.0), (0.1, 0.3))
    )
    prices, motion = jit(option_prices), jit(motion_and_gradients)
    compared = compare(prices, spot, strike, years, volatility, seconds=seconds)
    moved = compare(motion, rand(size, device=device), rand(size, device=device), seconds=seconds)
    kernels = prices.kernels(spot, strike, years, volatility)
    assert isinstance(trainer.step, JitFunction)
    return Demonstration(device, size, dataset, eager, fused, trainer.step.cache_info(), compared, moved, kernels)
