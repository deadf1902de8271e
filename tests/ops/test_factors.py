"""Systems and determinants of large matrices: one factorisation for them and all of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit
from jitgrad.numpy import linalg
from jitgrad.ops import factors
from jitgrad.ops.factors import FEW_ROWS
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.testing import check_grads

R = np.random.default_rng(0)
N = FEW_ROWS + 1


def matrix(*batch: int, dtype: Any = np.float64) -> jg.Tensor:
    return jg.tensor((R.normal(size=(*batch, N, N)) + 3 * np.eye(N)).astype(dtype))


def right_side(*shape: int, dtype: Any = np.float64) -> jg.Tensor:
    return jg.tensor(R.normal(size=shape).astype(dtype))


def log_density(a: Any, b: Any) -> Any:
    """A solve and a determinant of one matrix."""
    return (b * linalg.solve(a, b)).sum() + linalg.slogdet(a)[1].sum()


def factorisations(f: Callable[..., Any], *args: Any) -> int:
    """How often the compiled program factors a matrix."""
    calls = [s.op.name for s in jit(f, check="off").lookup(*args).program.steps if isinstance(s, LibraryCall)]
    assert not {"solve", "slogdet", "inverse"}.intersection(calls)
    return calls.count("lu_factors")


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: linalg.solve(a, b).sum(),
        jg.value_and_grad(lambda a, b: (linalg.solve(a, b) ** 2).sum(), argnums=(0, 1)),
        jg.value_and_grad(lambda a, b: linalg.slogdet(a)[1]),
        jg.value_and_grad(log_density, argnums=(0, 1)),
        jg.grad(lambda a, b: (jg.grad(log_density)(a, b) ** 2).sum()),
    ],
    ids=["solve", "its gradients", "determinant", "both", "second order"],
)
def test_a_matrix_is_factored_once(f: Callable[..., Any]) -> None:
    assert factorisations(f, matrix(), right_side(N, 2)) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("a", "b"), [((), (N, 3)), ((), (N,)), ((2,), (2, N, 1)), ((2, 1), (3, N, 2)), ((2,), (N, 2))])
def test_solutions_are_numpys(a: Any, b: Any, dtype: Any) -> None:
    x, y = matrix(*a, dtype=dtype), right_side(*b, dtype=dtype)
    expected = np.linalg.solve(x.numpy(), y.numpy())

    tolerance = 1e3 * np.finfo(dtype).eps
    for found in (linalg.solve(x, y), jit(linalg.solve, check="off")(x, y)):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_determinants_are_numpys() -> None:
    x = jg.stack([matrix(), -matrix(), matrix()[::-1].clone(), jg.zeros((N, N), dtype=np.float64)])
    sign, logarithm = np.linalg.slogdet(x.numpy())
    found = linalg.slogdet(x)

    np.testing.assert_array_equal(found[0].numpy(), sign)
    np.testing.assert_allclose(found[1].numpy(), logarithm, rtol=1e-13)


def test_gradients_of_both_orders() -> None:
    a, b = matrix(), right_side(N, 2)

    def of_few(v: Any, w: Any) -> Any:
        changed = a + 0.1 * jg.outer(v.sum() * a[0], a[1]) + v[0] * jg.eye(N, dtype=np.float64)
        return log_density(changed, b * w) + (linalg.solve(changed.mT, b) ** 2).sum()

    check_grads(of_few, (right_side(3), right_side(2)), order=2)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_singular_matrix_is_numpys_error(compiled: bool) -> None:
    f = jit(linalg.solve, check="off") if compiled else linalg.solve

    with pytest.raises(np.linalg.LinAlgError, match=f"solve of float64\\[{N}, {N}\\] and .*Singular"):
        f(jg.ones((N, N), dtype=np.float64), right_side(N, 2))
    with pytest.raises(ValueError, match="right sides"):
        f(matrix(), right_side(N + 1, 2))


def test_nothing_to_solve_and_nan() -> None:
    a = matrix().numpy()
    a[3, 4] = np.nan

    assert np.isnan(linalg.solve(jg.tensor(a), right_side(N, 1)).numpy()).any()
    assert linalg.solve(matrix(), right_side(N, 0)).shape == (N, 0)
    assert linalg.solve(matrix(0), right_side(N, 2)).shape == (0, N, 2)


@pytest.mark.parametrize(
    ("mapped", "a", "b"),
    [((0, 0), (3,), (3, N, 2)), ((None, 0), (), (3, N, 2)), ((0, None), (3,), (N, 2)), ((None, 0), (2,), (3, 2, N, 1))],
)
def test_examples_of_vmap(mapped: Any, a: Any, b: Any) -> None:
    x, y = matrix(*a), right_side(*b)
    found = jg.vmap(lambda x, y: jg.grad(log_density)(x, y), in_dims=mapped)(x, y)

    rows = [[v if k is None else v[n] for v, k in zip((x, y), mapped, strict=True)] for n in range(3)]
    expected = jg.stack([jg.grad(log_density)(*row) for row in rows])
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_without_numpys_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrix(), right_side(N, 2)
    expected = jg.value_and_grad(log_density, argnums=(0, 1))(a, b)
    monkeypatch.setattr(factors, "has_lapack", lambda: False)
    value, gradients = jg.value_and_grad(log_density, argnums=(0, 1))(a, b)

    np.testing.assert_allclose(value.numpy(), expected[0].numpy(), rtol=1e-12)
    for x, y in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-9, atol=1e-12)
