"""Unrolled loops are cut into equal kernels: where, how many are compiled, and correct results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.jit.decorator import jit

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def few_nodes(tune: Callable[..., None]) -> None:
    """Kernels of twenty ops."""
    tune(max_kernel_nodes=20)


def kernels(function: Any, *args: Any) -> tuple[int, int]:
    """How many kernels the compiled ``function`` has, and how many of them differ."""
    compiled = jit(function, check="off") if not hasattr(function, "lookup") else function
    program = compiled.lookup(*args).program
    return sum(isinstance(step, KernelStep) for step in program.plan.steps), len(program.kernels)


def escape(x: Any, y: Any, count: int = 24) -> Any:
    """An iteration of nine ops, after which two values live on."""
    a, b = x, y
    for _ in range(count):
        a, b = a * a - b * b + x, 2.0 * jg.abs(a * b) + y
        a = jg.tanh(a)
    return a + b


def arguments(*shape: int) -> tuple[jg.Tensor, jg.Tensor]:
    return jg.tensor(0.3 * RNG.normal(size=shape)), jg.tensor(0.3 * RNG.normal(size=shape))


def test_all_kernels_of_a_loop_are_one(same: Any) -> None:
    compiled = same(escape, *arguments(50), rtol=1e-12)

    count, different = kernels(compiled, *arguments(50))
    assert (count, different) == (13, 3)


def test_gradients_of_a_loop_have_equal_kernels(same: Any) -> None:
    compiled = same(jg.value_and_grad(lambda x, y: escape(x, y).sum()), *arguments(50), rtol=1e-9)

    count, different = kernels(compiled, *arguments(50))
    assert count > 25 and different < 12


def test_a_loop_in_one_kernel_is_not_cut() -> None:
    assert kernels(lambda x, y: escape(x, y, 2), *arguments(50)) == (1, 1)


def test_steps_of_different_numbers_are_not_cut(same: Any) -> None:
    def decay(x: Any) -> Any:
        for k in range(30):
            x = jg.tanh(x * (1 + k / 100)) - k
        return x

    compiled = same(decay, arguments(50)[0], rtol=1e-12)

    assert kernels(compiled, arguments(50)[0]) == (5, 5)


def test_rows_prepared_before_the_loop_stay_in_its_kernels(same: Any) -> None:
    """The multiples of rows would otherwise be kernels of their own."""

    def filtered(x: Any) -> Any:
        rows = [jg.tanh(x[k]) for k in range(24)]
        state = x[0]
        for row in rows:
            state = jg.tanh(state * 0.5 + row) * 0.9 + state
            state = state - state * state * 0.1
        return state

    compiled = same(filtered, arguments(24, 40)[0], rtol=1e-12)

    count, different = kernels(compiled, arguments(24, 40)[0])
    assert count < 24 and different <= 3


def test_two_loops_have_a_kernel_each(same: Any) -> None:
    def twice(x: Any, y: Any) -> Any:
        x = escape(x, y)
        for _ in range(24):
            x = jg.sin(x) * 0.5 + jg.cos(y - x)
        return x

    compiled = same(twice, *arguments(50), rtol=1e-9)

    count, different = kernels(compiled, *arguments(50))
    assert count > 18 and different <= 6
