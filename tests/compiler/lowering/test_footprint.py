"""Footprints say which bytes each iteration of a kernel touches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.jit.decorator import jit

Bytes = tuple[int, int, int, bool]  # first byte, step from one iteration to the next, extent, whether written


def bytes_of(f: Callable[..., Any], *args: np.ndarray) -> list[Bytes] | None:
    (step,) = [s for s in jit(f, check="off").lookup(*args).program.plan.steps if isinstance(s, KernelStep)]
    if step.footprints is None:
        return None
    return sorted((f.low, f.step, f.extent, f.written) for f in step.footprints)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_elements_of_a_flat_loop(dtype: str) -> None:
    x = np.ones(100, dtype)

    assert bytes_of(jg.sin, x) == [(0, x.itemsize, x.itemsize, False), (0, x.itemsize, x.itemsize, True)]


def test_rows() -> None:
    x, y = np.ones((30, 50), "f4"), np.ones(50, "f4")

    found = bytes_of(lambda x, y: jg.softmax(x * y, axis=1), x, y)
    assert found == [(0, 0, 200, False), (0, 200, 200, False), (0, 200, 200, True)]


def test_rows_whose_elements_lie_apart_or_backwards() -> None:
    x = np.ones((30, 50), "f4")

    found = bytes_of(lambda x: jg.softmax(x[:, ::-2], axis=1), x)
    assert found is not None
    assert (-192, 200, 196, False) in found and (0, 100, 100, True) in found


def test_loops_over_several_axes_have_none() -> None:
    x = np.ones((3, 4, 5), "f4")

    assert bytes_of(lambda x: jg.permute_dims(x[:, :, :3], (2, 1, 0)) + x[:, :, :3], x) is None
