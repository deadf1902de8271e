"""Long sums along leading axes are as exact as those along the last one."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.long_sums import PAIRED_TERMS, is_long, long_sum, sequential_terms

SHAPES = [((3000, 5), (0,)), ((40, 64, 3), (0, 1)), ((7, 1025, 2), (1,)), ((1300, 2, 9), (0, 2)), ((1, 2000, 1), (1,))]


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_every_term_is_added_once(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)

    for array in (x, x[::-1], np.asfortranarray(x), np.broadcast_to(x[:1], shape)):
        result = long_sum(array, axes)
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result, array.sum(axes))


@pytest.mark.parametrize("axis", [0, (0, 1), (0, 2)])
def test_means_of_many_rows_keep_their_digits(axis: int | tuple[int, ...]) -> None:
    """NumPy's mean of so many rows of float32 has four digits."""
    x = np.random.default_rng(0).random((4096, 64, 20), np.float32)
    expected = x.mean(axis, dtype=np.float64)

    for mean in (jg.mean, jg.jit(jg.mean)):
        result = mean(jg.asarray(x), axis).numpy()
        assert np.abs(result / expected - 1).max() < 1e-5
    assert np.abs(jg.mean(jg.asarray(x), axis).numpy() / expected - 1).max() < 1e-6


def test_gradients_of_broadcast_operands_are_summed_as_exactly() -> None:
    x = jg.asarray(np.random.default_rng(0).random((100_000, 3), np.float32))
    bias = jg.zeros(3, requires_grad=True)

    ((x + bias) * x).sum().backward()

    expected = x.numpy().sum(0, dtype=np.float64)
    np.testing.assert_allclose(bias.grad.numpy(), expected, rtol=3e-7)


def test_float16_is_summed_in_float32_and_rounded_once() -> None:
    x = np.full((5000, 2), 1.0, np.float16)

    np.testing.assert_array_equal(jg.sum(jg.asarray(x), 0).numpy(), [5000, 5000])


def test_only_long_sums_of_floats_along_leading_axes_take_the_way() -> None:
    f4, i8 = np.dtype("f4"), np.dtype("i8")

    assert is_long((5000, 2), (0,), f4)
    assert not is_long((5000, 2), (0,), i8)
    assert not is_long((5000, 2), (0, 1), f4)
    assert not is_long((2, 5000), (1,), f4)
    assert not is_long((PAIRED_TERMS, 5000), (0,), f4)
    assert sequential_terms((30, 40, 50), (0, 2)) == 30


def test_sums_with_infinities_and_nans_are_numpys() -> None:
    x = np.ones((2000, 4), np.float32)
    x[5, 0], x[7, 1], x[8, 1], x[9, 2] = np.inf, np.inf, -np.inf, np.nan

    np.testing.assert_array_equal(jg.sum(jg.asarray(x), 0).numpy(), [np.inf, np.nan, np.nan, 2000])
    assert jg.sum(jg.zeros((0, 4)), 0).tolist() == [0, 0, 0, 0]
