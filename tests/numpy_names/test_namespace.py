"""jitgrad.numpy as a namespace: scalar types, refusals, missing names, and what it makes of lists and numbers."""

from __future__ import annotations

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import ArgumentError, ShapeError, TracedValueError
from jitgrad.numpy import random

X = numpy.array([[1.0, -2.0], [3.0, 0.5]])


def test_import_numpy_means_numpy():
    import numpy as outside

    assert outside is not np
    assert outside.ndarray is not np.ndarray
    assert random.normal is numpy.random.normal


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "int64", "int32", "uint8", "bool_"])
def test_scalar_types_are_dtypes_that_convert(name):
    ours, theirs = getattr(np, name), getattr(numpy, name)

    assert np.zeros(2, ours).dtype == theirs
    assert np.zeros(2, ours).dtype == ours
    assert ours == np.zeros(2, ours).dtype
    assert np.array([0, 1]).astype(ours).dtype == theirs
    assert ours([0, 2]).numpy().tolist() == theirs([0, 2]).tolist()
    assert isinstance(theirs(1), ours)
    assert numpy.dtype(ours) == theirs and hash(ours) == hash(numpy.dtype(theirs))
    assert ours != np.int16 and repr(ours) == f"jitgrad.numpy.{name.rstrip('_')}"


def test_a_scalar_type_keeps_the_gradient():
    x = jg.tensor([1.0, 2.0], dtype="float32")

    gradient = jg.jit(jg.grad(lambda x: np.sum(np.float64(x) ** 2)))(x)

    assert gradient.dtype == numpy.float32
    assert gradient.tolist() == [2.0, 4.0]


def test_gradients_flow_through_lists_of_tensors():
    def f(x):
        return np.sum(np.array([[x[0] * x[1], 1.0], [x[1], x[0]]]) ** 2)

    x = jg.tensor([2.0, 3.0], dtype="float64")
    assert jg.grad(f)(x).tolist() == [2 * 2 * 9 + 4, 2 * 3 * 4 + 6]
    assert jg.jit(jg.grad(f))(x).tolist() == [40.0, 30.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: np.sum(X, out=X), r"sum: a result .* does not fit into out= of shape"),
        (lambda: np.exp(X, out="x"), "out= is a tensor or an array, got str"),
        (lambda: np.exp(X, where=X > 0), r"exp takes no where=: choose the elements with where\("),
        (lambda: np.zeros(2, float, "F"), "zeros takes no order="),
        (lambda: np.max(X, where=X > 0), "where= needs initial="),
        (lambda: np.quantile(X, 0.5, method="hazen"), "method must be linear"),
        (lambda: np.bincount([-1]), "must not be negative"),
        (lambda: np.select([X > 0], []), "1 conditions for 0 choices"),
        (lambda: np.convolve(X, X), "two vectors"),
        (lambda: np.average(X, 0, [1.0, 2.0, 3.0][:1] * 2 + [1.0]), "broadcast|weights"),
    ],
)
def test_what_is_refused_says_what_to_do(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("clongdouble", "complex128"),
        ("frompyfunc", "elementwise"),
        ("nanargxyz", "neither has NumPy"),
        ("busday_count", r"custom_op\(forward=numpy.busday_count"),
    ],
)
def test_a_missing_name_says_what_to_use(name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(np, name)


def test_numbers_in_a_compiled_function_stay_arguments():
    f = jg.jit(lambda x, a: np.sum(np.asarray(x) * np.asarray(a) + np.array([a, 1.0])))
    x = np.array([1.0, 2.0])

    assert [f(x, a).item() for a in (1.0, 2.0, 0.5)] == [5.0, 9.0, 3.0]
    assert f.cache_info().traces == 1


def test_shapes_that_depend_on_values_are_refused_where_no_call_decides_them():
    with pytest.raises(TracedValueError, match="bincount"):
        jg.jit(jg.vmap(np.bincount))(jg.tensor([[1, 2]]))


@pytest.mark.parametrize("backend", ["cpu", "python"])
@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 2.0]])
def test_a_compiled_bincount_has_the_length_of_eager_execution(weights: list[float] | None, backend: str) -> None:
    counts = jg.jit(lambda x: np.bincount(x, weights, minlength=4), backend=backend)
    for numbers in ([0, 1, 1], [3, 3, 0], [0, 1, 4], [2, 2, 2]):
        found, expected = counts(jg.tensor(numbers)), numpy.bincount(numbers, weights, 4)
        assert found.tolist() == expected.tolist() and found.dtype == expected.dtype
    assert counts.cache_info().traces == 2
    with pytest.raises(ArgumentError, match="must not be negative"):
        counts(jg.tensor([0, -1, 2]))


def test_list_of_public_names_is_sorted_and_complete():
    assert np.__all__ == sorted(np.__all__)
    assert not [name for name in np.__all__ if not hasattr(np, name)]
    assert {"hstack", "float64", "pi", "ndarray"} <= set(np.__all__)


def test_ragged_lists_are_refused():
    with pytest.raises((ArgumentError, TypeError), match="cannot make an array"):
        np.array([[1.0], [1.0, 2.0]])


def test_cbrt_is_steep_at_zero():
    assert jg.grad(lambda x: np.sum(np.cbrt(x)))(jg.tensor([0.0, 8.0])).tolist() == [numpy.inf, pytest.approx(1 / 12)]


def test_positions_of_parts_of_matrices_are_numpys() -> None:
    x = numpy.arange(12.0).reshape(3, 4)

    for name, *args in (("tril_indices_from", 1), ("triu_indices_from", -1)):
        found = getattr(np, name)(jg.tensor(x), *args)
        assert [k.tolist() for k in found] == [k.tolist() for k in getattr(numpy, name)(x, *args)]
    assert [k.tolist() for k in np.diag_indices_from(jg.ones(3, 3))] == [[0, 1, 2]] * 2
    with pytest.raises(ShapeError, match=r"of f64\[3,4\]: expected at least two axes, of one length"):
        np.diag_indices_from(jg.tensor(x))


def test_modf_gives_fractions_of_zero_the_sign_of_their_number() -> None:
    x = numpy.array([-2.0, 2.0, -0.0, 1.5, -1.5, numpy.inf, -numpy.inf])

    for modf in (np.modf, jg.jit(np.modf)):
        for found, expected in zip(modf(jg.asarray(x)), numpy.modf(x), strict=True):
            numpy.testing.assert_array_equal(found.numpy(), expected)
            numpy.testing.assert_array_equal(numpy.signbit(found.numpy()), numpy.signbit(expected))
