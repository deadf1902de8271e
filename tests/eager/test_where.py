"""Selection without branches gives NumPy's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgrad.eager.where import AT_ONCE, select_by_mask

DTYPES = "?bhilBHILefd"


def arrays(dtype: str, count: int) -> list[np.ndarray[Any, Any]]:
    """Every bit pattern may occur, NaNs of any payload included."""
    rng = np.random.default_rng(count)
    if dtype == "?":
        return [rng.random(count) < 0.5 for _ in range(2)]
    size = np.dtype(dtype).itemsize
    return [rng.integers(0, 256, count * size, np.uint8).view(dtype) for _ in range(2)]


def assert_same_bits(condition: Any, yes: Any, no: Any) -> None:
    with np.errstate(invalid="ignore"):  # casts of signalling NaNs
        found, expected = select_by_mask(condition, yes, no), np.where(condition, yes, no)

    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 5000])
def test_arrays_of_one_dtype(dtype: str, count: int) -> None:
    yes, no = arrays(dtype, count)
    condition = np.random.default_rng(1).random(count) < 0.5

    assert_same_bits(condition, yes, no)
    assert_same_bits(condition[::-1], yes[::-1], no)


@pytest.mark.parametrize("dtype", "?bhlfd")
@pytest.mark.parametrize("shape", [(AT_ONCE + 1,), (3, AT_ONCE), (7, 5, AT_ONCE // 8)])
def test_large_arrays_are_selected_block_by_block(dtype: str, shape: tuple[int, ...]) -> None:
    yes, no = (x.reshape(shape) for x in arrays(dtype, int(np.prod(shape))))
    condition = np.random.default_rng(1).random(shape) < 0.5

    assert_same_bits(condition, yes, no)
    assert_same_bits(condition, yes, no.dtype.type(1))
    assert_same_bits(condition, 0, no)
    assert_same_bits(condition.T, yes.T, no.T)
    assert_same_bits(condition, yes, no[..., ::-1])
    assert_same_bits(condition[..., :1], yes, no)


@pytest.mark.parametrize("dtype", "ilfd")
@pytest.mark.parametrize("other", [0, 1.5, -0.0, np.nan, np.float64(2.0), np.array(3.0, "f"), np.arange(60, dtype="d")])
def test_numbers_broadcast_operands_and_mixed_dtypes(dtype: str, other: Any) -> None:
    yes, _ = arrays(dtype, 3600)
    yes = yes.reshape(60, 60)
    condition = np.random.default_rng(2).random((60, 60)) < 0.5

    for order in (yes, yes.T, yes[::-1, ::2].repeat(2, 1)):
        assert_same_bits(condition, order, other)
        assert_same_bits(condition, other, order)
    assert_same_bits(np.tile(condition[0], 60)[:3600].reshape(1, 60, 60), yes, other)
    assert_same_bits(condition.reshape(60, 60, 1), 1.0, np.zeros(3, "f"))


@pytest.mark.parametrize("condition", [np.arange(2000) % 3, np.arange(2000) % 2 == 0])
def test_complex_numbers_and_conditions_of_other_dtypes_are_numpys(condition: Any) -> None:
    assert_same_bits(condition, np.arange(2000) * 1j, 0)
    assert_same_bits(condition, np.arange(2000.0), 0)
