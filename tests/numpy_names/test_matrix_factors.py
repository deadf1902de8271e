"""Factors of matrices by elimination and by reflections, and functions that report singular matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError, MatrixError, ShapeError
from jitgrad.ops import lu as elimination
from jitgrad.testing import check_grads

RNG = np.random.default_rng(0)
SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (0, 0), (2, 0, 3), (3, 0)]
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
ALL = (jg.linalg.inv_ex, jg.linalg.cholesky_ex, lambda a: jg.linalg.solve_ex(a, a))


def drawn(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("lapack", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_factors_multiply_to_the_matrix(shape: Any, dtype: Any, lapack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not lapack:
        monkeypatch.setattr(elimination, "has_lapack", lambda: False)
    a = drawn(shape, dtype)
    p, lower, upper = jg.linalg.lu(jg.tensor(a))

    np.testing.assert_allclose((p @ lower @ upper).numpy(), a, atol=1e-6)
    assert (np.abs(lower.numpy()) < np.sqrt(2) + 1e-6).all() and (p.sum(-1) == 1).all()


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_gradients_of_factors(shape: Any, dtype: Any) -> None:
    weights = jg.tensor(RNG.normal(size=shape))

    def loss(a: Any) -> Any:
        packed, _ = jg.linalg.lu_factor(a)
        return ((packed * packed.conj()).real * weights).sum() if dtype == np.complex128 else (packed * weights).sum()

    a = 0.3 * drawn(shape, dtype) + 3 * np.eye(*shape[-2:])[::-1]  # far from an exchange of pivots
    check_grads(loss, [a], order=2)
    check_grads(jg.jit(loss, backend="python"), [a])


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_systems_by_factors(left: bool, adjoint: bool) -> None:
    a, b = drawn((2, 1, 4, 4), np.complex128), drawn((3, 4, 2) if left else (3, 2, 4), np.complex128)

    def solution(a: Any, b: Any) -> Any:
        return jg.linalg.lu_solve(*jg.linalg.lu_factor(a), b, left=left, adjoint=adjoint)

    matrix = np.conj(np.swapaxes(a, -1, -2)) if adjoint else a
    for f in (solution, jg.jit(solution, backend="python")):
        x = f(jg.tensor(a), jg.tensor(b)).numpy()
        np.testing.assert_allclose(matrix @ x if left else x @ matrix, np.broadcast_to(b, x.shape), atol=1e-12)
    check_grads(lambda a: solution(a, b).abs().sum(), [0.3 * a + 3 * np.eye(4)[::-1]])


@pytest.mark.parametrize("f", ALL, ids=["inv", "cholesky", "solve"])
def test_singular_matrices_are_reported_and_have_no_gradient(f: Callable[..., Any]) -> None:
    a = jg.tensor(np.stack([SINGULAR, np.eye(2)]), requires_grad=True)

    for run in (f, jg.jit(f, backend="python")):
        out, info = run(a)
        assert info.tolist() == [2, 0] and info.dtype == jg.int32
        assert out[0].isnan().all() and out[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    (g,) = jg.autograd.grad(out[1].sum(), [a])
    assert g.isfinite().all() and g[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_singular_matrices_are_errors_where_they_are_asked_for() -> None:
    both = jg.tensor(np.stack([np.eye(2), SINGULAR]))

    with pytest.raises(MatrixError, match=r"lu_factor of float64\[2, 2, 2\]: element \[1, 1\] of U of matrix \[1\] is zero"):
        jg.linalg.lu_factor(both)
    assert jg.linalg.lu_factor_ex(both).info.tolist() == [0, 2]
    for f in (jg.linalg.lu_factor_ex, jg.linalg.inv_ex, jg.linalg.cholesky_ex):
        with pytest.raises(MatrixError):
            f(both, check_errors=True)
    with pytest.raises(ArgumentError, match="pivot=False"):
        jg.linalg.lu_factor(both, pivot=False)
    with pytest.raises(ShapeError, match="factors of square matrices"):
        jg.linalg.lu_solve(jg.ones(3, 2), jg.ones(2, dtype=jg.int32), jg.ones(3, 1))


def test_the_first_minor_that_is_not_positive_definite() -> None:
    matrices = [np.diag(d) for d in ([1.0, 1, 1, 1], [-1.0, 1, 1, 1], [1.0, 1, 0, -1], [2.0, 1, 3, -1])]

    assert jg.linalg.cholesky_ex(jg.tensor(np.stack(matrices))).info.tolist() == [0, 1, 3, 4]
    upper = np.array([[2.0, 1.0], [9.0, 3.0]])  # of which the lower triangle is not that of a positive definite matrix
    assert jg.linalg.cholesky_ex(jg.tensor(upper), upper=True).info.item() == 0


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_reflections_are_those_of_the_decomposition(dtype: Any) -> None:
    a = drawn((2, 5, 3), dtype)
    vectors, factors = jg.geqrf(jg.tensor(a))
    q, r = jg.linalg.qr(jg.tensor(a), mode="complete")

    np.testing.assert_allclose(jg.linalg.householder_product(vectors, factors).numpy(), q.numpy()[..., :3], atol=1e-12)
    np.testing.assert_allclose((q @ r).numpy(), a, atol=1e-12)
    np.testing.assert_allclose(jg.ormqr(vectors, factors, r).numpy(), a, atol=1e-12)
    np.testing.assert_allclose(jg.ormqr(vectors, factors, q.mH, left=False, transpose=True).abs().numpy(), np.abs(
        (q.mH @ q.mH).numpy()), atol=1e-12)  # fmt: skip
    check_grads(lambda v, t: jg.orgqr(v, t).abs().sum(), [vectors.numpy(), factors.numpy()])


def test_a_square_q_of_more_rows_than_columns_has_no_gradient() -> None:
    a = jg.tensor(drawn((4, 3)), requires_grad=True)

    with pytest.raises(AutogradError, match='use mode="reduced"'):
        jg.qr(a, some=False)[0].sum().backward()


def test_names_at_the_top_have_torchs_order() -> None:
    a, b = jg.tensor(drawn((3, 3))), jg.tensor(drawn((3, 2)))
    u, s, v = jg.svd(a)

    np.testing.assert_allclose((u * s @ v.mT).numpy(), a.numpy(), atol=1e-12)
    np.testing.assert_allclose((a @ jg.lu_solve(b, *a.lu())).numpy(), b.numpy(), atol=1e-12)
    np.testing.assert_allclose((jg.triu(a).mT @ jg.triangular_solve(b, a, transpose=True)[0]).numpy(), b.numpy(), atol=1e-12)
    low = jg.tensor(drawn((6, 2))) @ jg.tensor(drawn((2, 5)))
    u, s, v = jg.svd_lowrank(low, 2)
    np.testing.assert_allclose((u * s @ v.mT).numpy(), low.numpy(), atol=1e-12)
    with pytest.raises(ArgumentError, match="q=7 of f64"):
        jg.svd_lowrank(low, 7)


def test_factors_of_examples_by_vmap() -> None:
    a = jg.tensor(drawn((3, 4, 4)))

    np.testing.assert_array_equal(jg.vmap(lambda x: jg.linalg.lu(x).L)(a).numpy(), jg.linalg.lu(a).L.numpy())
    assert jg.vmap(lambda x: jg.linalg.inv_ex(x).info)(a).tolist() == [0, 0, 0]
