"""SciPy's modules under jitgrad.scipy: those with gradients, and SciPy's own."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.scipy import linalg
from jitgrad.testing import check_grads

A = np.array([[3.0, 0.5, 0.1], [0.5, 2.0, -0.3], [0.1, -0.3, 1.5]])
B = np.array([1.0, -2.0, 0.5])
CALLS: dict[str, Any] = {
    "cholesky": lambda la, a, b: la.cholesky(a),
    "lower cholesky": lambda la, a, b: la.cholesky(a, lower=True),
    "cho_solve": lambda la, a, b: la.cho_solve(la.cho_factor(a), b),
    "cho_solve of a matrix": lambda la, a, b: la.cho_solve(la.cho_factor(a, lower=True), a @ a),
    "solve_triangular": lambda la, a, b: la.solve_triangular(a, b),
    "its transpose": lambda la, a, b: la.solve_triangular(a, b, trans="T", lower=True, unit_diagonal=True),
    "solve": lambda la, a, b: la.solve(a, b),
    "positive solve": lambda la, a, b: la.solve(a, b, assume_a="pos"),
    "transposed solve": lambda la, a, b: la.solve(a + a[0], b, transposed=True),
    "expm": lambda la, a, b: la.expm(a),
    "block_diag": lambda la, a, b: la.block_diag(a, a),
}


@pytest.mark.parametrize("name", CALLS)
def test_linalg_is_scipys(name: str) -> None:
    scipy = pytest.importorskip("scipy.linalg")
    call = CALLS[name]
    expected = call(scipy, A, B)
    np.testing.assert_allclose(call(linalg, jg.tensor(A), jg.tensor(B)).numpy(), expected, rtol=1e-12, atol=1e-13)
    compiled = jg.jit(lambda a, b: call(linalg, a, b))(jg.tensor(A), jg.tensor(B))
    np.testing.assert_allclose(compiled.numpy(), expected, rtol=1e-12, atol=1e-13)
    check_grads(lambda a, b: call(linalg, a @ a.T, b), [A, B], rtol=1e-4, atol=1e-6)


def test_another_trans_is_an_error() -> None:
    with pytest.raises(jg.errors.ArgumentError, match="trans must be"):
        linalg.solve_triangular(A, B, trans="X")


def test_other_modules_are_scipys_own() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    assert importlib.import_module("jitgrad.scipy.optimize") is optimize is jg.scipy.optimize
    assert optimize.__spec__.name == "scipy.optimize"
    assert jg.scipy.linalg.toeplitz is importlib.import_module("scipy.linalg").toeplitz
    with pytest.raises(AttributeError, match="nonsense"):
        _ = jg.scipy.nonsense
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("jitgrad.scipy.nonsense")


def test_a_distribution_can_be_imported_as_a_module() -> None:
    assert importlib.import_module("jitgrad.scipy.stats.norm") is jg.scipy.stats.norm


def test_a_minimum_by_scipys_optimiser() -> None:
    pytest.importorskip("scipy.optimize")
    found = jg.scipy.optimize.minimize(jg.jit(jg.value_and_grad(lambda x: ((x - 2.0) ** 2).sum())), np.zeros(3), jac=True)
    np.testing.assert_allclose(found.x, 2.0, rtol=1e-6)
