"""Runs of positions along an axis: composed like the positions that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from jitgrad.core.axis_runs import (
    AxisRun,
    AxisRuns,
    ends,
    joined,
    positions_read,
    read_axes,
    size,
    sliced,
    stops,
    whole,
    zero_run,
)


def test_neighbouring_runs_that_go_on_are_one() -> None:
    assert joined([AxisRun(0, 1, 2), AxisRun(2, 1, 3)]) == whole(5)
    assert joined([AxisRun(3, 1, 1), AxisRun(3, 0, 2)]) == (AxisRun(3, 0, 3),)
    assert joined([AxisRun(3, 1, 1), AxisRun(2, -1, 2)]) == (AxisRun(3, -1, 3),)
    assert joined([zero_run(1), zero_run(2), AxisRun(0, 1, 0)]) == (zero_run(3),)


def runs_of(seed: int) -> AxisRuns:
    rng = np.random.default_rng(seed)
    parts = [AxisRun(int(rng.integers(5, 20)), int(rng.integers(-1, 2)), int(rng.integers(1, 6))) for _ in range(4)]
    return joined([zero_run(int(rng.integers(3))), *parts[:2], zero_run(int(rng.integers(2))), *parts[2:]])


@pytest.mark.parametrize("seed", range(40))
def test_slices_of_runs_read_slices_of_positions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = runs_of(seed)
    found = positions_read(runs)
    step, length = int(rng.choice([1, 2, 3, -1, -2])), int(rng.integers(0, 5))
    start = int(rng.integers(size(runs)))
    inside = [k for k in (start + step * i for i in range(length)) if 0 <= k < size(runs)]

    assert stops(runs)[-1] == size(runs) == len(found)
    np.testing.assert_array_equal(positions_read(sliced(runs, start, step, len(inside))), found[inside])
    assert ends(runs) == (min(found[found >= 0]), max(found))


def test_zeros_and_repeated_elements_are_read() -> None:
    x = np.arange(6.0).reshape(2, 3)
    axes = (zero_run(1), *whole(2)), (AxisRun(0, 0, 2), *whole(3), AxisRun(1, -1, 2))

    np.testing.assert_array_equal(read_axes(x, axes), [[0] * 7, [0, 0, 0, 1, 2, 1, 0], [3, 3, 3, 4, 5, 4, 3]])
