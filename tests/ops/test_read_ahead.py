"""Read-aheads of random numbers: the same numbers as each draw by itself, computed for many draws at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.tensor import Tensor
from jitgrad.ops import random_numbers
from jitgrad.ops.random import Generator

DRAWS: dict[str, Callable[[Generator, int], Tensor]] = {
    "rand": lambda g, n: g.rand(n),
    "rand of float16": lambda g, n: g.rand(n, dtype=np.float16),
    "rand of float64": lambda g, n: g.rand(n, dtype=np.float64),
    "randn": lambda g, n: g.randn(n, 2),
    "randn of float16": lambda g, n: g.randn(n, dtype=np.float16),
    "randn of float64": lambda g, n: g.randn(n, dtype=np.float64),
    "randint": lambda g, n: g.randint(-3, 50, (n,)),
    "bernoulli": lambda g, n: g.bernoulli(0.3, (n,)),
    "randperm": lambda g, n: g.randperm(n),
    "uniform": lambda g, n: g.uniform(2.0, 3.0, (2, n)),
    "0-d": lambda g, _n: g.randn(),
}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of elements whose bits windows were filled with."""
    counts: list[int] = []
    consecutive = random_numbers.philox_consecutive

    def noted(key: int, counter: int, count: int) -> Any:
        counts.append(count)
        return consecutive(key, counter, count)

    monkeypatch.setattr(random_numbers, "philox_consecutive", noted)
    monkeypatch.setattr(random_numbers.Loop, "ready", lambda *_: None)  # compiled loops do not call it
    return counts


def by_ops(seed: int, draws: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Each draw and the state after it, without read-aheads."""
    with monkeypatch.context() as patch:
        patch.setattr(Generator, "_known", lambda *_: None)
        return drawn(Generator(seed), draws)


def drawn(generator: Generator, draws: list[tuple[str, int]]) -> list[tuple[Any, Any]]:
    return [(DRAWS[name](generator, n).numpy(), generator.get_state().numpy()) for name, n in draws]


def assert_equal(found: list[tuple[Any, Any]], expected: list[tuple[Any, Any]]) -> None:
    for (a, after_a), (b, after_b) in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        assert after_a.tolist() == after_b.tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_repeated_draws_have_the_bits_of_single_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = [(name, n) for n in (7, 7, 7, 0, 1, 7, 7, 64, 65, 3000, 9000, 5, 5)]

    assert_equal(drawn(Generator(5), draws), by_ops(5, draws, monkeypatch))


def test_draws_of_all_kinds_in_turn_have_the_bits_of_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    order = np.random.default_rng(0)
    draws = [(str(order.choice(list(DRAWS))), int(order.integers(0, 40))) for _ in range(300)]

    assert_equal(drawn(Generator(5), draws), by_ops(5, draws, monkeypatch))


def test_few_windows_are_computed_for_many_draws(computed: list[int]) -> None:
    generator = Generator(3)
    for _ in range(1000):
        generator.randn(10)

    assert len(computed) <= 10 and sum(computed) <= 4 * 10_000


def test_draws_of_two_words_are_computed_many_at_a_time(computed: list[int]) -> None:
    generator = Generator(3)
    for _ in range(1000):
        generator.randn(10, dtype=np.float64)

    assert len(computed) <= 12 and sum(computed) <= 2 * 20_000


def test_a_draw_elsewhere_in_the_stream_computes_little(computed: list[int]) -> None:
    generator = Generator(3)
    for k in range(20):
        generator.manual_seed(k).rand(10)

    assert max(computed) <= 64


def test_the_state_decides_what_is_drawn() -> None:
    generator = Generator(3)
    state = generator.get_state()
    first = generator.rand(10).tolist()
    generator.rand(10)

    generator.set_state(state)
    assert generator.rand(10).tolist() == first
    generator.state += jg.tensor(np.array([0, 10], np.uint64))
    assert generator.rand(10).tolist() != first
    generator.manual_seed(3)
    assert generator.rand(10).tolist() == first


def test_a_result_has_memory_of_its_own() -> None:
    generator = Generator(3)
    x = generator.rand(4)
    expected = Generator(3).rand(4).tolist()
    x += 1.0

    assert generator.manual_seed(3).rand(4).tolist() == expected


def test_a_draw_counts_as_a_change_of_the_state() -> None:
    generator = Generator(3)
    before = generator.state._storage.version

    generator.rand(4)

    assert generator.state._storage.version == before + 1


def test_numbers_continue_in_compiled_functions() -> None:
    generator, other = Generator(3), Generator(3)
    compiled = jg.jit(lambda: generator.rand(5))

    found = [generator.rand(5).tolist(), compiled().tolist(), generator.rand(5).tolist(), compiled().tolist()]

    assert found == [other.rand(5).tolist() for _ in range(4)]
    generator.randn(5)
    compiled()
    assert compiled.cache_info().traces == 1


def test_a_copy_of_a_generator_continues_by_itself() -> None:
    generator = Generator(3)
    generator.rand(4)
    twin = copy.deepcopy(generator)
    expected = generator.rand(4).tolist()

    assert twin.rand(4).tolist() == expected


def test_the_last_counters_of_a_stream() -> None:
    generator = Generator(3)
    generator.set_state(np.array([3, 2**64 - 2], np.uint64))

    generator.rand(10)

    assert generator.state.tolist() == [3, 3]
