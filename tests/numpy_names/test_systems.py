"""Systems with triangular matrices, Cholesky factors and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(2)
A = RNG.normal(size=(2, 3, 3)) + 3.0 * np.eye(3)
B = RNG.normal(size=(2, 3, 4))
ONES = np.eye(3)


def values(x: Any) -> Any:
    return x.detach().numpy()


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_solve_triangular_reads_one_triangle(upper: bool, unit: bool) -> None:
    triangle = (np.triu if upper else np.tril)(A)
    triangle = triangle - triangle * ONES + ONES if unit else triangle

    found = jg.linalg.solve_triangular(jg.tensor(A), jg.tensor(B), upper=upper, unitriangular=unit)
    right = jg.linalg.solve_triangular(jg.tensor(A), jg.tensor(B).mT, upper=upper, left=False, unitriangular=unit)

    np.testing.assert_allclose(triangle @ values(found), B, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(values(right) @ triangle, B.swapaxes(1, 2), rtol=1e-12, atol=1e-13)
    jg.gradcheck(lambda a, b: jg.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit), (jg.tensor(A), jg.tensor(B)))


@pytest.mark.parametrize("upper", [False, True])
def test_of_cholesky_factors(upper: bool) -> None:
    symmetric = A @ A.swapaxes(1, 2)
    factor = jg.linalg.cholesky(jg.tensor(symmetric), upper=upper)

    np.testing.assert_allclose(values(jg.cholesky_solve(jg.tensor(B), factor, upper)), np.linalg.solve(symmetric, B))
    np.testing.assert_allclose(values(jg.cholesky_inverse(factor, upper)), np.linalg.inv(symmetric), rtol=1e-9)


def test_logdet() -> None:
    stack = jg.tensor(np.stack([np.diag([2.0, 3.0]), np.diag([-2.0, 3.0]), np.diag([0.0, 3.0])]))

    np.testing.assert_array_equal(values(jg.logdet(stack)), [np.log(6.0), np.nan, -np.inf])


def test_of_tensors() -> None:
    a, b = RNG.normal(size=(2, 3, 6)) + np.eye(6).reshape(2, 3, 6), RNG.normal(size=(2, 3))

    np.testing.assert_allclose(values(jg.linalg.tensorsolve(jg.tensor(a), jg.tensor(b))), np.linalg.tensorsolve(a, b))
    moved = np.moveaxis(a, 2, 0)
    expected = np.linalg.tensorsolve(moved, b, axes=(0,))
    np.testing.assert_allclose(values(jg.linalg.tensorsolve(jg.tensor(moved), jg.tensor(b), axes=(0,))), expected)
    np.testing.assert_allclose(values(jg.linalg.tensorinv(jg.tensor(a))), np.linalg.tensorinv(a))
    with pytest.raises(ArgumentError, match="ind=0"):
        jg.linalg.tensorinv(jg.tensor(a), 0)
    with pytest.raises(ShapeError, match="tensorinv"):
        jg.linalg.tensorinv(jg.tensor(a), 1)
