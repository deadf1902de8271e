"""Fused comparisons of uint64 with signed integers are exact, as in NumPy: no float has all values of both."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from tests.compiled import backend  # noqa: F401 - a fixture for all tests

NAMES = "equal not_equal less less_equal greater greater_equal".split()
UNSIGNED = np.array([0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)


def check(name: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    signed = np.array([limits.min, limits.min + 1, -1, 0, 1, min(2**53, limits.max - 1), limits.max - 1, limits.max], dtype)
    x, y = np.repeat(UNSIGNED, len(signed)), np.tile(signed, len(UNSIGNED))
    fused = jg.jit(lambda x, y: (getattr(jg, name)(x, y), getattr(jg, name)(y, x)), check="off")
    exact = getattr(np, name)(x.astype(object), y.astype(object)), getattr(np, name)(y.astype(object), x.astype(object))

    for found, expected in zip(fused(jg.tensor(x), jg.tensor(y)), exact, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.astype(bool))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("name", NAMES)
def test_uint64_against_signed_integers(name: str, dtype: str) -> None:
    check(name, dtype)


@pytest.mark.numba
@pytest.mark.parametrize("name", NAMES)
def test_uint64_against_signed_integers_in_machine_code(name: str) -> None:
    check(name, "int64")
