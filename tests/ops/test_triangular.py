"""Triangular systems: by BLAS where NumPy has it, for every layout; one triangle is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import MatrixError, ShapeError
from jitgrad.ops import triangular
from jitgrad.ops.triangular import triangular_solve
from jitgrad.testing import check_grads

R = np.random.default_rng(0)


def matrix(n: int, *batch: int, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """Of moderate condition, as are its triangles."""
    return (R.normal(size=(*batch, n, n)) / n + 2 * np.eye(n)).astype(dtype)


def expected(a: Any, b: Any, upper: bool) -> Any:
    return np.linalg.solve((np.triu if upper else np.tril)(a), b)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "in order": lambda x: x,
    "transposed": lambda x: np.swapaxes(x, -1, -2),
    "part of rows": lambda x: x[..., 1:, 1:],
    "part of columns": lambda x: np.swapaxes(x, -1, -2)[..., 2:, 2:],
    "every other one": lambda x: x[..., ::2, ::2],
    "backwards": lambda x: x[..., ::-1, ::-1],
    "of one row": lambda x: x[..., :1, :1],
    "repeated": lambda x: np.broadcast_to(x[..., :1, :1] * np.ones(1), x[..., :1, :1].shape),
}


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("n", [6, 40])
def test_layouts(n: int, name: str, upper: bool) -> None:
    for batch in ((), (2,), (2, 5)):
        a = LAYOUTS[name](matrix(n, *batch))
        b = R.normal(size=(*batch, 3, a.shape[-1]))
        found = triangular_solve(jg.asarray(a), jg.asarray(b).mT, upper=upper)
        np.testing.assert_allclose(found.numpy(), expected(a, np.swapaxes(b, -1, -2), upper), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [5, 40])
def test_only_one_triangle_is_read_and_operands_stay(n: int, upper: bool) -> None:
    a, b = matrix(n), R.normal(size=(n, 2))
    unread = np.where((np.tril if upper else np.triu)(np.ones((n, n)), -1 if upper else 1) > 0, np.nan, a)
    tensors = jg.asarray(unread), jg.asarray(b)

    for f in (triangular_solve, jg.jit(triangular_solve, static_argnames=("upper",))):
        np.testing.assert_allclose(f(*tensors, upper=upper).numpy(), expected(a, b, upper), rtol=1e-11)
    np.testing.assert_array_equal(tensors[0].numpy(), unread)
    np.testing.assert_array_equal(tensors[1].numpy(), b)


def test_dtypes_broadcast_batches_and_empty_operands() -> None:
    a, b = matrix(4, 2, 1), R.normal(size=(3, 4, 2))
    for x, y, tolerance in ((a, b, 1e-12), (a.astype("f4"), b.astype("f4"), 1e-5), (a, b.astype("f4"), 1e-6), (a + 1j, b, 1e-12)):
        found = triangular_solve(jg.asarray(x), jg.asarray(y), upper=True)
        wanted = expected(x, y, True)
        assert found.shape == (2, 3, 4, 2) and found.dtype == wanted.dtype
        np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)
    for shapes in (((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 3, 3), (3, 1))):
        x, y = (jg.asarray(np.ones(shapes[0]) * np.eye(shapes[0][-1])), jg.asarray(np.ones(shapes[1])))
        assert triangular_solve(x, y, upper=False).shape == np.linalg.solve(x.numpy(), y.numpy()).shape
    with pytest.raises(ShapeError, match="must have 4 rows"):
        triangular_solve(jg.asarray(a), jg.asarray(b[:, :3]), upper=True)


def test_without_blas_the_factors_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrix(40), R.normal(size=(40, 2))
    by_blas = triangular_solve(jg.asarray(a), jg.asarray(b), upper=True)
    monkeypatch.setattr(triangular, "find_blas", lambda: None)

    found = triangular_solve(jg.asarray(a), jg.asarray(b), upper=True)

    np.testing.assert_allclose(found.numpy(), by_blas.numpy(), rtol=1e-11)


@pytest.mark.numba
@pytest.mark.parametrize("n", [3, 7, 40, 80])
def test_a_zero_on_the_diagonal_is_an_error(n: int) -> None:
    """The factors of such a matrix may show a pivot that is nearly 0."""
    a, b = matrix(n), R.normal(size=(n, 1))
    a[n // 2, n // 2] = 0.0
    compiled = jg.jit(lambda a, b: triangular_solve(a, b, upper=False), check="off")

    for f in (lambda a, b: triangular_solve(a, b, upper=False), compiled, compiled):
        with pytest.raises(MatrixError, match=rf"solve_triangular of float64\[{n}, {n}\].*Singular matrix"):
            f(jg.asarray(a), jg.asarray(b))


@pytest.mark.parametrize("n", [3, 34])
@pytest.mark.parametrize("upper", [False, True])
def test_gradients(n: int, upper: bool) -> None:
    a, b = matrix(n), R.normal(size=(n, 2))

    check_grads(lambda a, b: jg.sin(triangular_solve(a, b, upper=upper)).sum(), [a, b], order=2)


@pytest.mark.numba
def test_compiled_large_systems_are_solved_by_blas_and_agree() -> None:
    a, b = jg.asarray(matrix(80)), jg.asarray(R.normal(size=(80, 3)))
    f = jg.jit(jg.value_and_grad(lambda a, b: jg.sin(triangular_solve(a.mT, b, upper=True)).sum(), (0, 1)))
    wanted, others = f(a, b)  # those of eager execution
    value, grads = f(a, b)

    assert {s.by for s in f.explain(a, b).steps if s.name == "triangular_solve"} == {"BLAS"}
    np.testing.assert_allclose(value.numpy(), wanted.numpy(), rtol=1e-12)
    for found, other in zip(grads, others, strict=True):
        np.testing.assert_allclose(found.numpy(), other.numpy(), rtol=1e-10, atol=1e-13)
