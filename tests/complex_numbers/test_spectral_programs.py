"""Whole programs with complex numbers: eager, compiled, and their gradients of both orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.testing import check_grads
from tests.complex_numbers.spectral_programs import PROGRAMS

NAMES = list(PROGRAMS)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    function, arguments = PROGRAMS[name]

    check_grads(function, arguments, order=2, rtol=3e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_compiled_equals_eager(name: str, dtype: Any) -> None:
    function, arguments = PROGRAMS[name]
    eager = jg.value_and_grad(function, argnums=tuple(range(len(arguments))))
    compiled = jg.jit(eager, fallback="error")
    rtol = 1e-9 if dtype == np.float64 else 3e-4
    for scale in (1.0, 0.9, 1.1):  # the first call, and fast ones
        tensors = [jg.tensor((x * scale).astype(dtype)) for x in arguments]
        expected, grads = eager(*tensors)

        found, found_grads = compiled(*tensors)

        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol)
        for a, b in zip(found_grads, grads, strict=True):
            assert a.dtype == b.dtype == dtype
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol, rtol * np.abs(b.numpy()).max())
    assert compiled.cache_info().traces == 1


@pytest.mark.parametrize("name", NAMES)
def test_backward_from_outside_of_a_compiled_function(name: str) -> None:
    function, arguments = PROGRAMS[name]
    compiled, grads = jg.jit(function), []
    for f in (function, compiled):
        tensors = [jg.tensor(x, requires_grad=True) for x in arguments]
        f(*tensors).backward()
        grads.append([x.grad.numpy() for x in tensors])

    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-9 * np.abs(b).max())
