"""jitgrad.numpy.linalg of complex matrices, and eig of any: NumPy's values, gradients of two orders, compiled calls."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.testing import check_grads
from tests.determined import of_eigenvectors, of_svd, without_phase

rng = numpy.random.default_rng(3)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def with_values(values: Any) -> Any:
    """Two matrices with these singular values."""
    left, right = (numpy.linalg.qr(normal(2, 4, 4))[0] for _ in range(2))
    return left * numpy.array(values) @ right


SQUARE = with_values([3.0, 1.7, 0.9, 0.4])
TALL, WIDE = SQUARE[..., :3], SQUARE[:, :3]
RIGHT, VECTOR = normal(4, 2), normal(4)
REAL = numpy.array([[0.0, 2.0, 0.3], [-1.0, 0.5, 0.1], [0.2, 0.7, 3.0]])  # two eigenvalues are conjugate
DISTINCT = numpy.diag([1.0, 2.0j, -1.5, 0.4 - 1.0j]) + 0.2 * SQUARE


def hermitian(x: Any) -> Any:
    return x @ x.conj().mT


# name, function of numpy or jitgrad.numpy and a matrix, matrix
CASES: list[tuple[str, Any, Any]] = [
    ("slogdet", lambda np, x: np.linalg.slogdet(x)[0], SQUARE),
    ("slogdet_size", lambda np, x: np.linalg.slogdet(x)[1], SQUARE),
    ("cholesky", lambda np, x: np.linalg.cholesky(hermitian(x)), SQUARE),
    ("cholesky_upper", lambda np, x: np.linalg.cholesky(hermitian(x), upper=True), SQUARE),
    ("eigvalsh", lambda np, x: np.linalg.eigvalsh(hermitian(x)), SQUARE),
    ("eigh", lambda np, x: of_eigenvectors(*np.linalg.eigh(hermitian(x)))[1], SQUARE),
    ("eigh_upper", lambda np, x: of_eigenvectors(*np.linalg.eigh(hermitian(x), "U"))[1], SQUARE),
    ("svdvals", lambda np, x: np.linalg.svd(x, compute_uv=False), TALL),
    ("svd_left", lambda np, x: of_svd(*np.linalg.svd(x, full_matrices=False))[0], TALL),
    ("svd_right", lambda np, x: of_svd(*np.linalg.svd(x, full_matrices=False))[2], WIDE),
    ("svd_both", lambda np, x: of_svd(*np.linalg.svd(x))[3], SQUARE),
    ("svd_hermitian", lambda np, x: np.linalg.svd(hermitian(x), compute_uv=False, hermitian=True), SQUARE),
    ("qr_q", lambda np, x: np.linalg.qr(x)[0], SQUARE),
    ("qr_r", lambda np, x: np.linalg.qr(x)[1], TALL),
    ("qr_wide", lambda np, x: np.linalg.qr(x)[1], WIDE),
    ("pinv", lambda np, x: np.linalg.pinv(x), TALL),
    ("pinv_wide", lambda np, x: np.linalg.pinv(x), WIDE),
    ("pinv_hermitian", lambda np, x: np.linalg.pinv(hermitian(x), hermitian=True), SQUARE),
    ("lstsq", lambda np, x: np.linalg.lstsq(x, RIGHT)[0], TALL[0]),
    ("lstsq_right", lambda np, x: np.linalg.lstsq(TALL[0], x)[0], RIGHT),
    ("lstsq_rest", lambda np, x: np.linalg.lstsq(x, VECTOR)[1], TALL[0]),
    ("cond", lambda np, x: np.linalg.cond(x), SQUARE),
    ("norm_nuc", lambda np, x: np.linalg.norm(x, "nuc", axis=(1, 2)), SQUARE),
    ("norm_2", lambda np, x: np.linalg.norm(x, 2, axis=(1, 2)), SQUARE),
    ("eigvals", lambda np, x: np.linalg.eigvals(x), DISTINCT),
    ("eig", lambda np, x: without_phase(np.linalg.eig(x)[1]), DISTINCT),
    ("eigvals_of_real", lambda np, x: np.linalg.eigvals(x), REAL),
    ("eig_of_real", lambda np, x: without_phase(np.linalg.eig(x)[1]), REAL),
]
PARAMETERS = [pytest.param(f, x, id=name) for name, f, x in CASES]


@pytest.mark.parametrize(("f", "x"), PARAMETERS)
def test_values_and_dtypes_are_numpys(f: Any, x: Any) -> None:
    for dtype in (x.dtype, numpy.complex64 if x.dtype.kind == "c" else numpy.float32):
        given = x.astype(dtype)
        expected, found = f(numpy, given), f(np, jg.asarray(given))

        near = 1e-11 if given.itemsize >= 8 + 8 * (x.dtype.kind == "c") else 2e-4
        assert found.dtype == expected.dtype
        numpy.testing.assert_allclose(found.numpy(), expected, rtol=near, atol=near)


@pytest.mark.parametrize(("f", "x"), PARAMETERS)
def test_gradients_of_first_and_second_order(f: Any, x: Any) -> None:
    check_grads(lambda x: f(np, x), [x], order=2, rtol=1e-5)


@pytest.mark.parametrize(("f", "x"), PARAMETERS)
def test_compiled_between_kernels(f: Any, x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")

    def loss(x: Any) -> Any:
        return np.sum(np.abs(np.sin(0.3 * f(np, x * 1.01))) ** 2)

    step = jg.jit(jg.value_and_grad(loss))
    compiled, eager = step(jg.asarray(x)), jg.value_and_grad(loss)(jg.asarray(x))

    assert step.cache_info().fallbacks == 0
    for a, b in zip(compiled, eager, strict=True):
        numpy.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-10)


def test_results_make_up_the_matrix_again() -> None:
    for x in (SQUARE, TALL, WIDE, TALL[:0], normal(3, 0, 0), normal(1, 1)):
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        q, r = np.linalg.qr(x)
        for product in ((u * s[..., None, :]) @ vh, q @ r):
            numpy.testing.assert_allclose(product.numpy(), x, rtol=1e-12, atol=1e-13)
    for x in (DISTINCT, REAL, REAL.astype(numpy.float32), normal(0, 0)):
        values, vectors = np.linalg.eig(x)
        near = 1e-12 if x.dtype.itemsize > 4 else 1e-5
        assert values.dtype == vectors.dtype == numpy.result_type(x.dtype, numpy.complex64)
        numpy.testing.assert_allclose((vectors * values[..., None, :]).numpy(), x @ vectors.numpy(), rtol=near, atol=near)


def test_eig_of_a_real_matrix_is_complex_also_where_all_eigenvalues_are_real() -> None:
    values = np.linalg.eigvals([[2.0, 1.0], [0.0, 3.0]])

    assert values.dtype == numpy.complex128
    assert values.tolist() == [2, 3]


def test_the_gradient_of_a_real_matrix_is_real() -> None:
    g = jg.grad(lambda x: np.sum(np.abs(np.linalg.eigvals(x))))(jg.asarray(REAL))

    assert g.dtype == numpy.float64


def test_a_hermitian_matrix_gets_a_hermitian_gradient_and_one_triangle_is_read() -> None:
    x = hermitian(SQUARE[0])
    lower, upper = numpy.tril(x), numpy.triu(x)
    for f in (
        lambda x: np.abs(np.linalg.cholesky(x)).sum(),
        lambda x: np.linalg.eigvalsh(x)[0],
        lambda x: np.linalg.eigvalsh(x, "U")[0],
    ):
        g = jg.grad(f)(jg.asarray(x)).numpy()
        numpy.testing.assert_allclose(g, g.conj().T, rtol=1e-10, atol=1e-12)
    for read, wanted in ((lower, "L"), (upper, "U")):
        numpy.testing.assert_allclose(np.linalg.eigvalsh(read, wanted).numpy(), numpy.linalg.eigvalsh(x), rtol=1e-12)
    numpy.testing.assert_allclose(np.linalg.cholesky(upper, upper=True).numpy(), numpy.linalg.cholesky(x).conj().T, atol=1e-13)


def test_equal_eigenvalues_add_nothing_to_the_gradient() -> None:
    weights = np.array([1.0, 1.0, 1.0])
    for f in (np.linalg.eigvalsh, np.linalg.eigvals, np.linalg.svdvals):
        g = jg.grad(lambda x, f=f: np.sum(np.real(f(x)) * weights))(jg.asarray(numpy.eye(3) * (1 + 0j)))
        numpy.testing.assert_allclose(g.numpy(), numpy.eye(3), atol=1e-15)


def test_a_direction_in_the_complex_plane_has_no_gradient() -> None:
    """The phases that LAPACK chooses are no functions of the matrix."""

    def angles(x: Any) -> Any:
        vectors = np.linalg.eigh(hermitian(x))[1]
        return np.sum(np.abs(vectors * np.exp(1j * np.real(x[0, 0]))) ** 2)

    g = jg.grad(angles)(jg.asarray(SQUARE[0]))

    numpy.testing.assert_allclose(g.numpy(), 0, atol=1e-14)


def test_triangular_systems_use_adjoints() -> None:
    x = hermitian(SQUARE[0])
    factor = jg.linalg.cholesky(x)
    for triangle, upper in ((factor, False), (factor.mH, True)):
        solved = jg.cholesky_solve(jg.asarray(RIGHT), triangle, upper=upper)
        inverse = jg.cholesky_inverse(triangle, upper=upper)
        for found in (solved, inverse @ RIGHT):
            numpy.testing.assert_allclose(found.numpy(), numpy.linalg.solve(x, RIGHT), rtol=1e-10, atol=1e-12)
    numpy.testing.assert_allclose(jg.logdet(jg.asarray(SQUARE)).exp().numpy(), numpy.linalg.det(SQUARE), rtol=1e-12)


@pytest.mark.peers
def test_gradients_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    functions = {
        "eigvals": lambda lib, x: (lib.linalg.eigvals(x).abs() ** 3).sum(),
        "eigh": lambda lib, x: (lib.linalg.eigh(x @ x.mH)[1][..., 0, :].abs() ** 3).sum(),
        "svd": lambda lib, x: (lib.linalg.svd(x, full_matrices=False)[0][..., 0, :].abs() ** 3).sum(),
        "qr": lambda lib, x: (lib.linalg.qr(x)[0].real ** 3).sum() + (lib.linalg.qr(x)[1].imag ** 3).sum(),
        "pinv": lambda lib, x: (lib.linalg.pinv(x).real ** 3).sum(),
        "slogdet": lambda lib, x: (lib.linalg.slogdet(x)[0].imag ** 3).sum() + lib.linalg.slogdet(x)[1].sum(),
        "cholesky": lambda lib, x: (lib.linalg.cholesky(x @ x.mH).imag ** 3).sum(),
    }
    for name, f in functions.items():
        x = torch.tensor(SQUARE, requires_grad=True)
        f(torch, x).backward()
        g = jg.grad(lambda x, f=f: f(jg, x))(jg.asarray(SQUARE))
        numpy.testing.assert_allclose(g.numpy(), x.grad.numpy(), rtol=1e-9, atol=1e-10, err_msg=name)
