"""Executable kernels around the sizes at which loops are cut: sums of 256, blocks of 1,024 to 16,384, rows of a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cpu.row_loops import SUM_BLOCK
from jitgrad.compiler.tuning import Tuning
from jitgrad.jit.decorator import jit

MIN_BLOCK, MAX_BLOCK = Tuning().min_block, Tuning().max_block

pytestmark = pytest.mark.numba

LENGTHS = sorted(
    {n + d for n in (16, SUM_BLOCK, MIN_BLOCK, 4096, MAX_BLOCK, 3 * MAX_BLOCK) for d in (-1, 0, 1)} | {1, 100_003}
)
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    before = jg.get_num_threads()
    yield
    jg.set_num_threads(before)


@jit(check="off")
def flat(x: Any, y: Any) -> Any:
    z = jg.tanh(x) * y
    return z, z.sum(), z.max(), (z > 0).sum(), jg.all(z < 2.0)


@jit(check="off")
def rowwise(x: Any, g: Any) -> Any:
    p = jg.softmax(x * g, -1)
    return p, p.max(axis=1), (p * x).sum(axis=1), (p * x).sum(axis=0), jg.log(p + 1.0).sum()


def with_threads(count: int, function: Any, *args: Any) -> list[np.ndarray[Any, Any]]:
    jg.set_num_threads(count)
    return [x.numpy().copy() for x in function(*args)]


def assert_same_for_any_number_of_threads(function: Any, *args: Any) -> None:
    expected = [x.numpy() for x in function.eager(*args)]
    alone, team = with_threads(1, function, *args), with_threads(2, function, *args)

    for a, b, c in zip(alone, team, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", LENGTHS)
def test_flat_loops(n: int) -> None:
    x, y = (jg.tensor(RNG.normal(size=n).astype(np.float32)) for _ in range(2))

    assert_same_for_any_number_of_threads(flat, x, y)


@pytest.mark.parametrize(
    "shape", [(1, 1025), (3, 1023), (17, 1024), (2, 16384), (2, 16385), (16385, 1), (16384, 2), (700, 129), (1, 1)]
)
def test_loops_over_rows(shape: tuple[int, int]) -> None:
    x = jg.tensor(RNG.normal(size=shape).astype(np.float32))

    assert_same_for_any_number_of_threads(rowwise, x, jg.tensor(RNG.normal(size=shape[1]).astype(np.float32)))


def test_these_lengths_need_few_kernels() -> None:
    """Sizes are arguments: only where an axis has length 1, and so is no loop, is there another kernel."""
    flat.clear()
    for n in LENGTHS[2:]:
        flat(*(jg.tensor(np.ones(n, np.float32)) for _ in range(2)))

    info = flat.cache_info()
    assert info.traces == len(LENGTHS) - 2
    assert info.kernels_compiled + info.kernels_from_disk <= 1


def test_a_long_float32_sum_is_as_exact_as_numpys() -> None:
    x = RNG.uniform(0.0, 1.0, 3_000_000).astype(np.float32)
    exact = x.astype(np.float64).sum()

    found = float(jit(lambda x: x.sum(), check="off")(jg.tensor(x)))

    assert abs(found - exact) <= max(abs(float(x.sum()) - exact), np.spacing(np.float32(exact)))


def test_column_sums_over_many_rows() -> None:
    """More rows than one block has, so that partial rows are merged."""
    x = jg.tensor(RNG.normal(size=(5000, 33)))
    f = jit(lambda x: ((x * 2.0).sum(axis=0), (x * 2.0).max(axis=0)), check="off")

    assert_same_for_any_number_of_threads(f, x)
    np.testing.assert_allclose(f(x)[0].numpy(), 2.0 * x.numpy().sum(axis=0), rtol=1e-12, atol=1e-11)


def test_a_large_step_is_the_same_for_any_number_of_threads() -> None:
    x, g, b = (jg.tensor(RNG.normal(size=s).astype(np.float32)) for s in ((600, 200), (200,), (200,)))

    def loss(x: Any, g: Any, b: Any) -> Any:
        return (jg.gelu(jg.layer_norm(x, (200,), g, b)) ** 2).mean()

    step = jit(jg.grad(loss, argnums=(0, 1, 2)), check="off")

    assert_same_for_any_number_of_threads(step, x, g, b)


def cuts(function: Any, *args: Any) -> list[tuple[int, int]]:
    """(iterations, iterations of a block) of each kernel of the compiled ``function``."""
    function(*args)
    steps = function.lookup(*args).program.plan.steps
    return [(step.lowered.schedule.iterations, step.lowered.schedule.block_size) for step in steps]


def test_small_work_is_shared_if_it_is_costly() -> None:
    """A cell of a recurrent network has 2,048 elements and takes ten microseconds: two threads take half of it each."""
    x = jg.ones((32, 64))

    assert cuts(jit(lambda x: jg.tanh(jg.sigmoid(x) * jg.exp(x)) * jg.tanh(x) + jg.sigmoid(-x), check="off"), x) == [
        (2048, MIN_BLOCK)
    ]
    assert cuts(jit(lambda x: x * 2.0 + 1.0, check="off"), x) == [(2048, MAX_BLOCK)]


def test_large_work_is_cut_into_large_chunks() -> None:
    x = jg.ones(1 << 18)

    assert cuts(jit(lambda x: jg.tanh(jg.sigmoid(x) * jg.exp(x)), check="off"), x) == [(1 << 18, MAX_BLOCK)]


def test_chunks_of_short_rows_fill_the_lanes() -> None:
    """Rows that become vector lanes come 64 at a time."""
    x = jg.ones((4096, 4))
    ((iterations, block_size),) = cuts(jit(lambda x: jg.softmax(jg.tanh(jg.exp(x)), -1), check="off"), x)

    assert iterations == 4096 and block_size % 64 == 0
