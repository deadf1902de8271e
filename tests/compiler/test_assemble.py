"""Sums of placed parts: written where they belong, the rest zeros, once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

R = np.random.default_rng(0)


def turns(x: Any) -> Any:
    return (x[::2] ** 2).sum() + (x[1::2] ** 3).sum()


def test_parts_that_take_turns_are_written_in_place(same: Any, steps_of: Any) -> None:
    x = jg.tensor(R.standard_normal((9, 5)))

    assert steps_of(same(jg.grad(turns), x), x) == ["kernel"] * 2


@pytest.mark.parametrize("second", [slice(0, None, 3), slice(4, None, 2), slice(7, 1, -2), slice(7, 1, -3)])
def test_parts_that_may_meet_are_added(second: slice, same: Any) -> None:
    x = jg.tensor(R.standard_normal((9, 5)))

    same(jg.grad(lambda x: (x[::2] ** 2).sum() + (x[second] ** 3).sum()), x, rtol=1e-15)
    same(jg.grad(lambda x: (x[1::2] ** 2).sum() + (x[second] ** 3).sum()), x, rtol=1e-15)
