"""lax.gather and scatter with dimension numbers, and jax.ops: what JAX gives, by NumPy; windows out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import jax
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.jax import lax
from jitgrad.testing import check_grads

A = np.arange(12.0).reshape(4, 3) + 0.5
STARTS = np.array([[1], [3], [2], [-1]])
WINDOWS = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,))
ROWS = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
IDS = np.array([1, 0, 1, 5])


def test_gather_fills_windows_that_are_not_inside() -> None:
    def f(x: Any) -> Any:
        return lax.gather(x, STARTS, WINDOWS, (2, 3), fill_value=-1.0)

    expected = np.full((4, 2, 3), -1.0)
    expected[0], expected[2] = A[1:3], A[2:4]
    for run in (f, jg.jit(f, backend="python")):
        np.testing.assert_array_equal(run(jg.tensor(A)).numpy(), expected)
    check_grads(f, [A])


def test_gather_moves_windows() -> None:
    found = lax.gather(jg.tensor(A), STARTS, WINDOWS, (2, 3), mode=lax.GatherScatterMode.CLIP)

    np.testing.assert_array_equal(found.numpy(), [A[1:3], A[2:4], A[2:4], A[0:2]])


@pytest.mark.parametrize(
    ("scatter", "ufunc"), [(lax.scatter_add, np.add), (lax.scatter_mul, np.multiply), (lax.scatter_max, np.maximum)]
)
def test_scatter_drops_windows_that_are_not_inside(scatter: Any, ufunc: Any) -> None:
    updates = np.arange(12.0).reshape(4, 3) * 3 - 7
    expected = A.copy()
    ufunc.at(expected, [1, 3, 2], updates[:3])

    for run in (scatter, jg.jit(lambda x, i, v, n: scatter(x, i, v, n), backend="python", static_argnums=3)):
        np.testing.assert_array_equal(run(jg.tensor(A), STARTS, updates, ROWS).numpy(), expected)


def test_batching_dimensions_are_refused() -> None:
    numbers = lax.GatherDimensionNumbers((1,), (), (0,), (0,), (0,))

    with pytest.raises(ArgumentError, match="no batching dimensions"):
        lax.gather(jg.tensor(A), STARTS, numbers, (1, 3))


def test_segments() -> None:
    x = jg.tensor(A)

    np.testing.assert_array_equal(jax.ops.segment_sum(x, IDS, 3).numpy(), [A[1], A[0] + A[2], np.zeros(3)])
    np.testing.assert_array_equal(jax.ops.segment_prod(x, IDS, 3).numpy(), [A[1], A[0] * A[2], np.ones(3)])
    np.testing.assert_array_equal(jax.ops.segment_max(x, IDS, 3).numpy(), [A[1], A[2], np.full(3, -np.inf)])
    np.testing.assert_array_equal(jax.ops.segment_min(jg.arange(4), IDS, 3).tolist(), [1, 0, np.iinfo(np.int64).max])
    np.testing.assert_array_equal(jax.ops.segment_sum(jg.arange(4), np.array([-1, 0, 2, 2])).tolist(), [1, 0, 5])
    check_grads(lambda x: jax.ops.segment_sum(x, IDS, 3) ** 2 + jax.ops.segment_prod(x, IDS, 3), [A], order=2)
    with pytest.raises(ShapeError, match="one segment for each row"):
        jax.ops.segment_sum(x, np.zeros(3, int))


def test_argmin_of_all_elements_in_two_vmaps() -> None:
    def nearest(x: Any, y: Any) -> Any:
        return jax.numpy.argmin(jax.numpy.abs(jg.tensor([[0.0, 1.0], [2.0, 3.0]]) - x * y))

    found = jax.vmap(jax.vmap(nearest, (None, 0)), (0, None))(jg.arange(3.0), jg.arange(2.0))
    assert found.tolist() == [[0, 0], [0, 1], [0, 2]]


def test_bincount_of_a_length() -> None:
    assert jax.numpy.bincount(jg.tensor([1, 7, -2, 1]), length=3).tolist() == [1, 2, 0]
