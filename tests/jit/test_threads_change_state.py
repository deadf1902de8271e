"""Threads that change the same state by compiled functions take turns."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.state_locks import locks_of

THREADS, CALLS = 4, 60
LARGE = 100_000


@pytest.fixture(autouse=True)
def often_switched() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[], Any]) -> list[Any]:
    """The results of ``CALLS`` calls in each of several threads."""
    results: list[Any] = []

    def several() -> None:
        results.extend([work() for _ in range(CALLS)])

    threads = [threading.Thread(target=several, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread waits for a lock"
    return results


@pytest.mark.parametrize("size", [3, LARGE])
def test_no_update_of_an_outside_tensor_is_lost(size: int) -> None:
    state = jg.zeros(size)

    @jg.jit
    def one() -> None:
        state.add_(1)

    @jg.jit
    def two(x: Any) -> None:
        state.add_(x)

    for _ in range(3):
        one()
        two(jg.ones(size))
    in_threads(lambda: (one(), two(jg.ones(size))))

    assert set(state.tolist()) == {6.0 + 2 * THREADS * CALLS}


def test_no_gradient_is_lost() -> None:
    w = jg.ones(LARGE, requires_grad=True)

    @jg.jit
    def step() -> None:
        (w * 2).sum().backward()

    for _ in range(4):
        step()
    in_threads(step)

    assert w.grad is not None
    assert set(w.grad.tolist()) == {2.0 * (4 + THREADS * CALLS)}


@pytest.mark.parametrize("size", [1, LARGE])
def test_no_two_draws_are_alike(size: int) -> None:
    generator = jg.Generator(7)
    compiled = jg.jit(lambda: generator.rand(size))
    for _ in range(3):
        compiled()

    def both() -> tuple[float, float]:
        return float(compiled()[0].item()), float(generator.rand(size)[0].item())

    drawn = [x for pair in in_threads(both) for x in pair]
    assert len(set(drawn)) > 0.99 * len(drawn)  # float32 has 2**24 numbers


def test_programs_that_share_parts_of_their_state_do_not_wait_in_a_circle() -> None:
    a, b, generator = jg.zeros(LARGE), jg.zeros(LARGE), jg.Generator(3)
    first = jg.jit(lambda: (a.add_(1), None)[1])
    second = jg.jit(lambda: (b.add_(1), None)[1])
    both = jg.jit(lambda: (b.add_(a * 0 + 1), a.add_(1), None)[2])
    noisy = jg.jit(lambda: (a.add_(generator.rand(1) * 0 + 1), None)[1])
    calls = (first, second, both, noisy)
    for f in calls * 3:
        f()
    in_threads(lambda: [f() for f in calls])

    assert a[0].item() == 3 * (3 + THREADS * CALLS)
    assert b[0].item() == 2 * (3 + THREADS * CALLS)


def test_locks_are_few_and_in_one_order() -> None:
    a, b, c = (jg.zeros(1) for _ in range(3))

    assert len(locks_of([])) == 0
    assert len(locks_of([a, b])) == 1
    assert locks_of([a]) == locks_of([b])
    assert len(locks_of([b, c])) == 2
    assert locks_of([a, c]) == locks_of([c, b])
    assert locks_of([jg.Generator(1).state]) == locks_of([jg.Generator(2).state])
