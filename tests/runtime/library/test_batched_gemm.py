"""Products of small matrices as machine code: correct for every layout, and used where it is faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.runtime.library.batched_gemm import BLOCK_WORK, MAX_SINGLE, MAX_SIZE, MIN_MATRICES, small_products

pytestmark = pytest.mark.numba

R = np.random.default_rng(0)
SIZES = [(2, 2, 2), (3, 3, 3), (8, 8, 8), (5, 7, 12), (12, 12, 12), (16, 16, 16), (16, 3, 9), (2, 16, 13)]
LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "in order": lambda x, y: x @ y,
    "left transposed": lambda x, y: x.mT.clone().mT @ y,
    "right transposed": lambda x, y: x @ (y + 1.0).mT.reshape(-1).reshape(len(y), y.shape[2], y.shape[1]).mT,
    "parts of rows": lambda x, y: x[:, 1:, 1:] @ y[:, 1:, 1:],
    "parts of columns": lambda x, y: x.mT[:, 1:, :-1].mT @ y.mT[:, 1:, 1:].mT,
    "every other one": lambda x, y: x[::2] @ y[1::2],
    "backwards": lambda x, y: jg.flip(x, 0) @ y,
    "one on the left": lambda x, y: x[:1] @ y,
    "one on the right": lambda x, y: (x @ y[1]).mT @ x,
}


def matrices(count: int, m: int, k: int, n: int, dtype: Any) -> list[jg.Tensor]:
    return [jg.tensor(R.standard_normal((count, *shape)).astype(dtype)) for shape in ((m, k), (k, n))]


def is_used(f: Any, *args: Any) -> bool:
    steps = [s.step for s in f.lookup(*args).program.steps if getattr(s, "op", None) is not None]
    return any(small_products(step) is not None for step in steps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", SIZES)
def test_products_of_all_sizes(sizes: tuple[int, int, int], dtype: Any) -> None:
    x, y = matrices(11, *sizes, dtype)
    f = jg.jit(lambda x, y: (x @ y, x @ y[::-1].mT.clone().mT), check="off")

    assert is_used(f, x, y)
    for found, expected in zip(f(x, y), f.eager(x, y), strict=True):
        tolerance = 64 * np.finfo(dtype).eps
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    x, y = matrices(10, 6, 6, 6, np.float64)
    f = jg.jit(LAYOUTS[name], check="off")

    np.testing.assert_allclose(f(x, y).numpy(), f.eager(x, y).numpy(), rtol=1e-12, atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    count = 3 * BLOCK_WORK // 8**3 + 5
    x, y = matrices(count, 8, 8, 8, np.float32)
    f, before, found = jg.jit(lambda x, y: x @ y.mT, check="off"), jg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            jg.set_num_threads(threads)
            found.append(f(x, y).numpy().tobytes())
    finally:
        jg.set_num_threads(before)
    assert is_used(f, x, y) and found[0] == found[1] == found[2]


def test_nan_and_infinity_go_where_they_belong() -> None:
    x, y = matrices(9, 4, 5, 6, np.float32)
    x[2, 1, 3], y[4, 0, 0] = np.nan, np.inf
    f = jg.jit(lambda x, y: x @ y, check="off")

    np.testing.assert_allclose(f(x, y).numpy(), f.eager(x, y).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("count", "sizes", "dtype"),
    [
        (MIN_MATRICES - 1, (8, 8, MAX_SINGLE + 1), np.float32),
        (50, (8, MAX_SIZE + 1, 8), np.float32),
        (50, (MAX_SIZE + 1, 8, 8), np.float32),
        (50, (8, 8, MAX_SIZE + 1), np.float64),
    ],
)
def test_few_and_large_matrices_go_to_blas(count: int, sizes: tuple[int, int, int], dtype: Any) -> None:
    x, y = matrices(count, *sizes, dtype)

    assert not is_used(jg.jit(lambda x, y: x @ y), x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_products_of_the_smallest_matrices(dtype: Any) -> None:
    x, y = (z[0] for z in matrices(1, 4, 3, MAX_SINGLE, dtype))
    f = jg.jit(lambda x, y: (x @ y, y.mT @ x.mT), check="off")

    assert is_used(f, x, y) and f.explain(x, y).steps[0].by == "small matrices"
    for found, expected in zip(f(x, y), f.eager(x, y), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_a_batch_times_one_matrix_stays_one_product() -> None:
    x, y = matrices(50, 8, 8, 8, np.float32)

    assert not is_used(jg.jit(lambda x, y: x @ y[0]), x, y)


def test_gradients_of_small_products() -> None:
    x, y = matrices(20, 5, 6, 7, np.float64)
    g = jg.grad(lambda x, y: ((x @ y) ** 2).sum(), (0, 1))
    f = jg.jit(g, check="off")

    assert is_used(f, x, y)
    for found, expected in zip(f(x, y), g(x, y), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10, atol=1e-10)
