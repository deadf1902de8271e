"""Products of integers and bools are kernels on the CUDA device, with NumPy's numbers, also where they wrap around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.testing.fake_driver import FakeDriver

R = np.random.default_rng(0)
SHAPES = [
    ((6, 5), (5, 7)), ((5,), (5, 7)), ((6, 5), (5,)), ((5,), (5,)), ((1, 5), (5, 1)), ((6, 1), (1, 7)), ((3, 6, 5), (5, 7)),
    ((6, 5), (3, 5, 7)), ((2, 1, 6, 5), (3, 5, 2)), ((3, 6, 5), (5,)), ((5,), (3, 5, 2)), ((40, 33), (33, 70)),
]  # fmt: skip


def integers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return R.integers(0, 2 if dtype == "?" else 120, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "i8", "u1", "u8"])
def test_products_are_numpys(dtype: str, driver: FakeDriver) -> None:
    f = jg.jit(lambda x, y: x @ y)
    for left, right in SHAPES:
        x, y = integers(left, dtype), integers(right, dtype)
        given = jg.tensor(x, device="cuda"), jg.tensor(y, device="cuda")

        assert all(step.by != "the host" for step in f.explain(*given).steps)
        for found in (given[0] @ given[1], f(*given)):
            assert found.dtype == dtype and found.device == "cuda"
            np.testing.assert_array_equal(found.cpu().numpy(), x @ y)


def test_views_and_other_dtypes(driver: FakeDriver) -> None:
    x, y = integers((8, 6), "i4"), integers((8, 6), "i8")
    a, b = jg.tensor(x, device="cuda"), jg.tensor(y, device="cuda")

    np.testing.assert_array_equal((a[::-1] @ b.T[:, ::2]).cpu().numpy(), x[::-1] @ y.T[:, ::2])
    np.testing.assert_array_equal(jg.einsum("ij,kj->ik", a, b).cpu().numpy(), x @ y.T)


def test_a_product_is_one_kernel_with_the_ops_behind_it(driver: FakeDriver) -> None:
    x = jg.tensor(integers((40, 33), "i4"), device="cuda")
    found = jg.jit(lambda x: x @ x.T % 7 + 1).explain(x)
    assert found.launches == 1 and found.bytes_written == 40 * 40 * 4


def test_the_host_leaves_them_to_numpy() -> None:
    x = jg.tensor(integers((40, 33), "i4"))
    assert jg.jit(lambda x: x @ x.T, backend="python").explain(x).unfused_ops == ["matmul"]
