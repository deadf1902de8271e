"""Reductions of a few long rows: one kernel without partial results, with eager's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.compiler.tuning import Tuning
from jitgrad.jit.decorator import jit

MAX_ROWS, MIN_COLUMNS = Tuning().max_unrolled_rows, Tuning().min_unrolled_columns
SHAPES = [(2, MIN_COLUMNS), (MAX_ROWS, 3, MIN_COLUMNS // 2), (5, MIN_COLUMNS + 3)]


def values(shape: tuple[int, ...], dtype: str) -> Any:
    x = np.random.default_rng(0).standard_normal(shape) * 3
    if dtype in "fd":
        x[1, ..., 3] = np.nan
        x[0, ..., 4] = -np.inf
        x[..., 5] = -0.0
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["f", "d", "i", "b", "?"])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_equal_to_eager(name: str, dtype: str) -> None:
    for shape in SHAPES:
        x = jg.tensor(values(shape, dtype))
        expected = getattr(jg, name)(x, axis=0)

        found = jit(lambda x: getattr(jg, name)(x, axis=0), check="off")(x)

        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.numba
def test_compiled_with_what_follows(same: Any) -> None:
    x = jg.tensor(values((6, MIN_COLUMNS), "d"))

    same(jg.value_and_grad(lambda x: jg.tanh(jg.where(jg.isfinite(x), x, 0.0).sum(axis=0)).sum()), x, rtol=1e-9, atol=1e-12)
    same(lambda x: jg.tanh(x.mean(axis=0)), x, rtol=1e-12)


def kernels(f: Any, *args: Any) -> list[Any]:
    steps = jit(f, check="off").lookup(*args).program.plan.steps
    return [s.lowered.kernel for s in steps if isinstance(s, KernelStep)]


def test_rows_in_memory_have_no_partial_results() -> None:
    x = jg.ones((8, 9000))

    (kernel,) = kernels(lambda x: x.sum(axis=0) * 2.0, x)

    assert kernel.epilogue is None


@pytest.mark.parametrize("shape", [(MAX_ROWS + 1, MIN_COLUMNS), (4, MIN_COLUMNS - 1)])
def test_many_rows_or_short_ones_are_reduced_as_ever(shape: tuple[int, int]) -> None:
    (kernel,) = kernels(lambda x: x.sum(axis=0), jg.ones(shape))

    assert kernel.epilogue is not None


def test_what_a_kernel_computes_is_reduced_there() -> None:
    found = kernels(lambda x: (jg.tanh(x), jg.tanh(x).sum(axis=0)), jg.ones((8, 9000)))

    assert len(found) == 1
