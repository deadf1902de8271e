"""A float argument that a function makes a tensor or a NumPy number of has the dtype and the precision that eager gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp

FUNCTIONS: dict[str, Callable[[Any, float], Any]] = {
    "full": lambda x, k: x * jg.full((2,), k),
    "full of no axes": lambda x, k: x * jg.full((), k),
    "tensor": lambda x, k: x * jg.tensor(k),
    "tensor alone": lambda x, k: jg.tensor(k),
    "tensor in float64": lambda x, k: x * jg.tensor(k, dtype="float64"),
    "astype": lambda x, k: x * jg.tensor(k, dtype="float64").astype("float64"),
    "detached": lambda x, k: x + jg.tensor(k, dtype="float64").detach(),
    "asarray in float64": lambda x, k: x * jg.asarray(k, dtype="float64"),
    "list": lambda x, k: x * jg.tensor([k, 1.0]),
    "list in float64": lambda x, k: x * jg.tensor([k, 1.0], dtype="float64"),
    "stack": lambda x, k: x * jg.stack([jg.tensor(k), jg.tensor(1.0)]),
    "beside integers": lambda x, k: jg.tensor([1, 2]) * jg.tensor(k),
    "ufunc": lambda x, k: x * np.sqrt(k),
    "ufunc of two": lambda x, k: x * np.maximum(k, 0.3),
    "ufunc of three": lambda x, k: x * np.clip(k, 0.0, 3.0),
    "ufunc and Python": lambda x, k: x * (np.exp(k) * 2.0 + k),
    "asarray of jitgrad.numpy": lambda x, k: x * jnp.asarray(k),
    "function of jitgrad.numpy": lambda x, k: x * jnp.sinc(k),
    "number": lambda x, k: x * (k * 2.0 + 1.0),
}


@pytest.mark.parametrize("backend", ["python", "cpu"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtype_and_precision(name: str, backend: str) -> None:
    function = FUNCTIONS[name]
    compiled = jg.jit(function, backend=backend, check="off")
    for k in (0.1, 2.7):
        found, expected = compiled(jg.tensor([1.0, 2.0]), k), function(jg.tensor([1.0, 2.0]), k)
        assert found.dtype == expected.dtype
        np.testing.assert_array_max_ulp(found.numpy(), expected.numpy(), 2)


TENSORS = ("tensor", "tensor alone", "tensor in float64", "list", "list in float64", "stack", "asarray of jitgrad.numpy")


@pytest.mark.parametrize("kind", [float, int])
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_of_computed_numbers(name: str, kind: type) -> None:
    def function(x: Any) -> Any:
        number = (x.sum() * 0.7).item() if kind is float else jg.floor(x.sum()).astype("int64").item()
        return FUNCTIONS[name](x, number)

    compiled = jg.jit(function, backend="python", check="off")
    for k in (1.0, 3.0):
        found, expected = compiled(jg.tensor([k, 2.0])), function(jg.tensor([k, 2.0]))
        assert found.dtype == expected.dtype
        np.testing.assert_array_max_ulp(found.numpy(), expected.numpy(), 2)


def test_numbers_beyond_float32_stay_finite_in_float64() -> None:
    compiled = jg.jit(lambda x, k: x * jg.tensor(k, dtype="float64"), backend="python", check="off")
    assert compiled(jg.tensor([1.0, 2.0]), 1e300).tolist() == [1e300, 2e300]


def test_a_change_of_the_default_dtype_is_seen() -> None:
    compiled = jg.jit(lambda k: jg.full((2,), k), backend="python")
    try:
        for dtype in (jg.float64, jg.float32):
            jg.set_default_dtype(dtype)
            assert compiled(0.1).dtype == dtype
    finally:
        jg.set_default_dtype(jg.float32)
