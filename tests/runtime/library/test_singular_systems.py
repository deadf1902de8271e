"""Small matrices of which machine code leaves the answer to NumPy, and steps that fail."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import numpy as jnp
from jitgrad.core.errors import MatrixError
from tests.runtime.library.systems import OPS, R, close, matrices, systems

pytestmark = pytest.mark.numba

SINGULAR: dict[str, np.ndarray[Any, Any]] = {
    "ones": np.ones((3, 3)),
    "zeros": np.zeros((3, 3)),
    "of rank 2": np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "of rank 2, large": np.diag([1.0] * 7 + [0.0]) + np.eye(8, k=1),
    "not a number": np.array([[1.0, np.nan], [0, 1]]),
    "not a number below": np.array([[1.0, 0], [0, np.nan]]),
    "infinite": np.array([[1.0, 0], [np.inf, 1]]),
    "not a number, large": np.where(np.eye(6) > 0, 2.0, np.where(np.arange(6) == 3, np.nan, 0.1)),
}


def outcome(f: Callable[[Any], Any], x: Any) -> Any:
    """The results as arrays, or the text of the error."""
    try:
        with np.errstate(all="ignore"):
            result = f(x)
    except np.linalg.LinAlgError as error:
        return str(error)
    return [r.numpy() for r in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("x", [pytest.param(x, id=name) for name, x in SINGULAR.items()])
@pytest.mark.parametrize("op", OPS)
def test_singular_matrices_and_those_with_nan_are_what_they_are_eagerly(op: str, x: Any) -> None:
    f = jg.jit(OPS[op], check="off")
    expected = outcome(f.eager, jg.asarray(x))
    for _ in range(3):
        found = outcome(f, jg.asarray(x))
        if isinstance(expected, str):
            assert re.match(rf"{re.escape(expected)} \(in .*systems\.py:\d+", found)
        else:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len(systems(f, jg.asarray(x))) == 1


def test_the_error_names_the_op_its_operands_and_the_users_line() -> None:
    f = jg.jit(jnp.linalg.solve, check="off")
    g = jg.jit(lambda x: jnp.linalg.inv(x) + 1.0, check="off")
    x = jg.asarray(np.ones((2, 2)))
    where = re.escape(__file__)

    with pytest.raises(MatrixError, match=rf"solve of float64\[2, 2\] and float64\[2, 1\]: Singular.*\(in {where}:\d+\)"):
        f(x, jg.asarray(np.ones(2)))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=rf"inv of float64\[2, 2\]: Singular.*\(in {where}:\d+\)"):
            g(x)


def test_one_singular_matrix_of_a_batch_is_an_error_and_later_calls_are_right() -> None:
    x = matrices("solve", 4, 300)
    f = jg.jit(lambda x: jnp.linalg.inv(x) * 2.0)
    good, bad = jg.asarray(x), x.copy()
    bad[250] = 1.0

    for _ in range(3):
        close(f(good), 2 * np.linalg.inv(x), 1e-11)
        with pytest.raises(MatrixError, match="Singular"):
            f(jg.asarray(bad))


def test_steps_behind_one_that_was_left_to_numpy_go_on() -> None:
    """Two such steps in one table, with a library call in Python between others."""

    def program(x: Any) -> Any:
        first = jnp.linalg.det(x * 1.0) + 1.0
        second = jnp.linalg.slogdet(x * 2.0)[1] * 0.5
        values = jnp.linalg.eigvalsh(x + 3.0) + first
        return first, second, values, jnp.linalg.det(x * 3.0) - second, jnp.linalg.det(jnp.eye(2) * 2.0 + values[0])

    x = jg.asarray(np.ones((2, 2)))
    for f in (jg.jit(program, check="off"), jg.jit(lambda x: program(x)[:2], check="off")):
        with np.errstate(all="ignore"):
            expected = f.eager(x)
        for _ in range(3):
            for a, b in zip(f(x), expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-13)


def test_state_is_unchanged_if_a_step_fails() -> None:
    state, count = jg.asarray(np.zeros(2)), jg.asarray(np.zeros(3))

    @jg.jit
    def step(x: Any) -> Any:
        count[:] = count + 1.0
        state[:] = state + jnp.linalg.solve(x, jnp.ones(2))
        return count.sum()

    good, bad = jg.asarray(np.eye(2) * 2.0), jg.asarray(np.ones((2, 2)))
    for k in range(1, 4):
        step(good)
        with pytest.raises(MatrixError):
            step(bad)
        assert state.tolist() == [k / 2, k / 2] and count.tolist() == [k] * 3


def test_a_failing_step_keeps_donated_arguments() -> None:
    f = jg.jit(lambda w, x: w - jnp.linalg.solve(x, w), donate=(0,))
    good, bad = jg.asarray(np.eye(2) * 2.0), jg.asarray(np.ones((2, 2)))
    assert f(jg.asarray([2.0, 4.0]), good).tolist() == [1.0, 2.0]
    for _ in range(2):
        w = jg.asarray([2.0, 4.0])
        with pytest.raises(MatrixError):
            f(w, bad)
        assert f(w, good).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "x",
    [
        np.diag([1e200, 1e200, 1e-200, 1e-200]),
        np.diag([1e-200, 1e-200, 1e200, 1e200]),
        np.diag([1e200, 1e200, 1.0]),
        np.diag([1e-320, 1.0]),
        np.diag([1e30] * 6 + [1e-30] * 6),
    ],
)
def test_determinants_out_of_range_on_the_way_are_numpys(x: Any) -> None:
    f = jg.jit(lambda x: (jnp.linalg.det(x), *jnp.linalg.slogdet(x)), check="off")
    with np.errstate(all="ignore"):
        expected = (np.linalg.det(x), *np.linalg.slogdet(x))

    for a, b in zip(f(jg.asarray(x)), expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-12)


@pytest.mark.parametrize("n", [3, 7])
def test_matrices_of_any_scale_are_machine_codes(n: int) -> None:
    """The limit below which NumPy decides is relative to the columns."""
    columns = 10.0 ** np.linspace(-100, 100, n)
    x = matrices("solve", n) * columns
    f = jg.jit(jnp.linalg.solve, check="off")
    b = R.normal(size=(n, 2))

    found = f(jg.asarray(x), jg.asarray(b)).numpy()

    np.testing.assert_allclose(found * columns[:, None], np.linalg.solve(x, b) * columns[:, None], rtol=1e-11)
    assert f.lookup(jg.asarray(x), jg.asarray(b)).program.runner.parts[0].declines
