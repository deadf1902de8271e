"""Functions whose results are subnormal numbers, with which arithmetic is slow."""

from __future__ import annotations

import numpy as np
import pytest

from jitgrad.vecmath import numpy_namespace
from tests.vecmath.test_functions import DTYPES, WIDTHS


@pytest.mark.parametrize("width", WIDTHS)
def test_exp_makes_subnormal_results_without_arithmetic_on_them(width: int) -> None:
    """Intel's CPUs take 150 cycles for a vector with a subnormal number."""
    x = np.linspace(*((-105, -85) if width == 32 else (-747, -706)), 10_001, dtype=DTYPES[width])
    with np.errstate(all="raise"):
        y = numpy_namespace()["exp"](x)

    assert ((y > 0) & (y < np.finfo(DTYPES[width]).tiny)).any()
