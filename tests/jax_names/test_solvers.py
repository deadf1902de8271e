"""jax.scipy.sparse.linalg, and jax.grad with holomorphic=True."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jitgrad.jax.numpy as jnp
import numpy as np
import pytest

import jitgrad as jg
from jitgrad import jax
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, ShapeError
from jitgrad.jax.scipy.sparse.linalg import bicgstab, cg, gmres

rng = np.random.default_rng(0)
PART = rng.normal(size=(4, 4))
MATRICES: dict[Any, Any] = {cg: PART @ PART.T + 3 * np.eye(4), bicgstab: PART + 4 * np.eye(4), gmres: PART + 4 * np.eye(4)}
RIGHT = rng.normal(size=4)
SOLVERS = pytest.mark.parametrize("solve", MATRICES, ids=lambda solve: solve.__name__)


def cubed(solution: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda A, b: (solution(A, b) ** 3).sum()


@SOLVERS
def test_solutions_and_gradients_are_those_of_a_direct_solution(solve: Any) -> None:
    A, b = jnp.array(MATRICES[solve]), jnp.array(RIGHT)
    gradient = jax.grad(cubed(lambda A, b: solve(lambda v: A @ v, b, tol=1e-12)[0]), argnums=(0, 1))
    expected = jax.grad(cubed(jnp.linalg.solve), argnums=(0, 1))(A, b)

    np.testing.assert_allclose(solve(A, b, tol=1e-12)[0].numpy(), np.linalg.solve(MATRICES[solve], RIGHT), rtol=1e-9)
    for function in (gradient, jg.jit(gradient, backend="python")) if solve is cg else (gradient,):
        for got, want in zip(function(A, b), expected, strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-8, atol=1e-10)


@SOLVERS
def test_second_derivatives(solve: Any) -> None:
    A, b = jnp.array(MATRICES[solve]), jnp.array(RIGHT)

    def curvature(solution: Callable[[Any, Any], Any]) -> Any:
        return jax.grad(lambda b: (jax.grad(lambda b: cubed(solution)(A, b))(b) ** 2).sum())(b).numpy()

    found = curvature(lambda A, b: solve(lambda v: A @ v, b, tol=1e-12)[0])
    np.testing.assert_allclose(found, curvature(jnp.linalg.solve), rtol=1e-7)


@SOLVERS
def test_trees_starts_and_preconditioners(solve: Any) -> None:
    b = {"a": jnp.array([2.0, 4.0]), "b": jnp.array(9.0)}
    scaled, _ = solve(lambda t: {"a": 2.0 * t["a"], "b": 3.0 * t["b"]}, b, tol=1e-10)
    assert scaled["a"].tolist() == pytest.approx([1.0, 2.0]) and scaled["b"].item() == pytest.approx(3.0)

    A, right = MATRICES[solve], jnp.array(RIGHT)
    exact = np.linalg.solve(A, RIGHT)
    near, _ = solve(jnp.array(A), right, jnp.array(exact), maxiter=0)
    assert near.tolist() == pytest.approx(exact.tolist())
    by_inverse, _ = solve(jnp.array(A), right, maxiter=1, M=jnp.array(np.linalg.inv(A)))
    np.testing.assert_allclose(by_inverse.numpy(), exact, rtol=1e-9)
    assert solve(jnp.array(A), jnp.zeros(4))[0].tolist() == [0.0] * 4


def test_what_is_no_system_says_so() -> None:
    with pytest.raises(ArgumentError, match="cg: A is a matrix or a linear function, got list"):
        cg([1.0], jnp.ones(3))
    with pytest.raises(ShapeError, match=r"gmres: A\(b\) must be like b, of 3 numbers; got f64\[2\]"):
        gmres(lambda v: v[:2], jnp.ones(3))


def test_holomorphic_derivatives_are_jaxs() -> None:
    z = 0.3 + 0.4j
    slope = jax.grad(lambda z: z**3 + jnp.exp(z), holomorphic=True)

    for function in (slope, jg.jit(slope, backend="python")):
        assert complex(function(jnp.array(z)).item()) == pytest.approx(3 * z**2 + np.exp(z))
    (value, more), first = jax.value_and_grad(lambda z, w: (z * w, z), (0, 1), has_aux=True, holomorphic=True)(z, 2j)
    assert [complex(x.item()) for x in (value, more, *first)] == pytest.approx([z * 2j, z, 2j, z])
    assert jax.grad(lambda z: (z * z, 1), holomorphic=True, has_aux=True)(z)[1] == 1


def test_what_is_not_holomorphic_says_so() -> None:
    with pytest.raises(DtypeError, match=r"holomorphic=True\): arguments and result must be complex, got f64\[\]"):
        jax.grad(lambda x: x * x, holomorphic=True)(jnp.array(1.0))
    with pytest.raises(DtypeError, match="must be complex"):
        jax.grad(lambda z: jnp.abs(z), holomorphic=True)(1j)
    with pytest.raises(AutogradError, match=r"must return a number, got c128\[2\]"):
        jax.grad(lambda z: z, holomorphic=True)(jnp.array([1j, 2j]))
    with pytest.raises(AutogradError, match="allow_int=True: integers have no gradient"):
        jax.grad(lambda x: x, allow_int=True)
