"""SciPy's optimisers on compiled functions as they are: NumPy arrays in, tensors out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

optimize = pytest.importorskip("scipy.optimize")


def bowl(x: Any) -> Any:
    return ((x - jg.tensor([1.0, 2.0, 3.0], dtype=jg.float64)) ** 2).sum()


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "TNC", "SLSQP", "Newton-CG", "trust-constr"])
def test_minimize_takes_value_and_gradient(method: str) -> None:
    found = optimize.minimize(jg.jit(jg.value_and_grad(bowl)), np.zeros(3), jac=True, method=method)

    assert found.success
    assert np.allclose(found.x, [1, 2, 3], atol=1e-4)


def test_least_squares_and_roots_take_jacobians() -> None:
    def residuals(x: Any) -> Any:
        return x**2 - 2.0

    f, jacobian = jg.jit(residuals), jg.jit(jg.jacobian(residuals))

    assert np.allclose(optimize.least_squares(f, np.ones(2), jac=jacobian).x, np.sqrt(2))
    assert np.allclose(optimize.root(f, np.ones(2), jac=jacobian).x, np.sqrt(2))


def test_conversions_keep_gradients_where_they_flow() -> None:
    x = jg.tensor(2.0, requires_grad=True)

    np.atleast_1d(x * 3).sum().backward()

    assert x.grad.item() == 3.0
    assert type(np.atleast_2d(jg.tensor(2.0))) is np.ndarray
