"""Matrix products as native instructions: the number of calls of a batch, and NumPy's results."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import OpStep
from jitgrad.eager.blas import find_blas
from jitgrad.jit.decorator import jit
from jitgrad.runtime.executor.gemm import gemms_of

pytestmark = [pytest.mark.numba, pytest.mark.skipif(find_blas() is None, reason="no BLAS by address")]


def calls_of(function, *arrays: np.ndarray) -> list[int | None]:
    """The number of BLAS calls of each matrix product; the results are compared with NumPy's."""
    compiled = jit(function, check="off")
    found = compiled(*arrays)
    np.testing.assert_allclose(found.numpy(), compiled.eager(*map(jg.tensor, arrays)).numpy(), rtol=2e-5, atol=1e-5)
    steps = [s for s in compiled.lookup(*arrays).program.plan.steps if isinstance(s, OpStep)]
    calls = [gemms_of(s) for s in steps if s.op.name == "matmul"]
    return [None if c is None else len(c) for c in calls]


def rows_of(function, *arrays: np.ndarray) -> int:
    (step,) = (s for s in jit(function, check="off").lookup(*arrays).program.plan.steps if isinstance(s, OpStep))
    (call,) = gemms_of(step) or ()
    return call.sizes[0]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def test_a_plain_product_is_one_call():
    assert calls_of(lambda x, y: x @ y, normal(5, 7), normal(7, 3)) == [1]
    assert calls_of(lambda x, y: x.mT @ y.mT, normal(7, 5), normal(3, 7)) == [1]


def test_a_batch_times_one_matrix_is_one_product_of_more_rows():
    assert calls_of(lambda x, y: x @ y, normal(4, 2, 5, 7), normal(7, 3)) == [1]
    assert rows_of(lambda x, y: x @ y, normal(4, 2, 5, 7), normal(7, 3)) == 4 * 2 * 5


def test_a_batch_of_pairs_is_one_call():
    assert calls_of(lambda x, y: x @ y, normal(4, 2, 5, 7), normal(4, 2, 7, 3)) == [1]
    assert calls_of(lambda x, y: x.mT @ y, normal(4, 2, 7, 5), normal(4, 2, 7, 3)) == [1]


def test_one_matrix_times_a_batch():
    assert calls_of(lambda x, y: x @ y, normal(5, 7), normal(4, 7, 3)) == [1]
    assert calls_of(lambda x, y: x @ y, normal(4, 1, 5, 7), normal(2, 7, 3)) == [2]


def test_heads_of_attention_are_one_call_for_each_example():
    """(b, t, h, d) as (b, h, t, d): heads are parts of a row, so heads and examples are not one regular axis."""

    def scores(x, y):
        q, k = (jg.permute_dims(z, (0, 2, 1, 3)) for z in (x, y))
        return q @ k.mT

    assert calls_of(scores, normal(3, 6, 4, 5), normal(3, 6, 4, 5)) == [3]


def test_matrices_that_blas_cannot_read_are_left_to_numpy():
    assert calls_of(lambda x, y: x[::2, ::2] @ y, normal(10, 14), normal(7, 3)) == [None]
    assert calls_of(lambda x, y: x[:, ::-1] @ y, normal(5, 7), normal(7, 3)) == [None]


def test_a_slice_of_rows_or_columns_is_read_without_a_copy():
    assert calls_of(lambda x, y: x[1:4, 2:] @ y, normal(5, 9), normal(7, 3)) == [1]


def test_empty_products_are_zero():
    assert calls_of(lambda x, y: x @ y, normal(5, 0), normal(0, 3)) == []  # zeros are made of no operand
