"""A kernel writes over its input only where no other block reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit
from tests.machine_code import AVX2, needs_x86, program_assembly


@pytest.mark.numba
def test_a_count_beside_many_elements_goes_up_by_one():
    """The count is one number that every block of the elements reads: written in place, it went up once per block."""
    count, x = jg.tensor(0.0), jg.zeros(100_000)

    @jit(check="off")
    def step():
        count.__iadd__(1.0)
        x.__iadd__(count)

    for _ in range(4):
        step()

    assert count.item() == 4.0
    np.testing.assert_array_equal(x.numpy(), np.full(100_000, 1.0 + 2.0 + 3.0 + 4.0, np.float32))


def test_what_lies_under_a_result_is_read_before_the_result_is_stored():
    """``a`` becomes ``2 b`` in a kernel that needs the old ``a`` after it has computed that."""
    a, b, c = (jg.tensor(np.full(100, value, np.float32)) for value in (1.0, 10.0, 100.0))

    @jit(check="off")
    def step():
        new = 2.0 * b
        c.__iadd__(a * b)
        a[:] = new

    step()

    assert len(step.kernels()) == 1
    assert a.tolist() == [20.0] * 100
    assert c.tolist() == [110.0] * 100


@pytest.mark.parametrize("backend", ["python", "cpu"])
def test_a_row_that_a_later_sweep_reads_again_is_not_written_over(backend: str) -> None:
    """``x`` becomes ``2 x`` in a kernel that reads the old ``x`` again once it knows the row's sum."""
    start = (np.arange(12_000) % 7).astype(np.float32).reshape(40, 300)
    x, y = jg.tensor(start), jg.zeros((40, 300))

    @jit(check="off", backend=backend)
    def step() -> None:
        new = x * 2.0
        y[:] = x - new.sum(axis=1, keepdims=True)
        x[:] = new

    step()

    assert len(step.kernels()) == 1
    np.testing.assert_array_equal(x.numpy(), 2 * start)
    np.testing.assert_array_equal(y.numpy(), start - 2 * start.sum(axis=1, keepdims=True))


@needs_x86
@pytest.mark.numba
@pytest.mark.parametrize("name", ["relu", "where, old", "where, new", "column maximum", "column minimum"])
def test_what_memory_holds_is_never_chosen_by_a_masked_store(name: str) -> None:
    """On AMD's CPUs such a store takes as long as eight vectors of arithmetic: a maximum over columns took 8 times NumPy's."""
    x, y = jg.ones((40, 100)), jg.zeros((40, 100))

    def over_old(f: Any) -> Any:
        def step() -> None:
            y[:] = f(y)

        return step

    function = {
        "relu": over_old(jg.relu),
        "where, old": over_old(lambda y: jg.where(x > 0.5, y, x)),
        "where, new": over_old(lambda y: jg.where(x > 0.5, x, y)),
        "column maximum": lambda: x.max(axis=0),
        "column minimum": lambda: x.min(axis=0),
    }[name]

    assembly = program_assembly(AVX2, jit(function, check="off"))
    assert "ymm" in assembly and "vmaskmov" not in assembly
