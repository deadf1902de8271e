"""Statistics of the elements that the first-call check examines."""

from __future__ import annotations

import numpy as np
import pytest

from jitgrad.jit.suspects import _quantile


@pytest.mark.parametrize("share", [0.5, 0.75, 0.999, 1.0])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_quantiles_are_those_of_numpy(size: int, share: float) -> None:
    x = np.random.default_rng(size).exponential(size=size)

    assert _quantile(x, share) == pytest.approx(np.quantile(x, share), rel=1e-15)


def test_quantiles_of_infinities_and_nan() -> None:
    assert _quantile(np.array([1.0, np.inf, np.inf, np.inf]), 0.5) == np.inf
    assert _quantile(np.array([2.0, 1.0, 2.0, np.inf]), 0.5) == 2.0
    assert np.isnan(_quantile(np.array([1.0, np.nan, 2.0]), 0.5))
