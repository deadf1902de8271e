"""Functions that are compositions compute in the dtype that NumPy's ufunc of that name computes in, in all of it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64")


def results(function: Callable[..., Any], *xs: Any) -> list[np.ndarray[Any, Any]]:
    """Of an eager and of a compiled call."""
    tensors = [jg.asarray(x) for x in xs]
    return [call(*tensors).numpy() for call in (function, jg.jit(function, backend="python"))]


def numbers(dtype: str) -> np.ndarray[Any, Any]:
    return np.array([0, 1, 1, 0] if dtype == "bool" else [0, 1, 2, 3], dtype)


def assert_equal_to_numpy(name: str, *xs: Any, ulp: int = 4) -> None:
    expected = getattr(np, name)(*xs)
    for found in results(getattr(jnp, name), *xs):
        assert found.dtype == expected.dtype, [x.dtype for x in xs]
        np.testing.assert_array_max_ulp(found, expected, ulp)


@pytest.mark.parametrize("name", ["fabs", "rint", "deg2rad", "rad2deg"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_operand(name: str, dtype: str) -> None:
    assert_equal_to_numpy(name, numbers(dtype))


@pytest.mark.parametrize("name", ["heaviside", "logaddexp2"])
def test_two_operands(name: str) -> None:
    for first, second in itertools.product(DTYPES, DTYPES):
        assert_equal_to_numpy(name, numbers(first), numbers(second)[::-1].copy())


def test_python_numbers_take_the_dtype_of_the_other_operand() -> None:
    x = numbers("float32")
    for name in ("heaviside", "logaddexp2"):
        assert getattr(jnp, name)(jg.asarray(x), 0.5).dtype == np.float32
        assert getattr(jnp, name)(2, 0.5).dtype == np.float64


FLOATS = {"float64": (2300, 1000), "float32": (330, 120), "float16": (60, 14)}  # exponents of factors and of numbers


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_2_are_exact_and_round_once(dtype: str) -> None:
    rng, (largest, size) = np.random.default_rng(0), FLOATS[dtype]
    x = (rng.normal(size=5000) * 2.0 ** rng.integers(-size, size, 5000)).astype(dtype)
    n = rng.integers(-largest, largest, 5000)

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jnp.ldexp(jg.asarray(x), n).numpy(), np.ldexp(x, n))
    mantissa, exponent = jnp.frexp(jg.asarray(x))
    np.testing.assert_array_equal(mantissa.numpy(), np.frexp(x)[0])
    np.testing.assert_array_equal(exponent.numpy(), np.frexp(x)[1])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64"])
def test_exponents_of_any_size_and_dtype(dtype: str) -> None:
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    n = np.array(limits, dtype)
    x = np.array([[0.0], [-0.0], [1.5], [np.inf], [np.nan], [5e-324]])

    with np.errstate(all="ignore"):
        expected = np.ldexp(x, np.clip(n.astype(np.float64), -5000, 5000).astype(np.int32))
    np.testing.assert_array_equal(jnp.ldexp(jg.asarray(x), jg.asarray(n)).numpy(), expected)
    assert np.isfinite(jg.grad(lambda x: jnp.ldexp(x, jg.asarray(np.minimum(n, 8))).sum())(jg.asarray(x)).numpy()).all()


STATISTICS = {
    "an infinite number": np.array([1.0, np.inf, np.nan]),
    "integers": np.array([1, 2, 3]),
    "bools": np.array([True, False]),
    "nothing": np.array([np.nan, np.nan]),
    "complex numbers": np.array([1 + 1j, np.nan, 2]),
}


@pytest.mark.parametrize("ddof", [0, 1, 3])
@pytest.mark.parametrize("case", STATISTICS)
def test_variances_without_nan(case: str, ddof: int) -> None:
    x = STATISTICS[case]
    for name in ("nanvar", "nanstd"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = getattr(np, name)(x, ddof=ddof)
        for found in results(partial(getattr(jnp, name), ddof=ddof), x):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_means_of_many_float16_numbers_do_not_overflow() -> None:
    x = np.full(70_000, 3.0, np.float16)
    assert jnp.nanmean(jg.asarray(x)).item() == 3.0
    assert jnp.nanvar(jg.asarray(x)).item() == 0.0
