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
