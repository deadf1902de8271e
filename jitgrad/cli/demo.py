"""The demonstration: trains a small network on handwritten digits, eagerly and fused, with equal losses."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad import nn, optim
from jitgrad.core.tensor import Tensor
from jitgrad.inspect import Comparison, KernelView, compare
from jitgrad.jit.decorator import jit
from jitgrad.ops.creation import tensor
from jitgrad.ops.losses import cross_entropy
from jitgrad.ops.random import manual_seed

SAMPLES, PIXELS, CLASSES = 1797, 64, 10  # of scikit-learn's digits
TEST_SAMPLES = 360
BATCH = 64


@dataclass(frozen=True, eq=False, slots=True)
class Dataset:
    """Images as rows of 64 pixels in [0, 1] (f32) and their labels (i64); ``source`` names the data set."""

    images: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    source: str


@dataclass(frozen=True, eq=False, slots=True)
class TrainingRun:
    """One training run: the loss of every step, the accuracy on test images, the seconds."""

    losses: np.ndarray[Any, Any]
    accuracy: float
    seconds: float


@dataclass(frozen=True, eq=False, slots=True)
class Demonstration:
    """Both runs, the comparison of one step, and its kernels."""

    dataset: Dataset
    eager: TrainingRun
    fused: TrainingRun
    step: Comparison
    kernels: list[KernelView]

    @property
    def largest_difference(self) -> float:
        """The largest difference between the losses of the two runs, over all steps."""
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


class Trainer:
    """A 64-256-128-10 network with Adam and a fixed initialisation; ``step`` is one whole training step."""

    def __init__(self, dataset: Dataset, wrap: Callable[[Any], Any], device: str = "cpu") -> None:
        manual_seed(0)
        self.dataset = dataset
        layers = (nn.Linear(PIXELS, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, CLASSES))
        model = nn.Sequential(*layers).to(device)
        optimizer = optim.Adam(model.parameters(), lr=1e-3)

        def training_step(images: Tensor, labels: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            return loss

        self.model = model
        self.device = device
        self.step = wrap(training_step)

    def batch(self, rows: Any) -> tuple[Tensor, Tensor]:
        arrays = self.dataset.images[rows], self.dataset.labels[rows]
        return tensor(arrays[0], device=self.device), tensor(arrays[1], device=self.device)

    def train(self, epochs: int) -> TrainingRun:
        """Train on all but the last 360 images, in the same order in every run."""
        shuffle = np.random.default_rng(1)
        count = len(self.dataset.images) - TEST_SAMPLES
        losses = []
        start = time.perf_counter()
        for _ in range(epochs):
            order = shuffle.permutation(count)
            for k in range(0, count - BATCH + 1, BATCH):
                losses.append(self.step(*self.batch(order[k : k + BATCH])).item())
        seconds = time.perf_counter() - start
        images, labels = self.batch(slice(count, None))
        right = self.model(images).detach().cpu().numpy().argmax(axis=1) == labels.cpu().numpy()
        return TrainingRun(np.array(losses), float(right.mean()), seconds)


def demonstrate(epochs: int = 20, seconds: float = 2.0, device: str = "cpu") -> Demonstration:
    """Train eagerly and fused on ``device``, then compare and time one step for about ``seconds``."""
    dataset = load_dataset()
    eager = Trainer(dataset, lambda step: step, device).train(epochs)
    trainer = Trainer(dataset, jit, device)
    fused = trainer.train(epochs)
    batch = trainer.batch(slice(0, BATCH))
    comparison = compare(trainer.step, *batch, seconds=seconds)
    return Demonstration(dataset, eager, fused, comparison, trainer.step.kernels(*batch))
