"""A recurrence of 120 steps, trained without garbage collection: no object of a step survives the next."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.jit.decorator import jit

STEPS = 120


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Recurrence:
    """A GRU over 120 steps and its training step; ``born`` holds weak references to the last step's hidden states."""

    def __init__(self) -> None:
        jg.manual_seed(0)
        self.cell, self.head = nn.GRUCell(3, 4), nn.Linear(4, 1)
        self.optimizer = optim.SGD([*self.cell.parameters(), *self.head.parameters()], lr=0.05)
        rng = np.random.default_rng(0)
        self.xs = jg.tensor(rng.normal(size=(STEPS, 2, 3)).astype(np.float32))
        self.y = jg.tensor(rng.normal(size=(2, 1)).astype(np.float32))

    def step(self, watch: Callable[[Any], None] | None = None) -> Callable[[Any, Any], Any]:
        cell, head, optimizer = self.cell, self.head, self.optimizer

        def step(xs: Any, y: Any) -> Any:
            optimizer.zero_grad()
            h = jg.zeros((2, 4))
            for t in range(STEPS):
                h = cell(xs[t], h)
                if watch is not None:
                    watch(h)
            loss = jg.mse_loss(head(h), y)
            loss.backward()
            optimizer.step()
            return loss

        return step


def live_tensors() -> int:
    return sum(issubclass(type(x), jg.Tensor) for x in gc.get_objects())


def growth(run: Callable[[], Any], iterations: int) -> tuple[int, int]:
    """(tensors, blocks of Python memory) that ``iterations`` calls of ``run`` leave behind."""
    for _ in range(4):
        run()
    tensors, blocks = live_tensors(), sys.getallocatedblocks()
    for _ in range(iterations):
        run()
    return live_tensors() - tensors, sys.getallocatedblocks() - blocks


# Free lists of the interpreter fill and empty; steps whose graphs survive have many times as many blocks.
FREE_LISTS = 3_000


@pytest.mark.usefixtures("no_collector")
def test_all_intermediates_of_an_eager_step_are_dead_after_it() -> None:
    recurrence, born = Recurrence(), list[Any]()
    step = recurrence.step(lambda h: born.append(weakref.ref(h)))

    loss = step(recurrence.xs, recurrence.y)

    assert len(born) == STEPS and all(r() is None for r in born), "backward freed the graph"
    assert np.isfinite(float(loss))


@pytest.mark.usefixtures("no_collector")
def test_a_loss_that_is_dropped_without_backward_takes_its_graph_with_it() -> None:
    recurrence = Recurrence()
    h, born = jg.zeros((2, 4)), []
    for t in range(STEPS):
        h = recurrence.cell(recurrence.xs[t], h)
        born.append(weakref.ref(h))
    loss = h.sum()
    del h
    assert born[-1]() is None or loss.requires_grad

    del loss
    assert all(r() is None for r in born)


@pytest.mark.usefixtures("no_collector")
def test_a_graph_that_is_kept_is_seen() -> None:
    """The measure of the tests below sees a leak."""
    recurrence, kept = Recurrence(), list[Any]()

    def run() -> None:
        h = jg.zeros((2, 4))
        for t in range(STEPS):
            h = recurrence.cell(recurrence.xs[t], h)
        kept.append(h)

    tensors, blocks = growth(run, 5)

    assert tensors >= 1 and blocks > 5 * FREE_LISTS


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("iterations", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_eager_training_does_not_grow(iterations: int) -> None:
    recurrence = Recurrence()
    step = recurrence.step()

    tensors, blocks = growth(lambda: step(recurrence.xs, recurrence.y), iterations)

    assert tensors == 0
    assert blocks < FREE_LISTS


@pytest.mark.numba
@pytest.mark.usefixtures("no_collector")
def test_compiled_training_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 steps; they follow the eager ones, and the loss falls."""
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    recurrence, reference = Recurrence(), Recurrence()
    step, eager = jit(recurrence.step(), check="off"), reference.step()
    first = [float(step(recurrence.xs, recurrence.y)) for _ in range(3)]
    expected = [float(eager(reference.xs, reference.y)) for _ in range(3)]
    np.testing.assert_allclose(first, expected, rtol=1e-4)

    tensors, blocks = growth(lambda: step(recurrence.xs, recurrence.y), 300)

    assert tensors <= 0
    assert blocks < FREE_LISTS
    assert float(step(recurrence.xs, recurrence.y)) < first[0]
    assert step.cache_info().traces <= 2


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
def test_a_program_with_its_backward_outside_keeps_nothing(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    w = jg.tensor(np.ones(50)).requires_grad_()
    f = jit(lambda w, x: (jg.tanh(w * x) ** 2).sum(), check="off")
    x = jg.tensor(np.arange(50.0))
    born: list[Any] = []

    def run() -> None:
        w.grad = None
        loss = f(w, x)
        born[:] = [weakref.ref(loss)]
        loss.backward()

    tensors, blocks = growth(run, 50)

    assert born[0]() is None
    assert tensors == 0
    assert blocks < FREE_LISTS


def test_a_jitted_function_that_is_dropped_is_freed() -> None:
    w = jg.tensor(np.ones(3))
    f = jit(lambda x: x * w, check="off")
    f(jg.ones(3))
    gone = weakref.ref(f)

    del f
    gc.collect()

    assert gone() is None
