"""Roots of polynomials, and functions of numbers applied element by element."""

from __future__ import annotations

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import ArgumentError

X = numpy.linspace(-1.0, 2.0, 6).reshape(2, 3)


@pytest.mark.parametrize("p", [[1.0, -3.0, 2.0], [0.0, 0.0, 2.0, 1.0], [1, 0, 1], [3.0], [1.0, 2.0, 0.0], [2.0 + 1j, 1.0, 3.0]])
def test_roots_are_those_of_numpy(p: list[complex]):
    found = np.roots(numpy.array(p)).numpy()

    numpy.testing.assert_allclose(numpy.sort_complex(found), numpy.sort_complex(numpy.roots(p)), atol=1e-12)
    assert found.dtype == numpy.complex128


def test_roots_in_a_compiled_function():
    compiled = jg.jit(np.roots, backend="python")

    numpy.testing.assert_allclose(numpy.sort(compiled(numpy.array([2.0, -6.0, 4.0])).numpy().real), [1.0, 2.0])


def test_the_characteristic_polynomial_of_a_matrix():
    matrix = numpy.array([[2.0, 1.0], [-1.0, 3.0]])

    numpy.testing.assert_allclose(np.poly(matrix).numpy(), numpy.poly(matrix), rtol=1e-12)


def test_vectorize_decides_by_values_and_has_gradients():
    larger = np.vectorize(lambda a, b: a * a if a > b else b)
    x = jg.tensor(X, requires_grad=True)

    larger(x, 0.25).sum().backward()
    numpy.testing.assert_array_equal(larger(X, 0.25).numpy(), numpy.where(X > 0.25, X * X, 0.25))
    numpy.testing.assert_array_equal(x.grad.numpy(), numpy.where(X > 0.25, 2 * X, 0.0))


def test_vectorize_takes_the_common_dtype_of_all_results():
    assert np.vectorize(lambda a: 0 if a < 0 else a)(X).dtype == numpy.float64  # NumPy's is int64, that of the first
    assert np.vectorize(lambda a: a, otypes="f")(X).dtype == numpy.float32
    assert np.vectorize(lambda a: a, otypes=[int])(X).dtype == numpy.int64


def test_vectorize_of_several_results_and_excluded_arguments():
    powers = np.vectorize(lambda a, n, shift=0.0: (a**n, a + shift), excluded={1, "shift"})
    squares, moved = powers(X, 2, shift=1.0)

    numpy.testing.assert_allclose(squares.numpy(), X**2)
    numpy.testing.assert_allclose(moved.numpy(), X + 1.0)


def test_vectorize_in_a_compiled_function_names_the_remedy_for_many_elements():
    square = np.vectorize(lambda a: a * a)

    numpy.testing.assert_allclose(jg.jit(square.__call__, backend="python")(X).numpy(), X**2)
    with pytest.raises(ArgumentError, match=r"Use jg\.vmap"):
        jg.jit(lambda x: square(x), backend="python")(numpy.zeros(2000))
    with pytest.raises(ArgumentError, match="no elements"):
        square(numpy.zeros(0))
