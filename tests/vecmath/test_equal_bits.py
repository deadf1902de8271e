"""Functions whose definitions cancel by themselves: machine code and NumPy give the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.vecmath.test_functions import compiled, interpreted

EQUAL_BITS = {  # where each cancels by itself
    "gammaln": [np.concatenate([np.linspace(-30, 0, 5000), -2.4570247382208 + np.linspace(-1e-3, 1e-3, 500)])],
    "digamma": [np.concatenate([np.linspace(-30, 0, 5000), -0.504083008264455 + np.linspace(-1e-4, 1e-4, 500)])],
    "gammainc": [np.repeat(np.geomspace(0.01, 3000, 80), 60), np.tile(np.geomspace(0.01, 3000, 60), 80)],
    "gammaincc": [np.repeat(np.geomspace(0.01, 3000, 80), 60), np.tile(np.geomspace(0.01, 3000, 60), 80)],
    **{name: [np.geomspace(1e-3, 700.0, 4000)] for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "exp1", "expi")},
}


@pytest.mark.parametrize("name", EQUAL_BITS)
def test_functions_that_cancel_have_the_same_bits_compiled_and_in_numpy(name):
    """Else the first call of a compiled function would report a mismatch that nothing explains."""
    assert np.array_equal(compiled(name, *EQUAL_BITS[name]), interpreted(name, *EQUAL_BITS[name]), equal_nan=True)
