"""Products with a vector fuse with their neighbours: a linear model and its gradient read the data once."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)
X, W, C = R.standard_normal((300, 7)), R.standard_normal(7), R.standard_normal((300, 1))

A, B, LARGE = R.standard_normal((5, 6, 7)), R.standard_normal((5, 7, 1)), R.standard_normal((700, 400))

PRODUCTS = {
    "vector": (lambda x, w: x @ w, (X, W)),
    "column": (lambda x, w: x @ w, (X, W[:, None])),
    "transposed vector": (lambda x, c: x.T @ c, (X, C[:, 0])),
    "transposed column": (lambda x, c: x.T @ c, (X, C)),
    "vector on the left": (lambda w, x: w @ x.T, (W, X)),
    "vector on the left of a large matrix": (lambda c, x: c @ x, (LARGE[:, 0].copy(), LARGE)),
    "row of a large matrix": (lambda c, x: c.T @ x, (LARGE[:, :1], LARGE)),
    "two vectors": (lambda v, w: v @ w, (W, W[::-1].copy())),
    "row and column": (lambda v, w: v[None] @ w[:, None], (W, W)),
    "column and row": (lambda c, w: c @ w[None], (C, W)),
    "column and number": (lambda c, w: c @ w[:1, None], (C, W)),
    "batch of columns": (lambda a, b: a @ b, (A, B)),
    "batch of vectors": (lambda a, b: a[:, None, 0] @ b, (A, B)),
    "batch of rows with transposed matrices": (lambda a, b: b.mT @ a.mT, (A, B)),
    "matrices with one vector": (lambda a, w: a @ w, (A, W)),
    "batch of outer products": (lambda a, b: a[:, :, :1] @ b.mT, (A, B)),
    "einsum over rows": (lambda x, y: jg.einsum("ij,ij->i", x, y), (X, X[::-1].copy())),
    "einsum over columns": (lambda x, y: jg.einsum("ij,ij->j", x, y), (X, X[::-1].copy())),
    "einsum over matrices": (lambda x, y: jg.einsum("aij,aij->a", x, y), (A, A[::-1].copy())),
    "einsum of matrices and rows": (lambda x, y: jg.einsum("aij,aj->ai", x, y), (A, B[..., 0])),
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


P, Q, S = R.standard_normal((20, 30, 3)), R.standard_normal((600, 4)), R.standard_normal((600, 2))
W3, W4 = R.standard_normal((3, 4)), R.standard_normal((4, 2))
FEW_TERMS = {
    "points": (lambda x, w: x @ w, (Q, W4)),
    "points and a transposed matrix": (lambda x, w: x @ w.T, (S, W4)),
    "points in two axes": (lambda x, w: x @ w, (P, W3)),
    "points backwards": (lambda x, w: x[::-1, ::-1] @ w, (Q, W4)),
    "columns": (lambda x, y: x.T @ y, (Q, S)),
    "columns of rows": (lambda x, y: jg.permute_dims(x, (1, 0)) @ y[::-1], (Q, Q)),
    "rows in memory": (lambda x, y: x @ y, (np.ascontiguousarray(Q.T), S)),
    "einsum": (lambda x, w: jg.einsum("hwc,cd->hwd", x, w), (P, W3)),
    "float32": (lambda x, w: x.astype("float32") @ w.astype("float32"), (Q, W4)),
}


@pytest.mark.numba
@pytest.mark.parametrize("name", FEW_TERMS)
def test_products_of_points_are_kernels_and_right(name: str):
    function, arrays = FEW_TERMS[name]
    fused = jit(lambda *args: jg.tanh(function(*args)), check="off")

    tolerance = 1e-5 if name == "float32" else 1e-12
    np.testing.assert_allclose(fused(*arrays).numpy(), jg.tanh(function(*arrays)).numpy(), rtol=tolerance, atol=tolerance)
    assert fused.explain(*arrays).unfused_ops == []


@pytest.mark.numba
def test_an_affine_map_of_points_and_its_gradients_are_one_kernel():
    def loss(w, b, x, y):
        return jg.mean(jg.square(x @ w + b - y))

    step = jit(jg.value_and_grad(loss, argnums=(0, 1)), check="off")
    args = W4, W4[0], Q, S

    for found, expected in zip(step(*args)[1], jg.value_and_grad(loss, argnums=(0, 1))(*args)[1], strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    assert len(step.lookup(*args).program.steps) == 1


def test_second_derivatives_of_products_of_points():
    def loss(w):
        return jg.sum(jg.tanh(Q @ w) ** 3)

    hessian = jit(jg.hessian(loss), check="off")(W4)
    np.testing.assert_allclose(hessian.numpy(), jg.hessian(loss)(W4).numpy(), rtol=1e-9, atol=1e-9)


OTHERS = {
    "few points": (X[:200, :4], np.ones((4, 4))),
    "batch of matrices": (np.ones((5, 300, 3)), np.ones((5, 3, 3))),
    "points of five coordinates": (X[:, :5], np.ones((5, 5))),
    "two columns": (X, np.ones((7, 2))),
    "one matrix, several columns": (X, np.ones((3, 7, 1))),
    "several rows, one matrix": (np.ones((3, 1, 300)), X),
    "vector and small matrix": (np.ones(300), X),
    "row of a small matrix": (np.ones((1, 300)), X),
    "rows of as many matrices": (np.ones((5, 1, 6)), A),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_stay_products(name: str):
    assert "matmul" in jit(lambda x, y: x @ y, check="off").explain(*OTHERS[name]).unfused_ops


@pytest.mark.numba
def test_sums_over_columns_read_matrices_as_they_lie():
    step = jit(lambda x, y: jg.einsum("ij,ij->j", x, y), check="off")

    text = str(step.graph(X, X[::-1].copy(), stage="sink_transposes"))

    assert "f64[300,7] = multiply(%0, %1)" in text


@pytest.mark.numba
@pytest.mark.parametrize("name", PRODUCTS)
def test_gradients_of_products_with_vectors(name: str):
    function, arrays = PRODUCTS[name]
    gradient = jg.grad(lambda *xs: (function(*xs) ** 2).sum(), tuple(range(len(arrays))))

    for found, expected in zip(jit(gradient, check="off")(*arrays), gradient(*arrays), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


def test_products_of_integers_stay_products():
    x = np.arange(12).reshape(3, 4)

    assert "matmul" in jit(lambda x: x @ x[0], check="off").explain(x).unfused_ops
