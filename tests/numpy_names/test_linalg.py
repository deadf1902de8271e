"""jitgrad.numpy.linalg: NumPy's values, gradients of first and second order, batches, compiled calls, errors."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import AutogradError, DtypeError, ShapeError
from jitgrad.testing import check_grads

rng = numpy.random.default_rng(1)
BASIS = numpy.linalg.qr(rng.normal(size=(2, 4, 4)))[0]
SYMMETRIC = BASIS * numpy.array([3.0, 1.7, 0.9, 0.4]) @ BASIS.transpose(0, 2, 1)
SYMMETRIC = (SYMMETRIC + SYMMETRIC.transpose(0, 2, 1)) / 2
SQUARE = SYMMETRIC @ BASIS[::-1]
TALL, WIDE = SQUARE[..., :3], SQUARE[:, :3]
RIGHT, VECTOR = rng.normal(size=(4, 2)), rng.normal(size=4)

# name, function, array: functions whose results are determined but for signs, which the function takes away
CASES: list[tuple[str, Any, Any]] = [
    ("inv", lambda np, x: np.linalg.inv(x), SQUARE),
    ("solve", lambda np, x: np.linalg.solve(x, RIGHT), SQUARE),
    ("solve_vector", lambda np, x: np.linalg.solve(x, VECTOR), SQUARE),
    ("solve_right", lambda np, x: np.linalg.solve(SQUARE, x), RIGHT),
    ("det", lambda np, x: np.linalg.det(x), SQUARE),
    ("slogdet", lambda np, x: np.linalg.slogdet(x)[1], SQUARE),
    ("cholesky", lambda np, x: np.linalg.cholesky((x + np.swapaxes(x, 1, 2)) / 2), SYMMETRIC),
    ("cholesky_upper", lambda np, x: np.linalg.cholesky((x + np.swapaxes(x, 1, 2)) / 2, upper=True), SYMMETRIC),
    ("eigvalsh", lambda np, x: np.linalg.eigvalsh(x @ np.swapaxes(x, 1, 2)), SQUARE),
    ("eigh", lambda np, x: np.linalg.eigh(x @ np.swapaxes(x, 1, 2))[1] ** 2, SQUARE),
    ("eigh_upper", lambda np, x: np.linalg.eigh(x @ np.swapaxes(x, 1, 2), "U")[1] ** 2, SQUARE),
    ("svd_tall", lambda np, x: np.linalg.svd(x, full_matrices=False)[0] ** 2, TALL),
    ("svd_wide", lambda np, x: np.linalg.svd(x, full_matrices=False)[2] ** 2, WIDE),
    ("svd_square", lambda np, x: np.linalg.svd(x)[0] ** 2, SQUARE),
    ("svdvals", lambda np, x: np.linalg.svd(x, compute_uv=False), TALL),
    ("qr_square", lambda np, x: np.linalg.qr(x)[0] ** 2, SQUARE),
    ("qr_tall", lambda np, x: np.linalg.qr(x)[1] ** 2, TALL),
    ("qr_wide", lambda np, x: np.linalg.qr(x)[1] ** 2, WIDE),
    ("pinv", lambda np, x: np.linalg.pinv(x), TALL),
    ("pinv_wide", lambda np, x: np.linalg.pinv(x), WIDE),
    ("lstsq", lambda np, x: np.linalg.lstsq(x, RIGHT)[0], TALL[0]),
    ("lstsq_rest", lambda np, x: np.linalg.lstsq(x, VECTOR)[1], TALL[0]),
    ("matrix_power", lambda np, x: np.linalg.matrix_power(x, 5), SQUARE),
    ("matrix_power_negative", lambda np, x: np.linalg.matrix_power(x, -2), SQUARE),
    ("matrix_power_zero", lambda np, x: np.linalg.matrix_power(x, 0) + 0 * x, SQUARE),
    ("multi_dot", lambda np, x: np.linalg.multi_dot([VECTOR, x, SQUARE[1], RIGHT]), SQUARE[0]),
    ("norm", lambda np, x: np.linalg.norm(x), SQUARE),
    *(
        (f"norm_{o}", lambda np, x, o=o: np.linalg.norm(x, o, axis=(1, 2)), SQUARE)
        for o in ("fro", "nuc", 1, -1, 2, -2, numpy.inf)
    ),
    ("norm_vectors", lambda np, x: np.linalg.norm(x, 3, axis=1, keepdims=True), SQUARE),
    ("norm_matrix", lambda np, x: np.linalg.norm(x, 1, axis=(2, 0), keepdims=True), SQUARE),
    ("matrix_norm", lambda np, x: np.linalg.matrix_norm(x, keepdims=True), SQUARE),
    ("vector_norm", lambda np, x: np.linalg.vector_norm(x, axis=(0, 2)), SQUARE),
    ("cond", lambda np, x: np.linalg.cond(x), SQUARE),
    ("cond_1", lambda np, x: np.linalg.cond(x, 1), SQUARE),
]
PARAMETERS = [pytest.param(f, x, id=name) for name, f, x in CASES]


@pytest.mark.parametrize(("f", "x"), PARAMETERS)
def test_values_are_numpys(f, x):
    expected = f(numpy, x)

    for found in (f(np, x), f(np, jg.asarray(x)), f(numpy, jg.asarray(x))):
        assert isinstance(found, jg.Tensor)
        numpy.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-12)
    single = f(np, jg.asarray(x.astype(numpy.float32)) * numpy.float32(1))
    assert single.shape == expected.shape


@pytest.mark.parametrize(("f", "x"), PARAMETERS)
def test_gradients(f, x):
    check_grads(lambda x: f(np, x), [x], order=2)


@pytest.mark.parametrize(("f", "x"), PARAMETERS)
def test_compiled_between_kernels(f, x, monkeypatch):
    monkeypatch.setenv("JITGRAD_BACKEND", "python")

    def loss(x):
        return np.sum(np.sin(f(np, x * 1.01)) ** 2)

    compiled = jg.jit(jg.value_and_grad(loss))(jg.asarray(x))
    eager = jg.value_and_grad(loss)(jg.asarray(x))
    for a, b in zip(compiled, eager, strict=True):
        numpy.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-10)


def test_the_other_results_are_numpys():
    assert np.linalg.slogdet(SQUARE).sign.tolist() == numpy.linalg.slogdet(SQUARE).sign.tolist()
    assert np.linalg.matrix_rank(TALL @ WIDE).tolist() == numpy.linalg.matrix_rank(TALL @ WIDE).tolist()
    full, expected = np.linalg.svd(TALL), numpy.linalg.svd(TALL)
    assert [a.shape for a in full] == [a.shape for a in expected]
    found = np.linalg.lstsq(TALL[0], RIGHT)
    for a, b in zip(found, numpy.linalg.lstsq(TALL[0], RIGHT), strict=True):
        numpy.testing.assert_allclose(a.numpy(), b, rtol=1e-11)
        assert a.dtype == numpy.asarray(b).dtype
    assert np.linalg.inv([[2, 0], [0, 4]]).tolist() == [[0.5, 0.0], [0.0, 0.25]]


def test_a_symmetric_matrix_gets_a_symmetric_gradient_and_one_triangle_is_read():
    x = SYMMETRIC[0]
    for f in (lambda x: np.linalg.cholesky(x).sum(), lambda x: np.linalg.eigvalsh(x)[0], lambda x: np.linalg.eigvalsh(x, "U")[0]):
        g = jg.grad(f)(jg.asarray(x)).numpy()
        numpy.testing.assert_allclose(g, g.T, rtol=1e-10, atol=1e-12)
    numpy.testing.assert_allclose(np.linalg.cholesky(numpy.tril(x)).numpy(), numpy.linalg.cholesky(x), rtol=1e-14, atol=1e-15)
    upper = np.linalg.cholesky(numpy.triu(x), upper=True).numpy()
    numpy.testing.assert_allclose(upper, numpy.linalg.cholesky(x).T, rtol=1e-14, atol=1e-15)


def test_a_sum_of_products_and_of_one_result_of_several_compiles():
    def f(x, y, z):
        return np.linalg.eigh(x)[1] ** 2 @ y + np.linalg.qr(x)[0] + x @ y + y @ z

    xs = [jg.asarray(a) for a in (SYMMETRIC[0], SQUARE[0], SQUARE[1])]
    numpy.testing.assert_allclose(jg.jit(f)(*xs).numpy(), f(*xs).numpy(), rtol=1e-12, atol=1e-14)


def test_equal_eigenvalues_have_gradients():
    g = jg.grad(lambda x: np.sum(np.linalg.eigvalsh(x) * np.array([1.0, 1.0, 1.0])))(jg.asarray(numpy.eye(3)))

    assert g.tolist() == numpy.eye(3).tolist()


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: np.linalg.inv(x), r"inv of float64\[2, 2\]: Singular matrix"),
        (lambda x: np.linalg.solve(x, [1.0, 2.0]), r"solve of float64\[2, 2\] and float64\[2, 1\]: Singular matrix"),
        (lambda x: np.linalg.cholesky(x - 3), r"cholesky of float64\[2, 2\]: Matrix is not positive definite"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "jit"])
def test_singular_matrices_are_errors_that_name_op_and_shape(f: Any, words: str, wrap: Any) -> None:
    with pytest.raises(numpy.linalg.LinAlgError, match=words):
        wrap(f)(jg.asarray(numpy.ones((2, 2))))


def test_what_is_refused_says_what_to_do():
    with pytest.raises(ShapeError, match="square"):
        np.linalg.inv(TALL)
    with pytest.raises(DtypeError, match="float32, float64"):
        np.linalg.inv(SQUARE.astype(numpy.float16))
    with pytest.raises(AutogradError, match="full_matrices=False"):
        jg.grad(lambda x: np.linalg.svd(x)[0].sum())(jg.asarray(TALL))
    with pytest.raises(AttributeError, match=r"jitgrad\.numpy\.linalg has no 'expm'"):
        np.linalg.expm
    with pytest.raises(ValueError, match="'fro', 'nuc'"):
        np.linalg.norm(SQUARE, 3, (0, 1))
