"""Products with a vector fuse with their neighbours: a linear model and its gradient read the data once."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit import jit

R = np.random.default_rng(0)
X, W, C = R.standard_normal((300, 7)), R.standard_normal(7), R.standard_normal((300, 1))

PRODUCTS = {
    "vector": (lambda x, w: x @ w, (X, W)),
    "column": (lambda x, w: x @ w, (X, W[:, None])),
    "transposed vector": (lambda x, c: x.T @ c, (X, C[:, 0])),
    "transposed column": (lambda x, c: x.T @ c, (X, C)),
}


@pytest.mark.numba
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_with_a_vector_is_a_kernel_and_right(name: str):
    function, arrays = PRODUCTS[name]
    fused = jit(function, check="off")

    found = fused(*arrays).numpy()

    expected = function(*arrays)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert fused.explain(*arrays).unfused_ops == []


@pytest.mark.numba
def test_a_linear_model_and_its_gradient_are_one_kernel():
    step = jit(jg.value_and_grad(lambda w, x, y: jg.mean(jg.square(x @ w - y))), check="off")

    _, gradient = step(W, X, C[:, 0])

    np.testing.assert_allclose(gradient.numpy(), 2 / 300 * X.T @ (X @ W - C[:, 0]), rtol=1e-10)
    assert len(step.lookup(W, X, C[:, 0]).program.steps) == 1


def test_other_products_stay_products():
    for shape in ((7, 2), (3, 7, 1)):
        report = jit(lambda x, y: x @ y, check="off").explain(X, np.ones(shape))
        assert "matmul" in report.unfused_ops


def test_products_of_integers_stay_products():
    x = np.arange(12).reshape(3, 4)

    assert "matmul" in jit(lambda x: x @ x[0], check="off").explain(x).unfused_ops
