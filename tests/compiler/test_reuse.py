"""When a kernel writes over its input: never where several chunks read it."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit import jit


@pytest.mark.numba
def test_a_count_beside_many_elements_goes_up_by_one():
    """The count is one number that every chunk of the elements reads: written in place, it went up once per chunk."""
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
