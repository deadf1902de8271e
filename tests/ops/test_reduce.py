"""Reductions against NumPy over dtypes, axes and shapes, their gradients, and their errors."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AxisError, ShapeError
from jitgrad.testing.gradients import check_grads

DTYPES = ["bool", "int8", "int32", "uint8", "uint64", "float16", "float32", "float64"]
PRIMITIVES = ["sum", "prod", "max", "min", "any", "all"]
AXES = [None, (), *(axes for n in (1, 2, 3) for axes in itertools.combinations((0, 1, -1), n)), 1, -2]


def sample(dtype: str = "float64", shape: tuple[int, ...] = (2, 3, 4)) -> np.ndarray:
    return (np.random.default_rng(0).normal(size=shape) * 2).astype(dtype)


def lse(x, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def assert_equals(result, expected, rtol=1e-6):
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    rtol = 5e-3 if expected.dtype == np.float16 else rtol
    np.testing.assert_allclose(result.numpy(), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", [*PRIMITIVES, "mean", "var", "std"])
def test_all_axes_equal_numpy(name, axis, keepdims):
    x = sample()

    result = getattr(jg, name)(jg.asarray(x), axis=axis, keepdims=keepdims)

    assert_equals(result, np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims)), rtol=1e-13)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*PRIMITIVES, "mean", "var", "std", "argmax", "argmin"])
def test_dtypes_equal_numpy(name, dtype):
    x = sample(dtype)[:, ::-1, ::-2]

    result = getattr(jg, name)(jg.asarray(x), axis=1)

    assert_equals(result, np.asarray(getattr(np, name)(x, axis=1)))


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum"])
def test_dtype_converts_first(name):
    x = np.array([200, 100], np.uint8)

    result = getattr(jg, name)(jg.asarray(x), dtype=jg.float64)

    assert_equals(result, np.asarray(getattr(np, name)(x, dtype=np.float64)))


@pytest.mark.parametrize("name", [*PRIMITIVES, "mean", "var", "argmin"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_0d(name, keepdims):
    x = np.array(-3.0)

    result = getattr(jg, name)(jg.asarray(x), keepdims=keepdims)

    assert_equals(result, np.asarray(getattr(np, name)(x, keepdims=keepdims)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "mean", "var"])
def test_empty(name, axis):
    x = np.ones((0, 3))

    assert_equals(getattr(jg, name)(jg.asarray(x), axis=axis), np.asarray(getattr(np, name)(x, axis=axis)))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extrema_of_nothing_are_errors(name):
    function = getattr(jg, name)

    with pytest.raises(ShapeError, match="empty axis"):
        function(jg.zeros((0, 3)), axis=0)
    assert function(jg.zeros((0, 3)), axis=1).shape == (0,)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean"])
def test_nan_and_inf(name):
    x = np.array([[1.0, np.nan, 2.0, np.nan], [np.inf, -0.0, 0.0, -np.inf], [np.inf, 1.0, 2.0, 3.0]])

    assert_equals(getattr(jg, name)(jg.asarray(x), axis=1), np.asarray(getattr(np, name)(x, axis=1)))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("include_initial", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_cumulative_sum(axis, include_initial, dtype):
    x = sample(dtype)

    result = jg.cumulative_sum(jg.asarray(x), axis, include_initial=include_initial)

    assert_equals(result, np.cumulative_sum(x, axis=axis, include_initial=include_initial))


@pytest.mark.parametrize("correction", [0, 1, 2.5, 40])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_correction(correction):
    x = sample()

    assert_equals(jg.var(jg.asarray(x), (0, 1), correction=correction), np.var(x, axis=(0, 1), correction=correction))


def test_variance_keeps_its_digits_where_the_mean_is_large():
    x = np.array([1e8 + 4, 1e8 + 7, 1e8 + 13, 1e8 + 16])

    assert jg.var(jg.asarray(x), correction=1).item() == 30.0


@pytest.mark.parametrize("axis", [None, 0, (0, -1)], ids=str)
def test_logsumexp_and_softmax(axis):
    x = sample()
    power = np.exp(x)

    assert_equals(jg.logsumexp(jg.asarray(x), axis, keepdims=True), np.asarray(lse(x, axis, True)), rtol=1e-13)
    assert_equals(jg.softmax(jg.asarray(x), axis), power / power.sum(axis, keepdims=True), rtol=1e-13)
    assert_equals(jg.log_softmax(jg.asarray(x), axis), x - lse(x, axis, True), rtol=1e-13)


def test_exponentials_do_not_overflow():
    x = jg.asarray(np.array([[1000.0, 1000.0], [-1000.0, -1000.0], [np.inf, 0.0], [-np.inf, -np.inf]]))

    np.testing.assert_array_equal(jg.logsumexp(x, 1).numpy(), [1000 + np.log(2), -1000 + np.log(2), np.inf, -np.inf])
    np.testing.assert_array_equal(jg.softmax(x[:2]).numpy(), np.full((2, 2), 0.5))
    np.testing.assert_allclose(jg.log_softmax(jg.asarray([0.0, -1000.0])).numpy(), [0.0, -1000.0])
    assert jg.logsumexp(jg.zeros((0, 2)), 0).tolist() == [-np.inf, -np.inf]
    assert jg.softmax(jg.zeros((2, 0))).shape == jg.log_softmax(jg.zeros((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, np.inf, -np.inf])
def test_norm(order):
    x = sample()

    assert_equals(jg.norm(jg.asarray(x), order, axis=1), np.linalg.norm(x, order, axis=1), rtol=1e-13)
    assert_equals(jg.norm(jg.asarray(x[0])), np.asarray(np.linalg.norm(x[0])), rtol=1e-13)


# --- gradients ---------------------------------------------------------------------------------------------------

DIFFERENTIABLE = [
    lambda x: jg.sum(x, axis=(0, 2)),
    lambda x: jg.prod(x, axis=(0, 2)),
    lambda x: jg.prod(x, keepdims=True),
    lambda x: jg.max(x, axis=1),
    lambda x: jg.min(x, axis=(0, 2), keepdims=True),
    lambda x: jg.mean(x, axis=-1),
    lambda x: jg.var(x, axis=1, correction=1),
    partial(jg.std, correction=0),
    lambda x: jg.cumulative_sum(x, axis=1, include_initial=True),
    lambda x: jg.logsumexp(x, axis=(1, 2)),
    jg.softmax,
    lambda x: jg.log_softmax(x, axis=1),
    jg.norm,
    lambda x: jg.norm(x, 3, axis=1),
    lambda x: jg.norm(x, np.inf, axis=1),
]


@pytest.mark.parametrize("f", DIFFERENTIABLE)
def test_gradients_of_first_and_second_order(f):
    check_grads(f, (sample(),), order=2)


def gradient(f, x):
    t = jg.tensor(np.asarray(x, np.float64), requires_grad=True)
    jg.sum(f(t)).backward()
    return t.grad.tolist()


@pytest.mark.parametrize("f", [jg.max, jg.min])
def test_ties_share_the_gradient(f):
    assert gradient(f, [1.0, 1.0, 1.0, 1.0]) == [0.25] * 4
    assert gradient(lambda x: f(x, axis=1), [[2.0, 2.0], [3.0, 3.0]]) == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([0.0, 3.0, 4.0], [12.0, 0.0, 0.0]),
        ([0.0, 0.0, 4.0], [0.0] * 3),
        ([5.0], [1.0]),
    ],
)
def test_product_with_zeros(x, expected):
    assert gradient(jg.prod, x) == expected


def test_second_derivative_of_a_product_at_zeros():
    check_grads(lambda x: jg.prod(x, axis=1), (np.array([[0.0, 0.0, 3.0], [0.0, 2.0, 5.0]]),), order=2)


def test_kinks_have_finite_gradients():
    assert gradient(partial(jg.std, correction=0), [3.0, 3.0]) == [0.0, 0.0]
    assert gradient(jg.norm, [0.0, 0.0]) == [0.0, 0.0]
    assert gradient(lambda x: jg.norm(x, 3), [0.0, 0.0]) == [0.0, 0.0]
    assert gradient(jg.logsumexp, [-np.inf, 0.0]) == [0.0, 1.0]


@pytest.mark.parametrize("f", [jg.sum, jg.prod, jg.mean])
def test_gradient_of_an_empty_sum_is_empty(f):
    assert gradient(lambda x: f(x, axis=1), np.ones((2, 0))) == [[], []]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: jg.sum(x, axis=3), AxisError, "out of bounds"),
        (lambda x: jg.sum(x, axis=(0, -3)), AxisError, "twice"),
        (lambda x: jg.max(x, axis="rows"), AxisError, "int"),
        (lambda x: jg.argmax(x, axis=5), AxisError, "out of bounds"),
        (jg.cumulative_sum, ArgumentError, "axis"),
        (lambda x: jg.norm(x, "nuc"), ArgumentError, "nuc"),
        (lambda x: jg.norm(x[0], 1), ArgumentError, "matrix norm"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(jg.asarray(sample()))
