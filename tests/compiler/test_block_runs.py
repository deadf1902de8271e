"""Kernels over the same elements run block by block: which do, what that saves, and correct results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import BlockRun, KernelStep, Plan
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.testing import random_program
from tests.compiler.test_random_programs import check_values_and_gradients

RNG = np.random.default_rng(0)
EVERYTHING = {"max_kernel_nodes": 3, "enough_blocks": 2, "min_local_bytes": 0, "min_block_elements": 1, "block_bytes": 4096}


@pytest.fixture
def small(tune: Callable[..., None]) -> None:
    """Kernels of three ops and blocks of a few elements."""
    tune(**EVERYTHING)


def plan_of(function: JitFunction, *args: Any) -> Plan:
    return function.lookup(*args).program.plan


def only_run(function: JitFunction, *args: Any) -> BlockRun:
    (run,) = plan_of(function, *args).block_runs
    return run


def chain(x: Any, count: int = 12) -> Any:
    for k in range(count):
        x = x * 0.9 + jg.sin(x) * (k + 1) / 100
    return x


def test_a_long_chain_is_one_run_without_memory_for_temporaries(small: None, same: Any) -> None:
    x = jg.tensor(RNG.normal(size=1030))

    compiled = same(chain, x, rtol=1e-12)

    plan = plan_of(compiled, x)
    run = only_run(compiled, x)
    assert (run.first, run.stop, run.rows) == (0, len(plan.steps), 1030) and len(plan.steps) > 8
    assert len(run.local) >= len(plan.steps) - 1 and plan.arena_bytes == 0
    assert 1030 % run.block_rows and run.local_bytes < 4096 + 64 * len(run.local)


@pytest.mark.numba
def test_memory_does_not_grow_with_the_array(tune: Callable[..., None]) -> None:
    tune(max_kernel_nodes=20)
    f = jit(lambda x: chain(x, 40), check="off")
    sizes = []
    for n in (1 << 18, 1 << 20):
        x = jg.tensor(np.ones(n))
        f(x)
        sizes.append((plan_of(f, x).arena_bytes, only_run(f, x).local_bytes))

    assert sizes[0][0] == sizes[1][0] == 0 and sizes[0][1] == sizes[1][1]


def test_small_programs_run_kernel_by_kernel(tune: Callable[..., None]) -> None:
    tune(max_kernel_nodes=20)
    f, x = jit(lambda x: chain(x, 40), check="off"), jg.tensor(np.ones(1000))
    f(x)

    assert plan_of(f, x).block_runs == ()


def test_sums_over_everything_accumulate_over_blocks(small: None, same: Any) -> None:
    """The gradient does not read the loss, so it is part of the run that computes it."""
    x = jg.tensor(RNG.normal(size=200))

    compiled = same(jg.value_and_grad(lambda x: (chain(x) ** 2).mean()), x, rtol=1e-12)

    run = only_run(compiled, x)
    steps = plan_of(compiled, x).steps[run.first : run.stop]
    assert any(isinstance(s, KernelStep) and s.lowered.kernel.epilogue is not None for s in steps)
    for step in steps:
        assert isinstance(step, KernelStep)
        schedule = step.lowered.schedule
        assert step.lowered.is_independent or schedule.block_size == schedule.iterations // run.rows * run.block_rows


def test_what_reads_a_sum_of_everything_runs_after_all_blocks(small: None, same: Any) -> None:
    def f(x: Any) -> Any:
        y = chain(x, 6)
        return chain(y / y.sum(), 6)

    x = jg.tensor(RNG.normal(size=90) + 3)
    compiled = same(f, x, rtol=1e-12)

    assert len(plan_of(compiled, x).block_runs) == 2


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_elements_go_together(axis: int, small: None, same: Any) -> None:
    def f(x: Any) -> Any:
        return chain(jg.softmax(chain(x, 4), axis=1), 4) * jg.softmax(x, axis=axis)

    x = jg.tensor(RNG.normal(size=(37, 20)))
    compiled = same(f, x, rtol=1e-12, atol=1e-12)

    assert plan_of(compiled, x).block_runs


def test_bias_gradients(small: None, same: Any) -> None:
    def loss(x: Any, b: Any) -> Any:
        return (chain(x + b, 5) * jg.tanh(b)).sum()

    x, b = jg.tensor(RNG.normal(size=(40, 6))), jg.tensor(RNG.normal(size=6))
    same(jg.value_and_grad(loss, argnums=(0, 1)), x, b, rtol=1e-11, atol=1e-11)


def test_an_epilogue_reads_all_of_what_the_run_computes(small: None, same: Any) -> None:
    """Columns and rows are as many, so that an element of the factor is a row of the run."""

    def f(x: Any, b: Any) -> Any:
        return (x * x).sum(0) * chain(b, 4)

    x, b = jg.tensor(RNG.normal(size=(40, 40))), jg.tensor(RNG.normal(size=40))
    same(f, x, b, rtol=1e-11, atol=1e-11)


def columns_of_water(u: Any) -> Any:
    """Steps of diffusion within each row, whose ends stay as they are."""
    for _ in range(4):
        flux = 0.5 * (u[:, 1:] + u[:, :-1]) * (u[:, 1:] - u[:, :-1])
        u = jg.concat([u[:, :1], u[:, 1:-1] + 0.1 * (flux[:, 1:] - flux[:, :-1]), u[:, -1:]], 1)
        u = jg.where(u > 0.1, u, 0.1)
    return (u * u).sum()


def test_reads_at_other_positions_of_a_row_stay_in_its_block(tune: Callable[..., None], same: Any) -> None:
    """The gradient of a row reads the row at offsets, and no other row: only the gradient itself is written."""
    tune(**{**EVERYTHING, "max_kernel_nodes": 160, "min_offset_row": 1, "block_bytes": 1 << 16})
    x = jg.tensor(RNG.uniform(0, 1, (48, 30)))

    compiled = same(jg.value_and_grad(columns_of_water), x, rtol=1e-11, atol=1e-12)

    run, plan = only_run(compiled, x), plan_of(compiled, x)
    assert "offset_read" in str(compiled.graph(x, stage="fuse")) and (run.first, run.stop, run.rows) == (0, len(plan.steps), 48)
    assert compiled.explain(x).bytes_written == x.nbytes + 8


def test_a_linear_model_reads_its_data_once(tune: Callable[..., None], same: Any) -> None:
    """The gradient sums over rows: each block has a row of partial sums, far fewer bytes than its part of the data."""
    limits = {"min_local_bytes": 0, "min_block_elements": 1, "max_column_blocks": 3, "block_bytes": 1 << 13}
    tune(**limits, row_bytes_per_function=1 << 20, min_functions_of_rows=1)

    def gradient(x: Any, y: Any, w: Any) -> Any:
        return x.T @ (y - 1 / (1 + jg.exp(-(x @ w))))

    x, y, w = (jg.tensor(RNG.normal(size=shape)) for shape in ((800, 20), (800,), (20,)))
    compiled = same(gradient, x, y, w, rtol=1e-11, atol=1e-12)

    run, plan = only_run(compiled, x, y, w), plan_of(compiled, x, y, w)
    assert (run.first, run.stop, run.rows) == (0, len(plan.steps), 800) and len(plan.steps) > 1
    assert run.rows // run.block_rows > 3
    assert compiled.explain(x, y, w).bytes_read < 1.2 * x.nbytes


def test_updates_in_place(small: None) -> None:
    def step(p: Any, m: Any, g: Any) -> Any:
        m *= 0.9
        m += 0.1 * chain(g, 3)
        p -= 0.01 * m / (1 + jg.exp(chain(g * m, 3)).clip(0, 3))
        return p

    arrays = [RNG.normal(size=75) for _ in range(3)]
    eager, fused = ([jg.tensor(a.copy()) for a in arrays] for _ in range(2))
    compiled = jit(step, check="off")
    for _ in range(3):
        expected, found = step(*eager), compiled(*fused)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    for a, b in zip(fused, eager, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    assert plan_of(compiled, *fused).block_runs


@pytest.mark.parametrize(
    "function",
    [
        lambda x: chain(x[::-1], 5),
        lambda x: chain(x, 5)[::-1] + chain(x, 5),  # an element depends on the last one
        lambda x: chain(chain(x, 5).reshape(6, 20).T, 5),
        lambda x: chain(x.reshape(6, 20), 5) + chain(x[:20], 5),
        lambda x: jg.cumulative_sum(chain(x, 5)) + chain(x, 5),
        lambda x: (chain(x, 5) > 0, jg.astype(chain(x, 5), "f4"), jg.argmax(chain(x, 5))),
    ],
    ids=["reversed", "reversed temporary", "transposed", "broadcast", "library call", "dtypes"],
)
def test_other_programs(function: Any, small: None, same: Any) -> None:
    same(function, jg.tensor(RNG.normal(size=120)), rtol=1e-12)


@pytest.mark.numba
def test_threads_share_blocks(small: None, same: Any) -> None:
    x = jg.tensor(RNG.normal(size=10_001))
    before = jg.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 5):  # more than the workspaces that the first call made room for
            jg.set_num_threads(threads)
            compiled = same(jg.value_and_grad(lambda x: (chain(x) ** 2).mean()), x, rtol=1e-11)
            results += [compiled(x)]
    finally:
        jg.set_num_threads(before)
    for value, gradient in results[1:]:
        assert float(value) == float(results[0][0])
        np.testing.assert_array_equal(gradient.numpy(), results[0][1].numpy())


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int, small: None, same: Any) -> None:
    check_values_and_gradients(random_program(seed, 14), same, np.float64, rtol=1e-9, atol=1e-9)


@pytest.mark.numba
@pytest.mark.parametrize("seed", range(60, 70))
def test_compiled_random_programs(seed: int, small: None, same: Any) -> None:
    check_values_and_gradients(random_program(seed, 14), same, np.float64, rtol=1e-9, atol=1e-9)
