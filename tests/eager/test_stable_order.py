"""The quick ways to the order of elements have the one result that a stable sort has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgrad.eager import stable_order
from jitgrad.eager.stable_order import distinct_elements, stable_argsort

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64"]
RANDOM = np.random.default_rng(0)


def array(dtype: str, shape: tuple[int, ...], many: bool) -> Any:
    """Numbers with equals among them, the limits of ints; of floats NaN of both signs, zeros of both and infinities."""
    kind = np.dtype(dtype).kind
    if kind in "biu":
        x = RANDOM.integers(0, 2 if kind == "b" else 100, shape).astype(dtype)
        if many and kind != "b":
            info = np.iinfo(dtype)
            x = RANDOM.integers(info.min, info.max, shape, dtype, endpoint=True)
            x.flat[:4] = info.min, info.max, info.min, info.max
        return x
    x = RANDOM.standard_normal(shape).astype(dtype) if many else RANDOM.integers(-50, 50, shape).astype(dtype)
    odd = RANDOM.choice(x.size, 24, replace=False)
    x.flat[odd] = np.tile([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], 4)
    return x


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_are_those_of_a_stable_sort(dtype: str, many: bool) -> None:
    for x in (array(dtype, (3000,), many), array(dtype, (3000,), many)[::-1], array(dtype, (6000,), many)[::2]):
        np.testing.assert_array_equal(stable_argsort(x, 0), np.argsort(x, kind="stable"))
    x = array(dtype, (2, 1500, 2), many)
    np.testing.assert_array_equal(stable_argsort(x, 1), np.argsort(x, 1, kind="stable"))


def test_short_and_empty_lines() -> None:
    for shape in ((0,), (1,), (7,), (2000, 0), (0, 2000)):
        x = np.zeros(shape, np.float32)
        np.testing.assert_array_equal(stable_argsort(x, len(shape) - 1), np.argsort(x, -1, kind="stable"))


def test_what_does_not_fit_beside_a_position_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    corrected: list[Any] = []
    right = stable_order._corrected
    monkeypatch.setattr(stable_order, "_corrected", lambda lines, bits: corrected.append(lines.dtype) or right(lines, bits))
    for dtype in ("int32", "float32"):
        stable_argsort(array(dtype, (3000,), True), 0)
    stable_argsort(array("int64", (3000,), False), 0)
    assert not corrected
    wide = np.array([-(2**63), 2**63 - 1] * 1000)
    for x in (wide, array("float64", (3000,), True)):
        np.testing.assert_array_equal(stable_argsort(x, 0), np.argsort(x, kind="stable"))
    assert corrected == [np.int64, np.float64]


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (9,), (3, 1000), (0, 3)])
@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_distinct_elements_are_numpys(dtype: str, shape: tuple[int, ...], equal_nan: bool) -> None:
    x = array(dtype, shape, False) if np.prod(shape) > 100 else np.resize(np.array([3, 1, 1, 0, 3], dtype), shape)
    expected = np.unique(x, True, True, True, equal_nan=equal_nan)[1:]
    for ours, numpys in zip(distinct_elements(x, equal_nan), expected, strict=True):
        assert ours.dtype == np.int64
        np.testing.assert_array_equal(ours, numpys)
        assert ours.shape == numpys.shape
