"""Reductions over axis 0 or -1 of a number: NumPy and torch take these axes, and so do we."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.errors import AxisError
from jitgrad.ops import reduce

torch = pytest.importorskip("torch")

IN_SCIPY = {name: getattr(scipy.special, name) for name in ("logsumexp", "softmax", "log_softmax")}
REFUSED_BY_NUMPY = {"mean", "var", "std"}  # which torch takes
ELSEWHERE = ("squeeze", "count_nonzero", "nansum", "nanmean", "amax", "amin")


def _names() -> list[str]:
    """The reductions of `jitgrad.ops.reduce`, and functions made of them."""
    public = [n for n, f in vars(reduce).items() if callable(f) and getattr(jg, n, None) is f and not isinstance(f, type)]
    reductions = [n for n in public if {"axis", "keepdims"} <= set(inspect.signature(getattr(jg, n)).parameters)]
    return sorted({*reductions, "softmax", "log_softmax", *ELSEWHERE})


def _torch(name: str, x: Any, axis: int) -> Any:
    out = getattr(torch, name)(x, dim=axis)
    return out.values if name in ("max", "min") else out


def _expected(name: str, axis: int) -> Any:
    """NumPy's or SciPy's answer, with which torch's agrees."""
    function: Callable[..., Any] = IN_SCIPY.get(name) or getattr(np, name)
    return function(np.float64(2.5), axis=axis)


def test_the_reductions_are_found() -> None:
    assert {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "logsumexp"} <= set(_names())


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", sorted({*_names()} - REFUSED_BY_NUMPY))
def test_axes_of_a_number(name: str, axis: int) -> None:
    expected = np.asarray(_expected(name, axis))
    x = jg.tensor(2.5, dtype=jg.float64)
    y = torch.tensor(2.5, dtype=torch.float64, requires_grad=True)
    reference = _torch(name, y, axis)
    assert tuple(reference.shape) == expected.shape == ()
    np.testing.assert_allclose(reference.detach().numpy(), expected)

    function = getattr(jg, name)
    programs = [lambda x: function(x, axis=axis), jg.jit(lambda x: function(x, axis=axis), backend="python")]
    programs += [lambda x: getattr(x, name)(axis=axis)] if hasattr(x, name) else []
    programs += [lambda x: getattr(jnp, name)(x, axis=axis)] if hasattr(jnp, name) else []
    for program in programs:
        out = program(x)
        assert out.shape == () and out.dtype == expected.dtype
        np.testing.assert_allclose(out.numpy(), expected)
        if reference.requires_grad:
            (gradient,) = torch.autograd.grad(reference, y, retain_graph=True)
            np.testing.assert_allclose(jg.grad(program)(x).numpy(), gradient.numpy())


@pytest.mark.parametrize("name", ["sum", "max", "all", "argmin"])
def test_dimensions_that_are_kept(name: str) -> None:
    assert getattr(jg, name)(jg.tensor(2.5), axis=-1, keepdims=True).shape == ()


@pytest.mark.parametrize("axis", [1, -2, (0,), True, 0.0])
@pytest.mark.parametrize("name", _names())
def test_other_axes_of_a_number(name: str, axis: Any) -> None:
    with pytest.raises(AxisError):
        getattr(jg, name)(jg.tensor(2.5), axis=axis)


@pytest.mark.parametrize("name", ["max", "min"])
def test_torch_extremes_of_a_number(name: str) -> None:
    assert [x.item() for x in getattr(jg, name)(jg.tensor(2.5), dim=-1)] == [2.5, 0]
    with pytest.raises(AxisError):
        getattr(jg, name)(jg.tensor(2.5), dim=1)


@pytest.mark.parametrize("name", sorted(REFUSED_BY_NUMPY))
def test_means_have_no_axis_of_a_number(name: str) -> None:
    with pytest.raises(AxisError):
        getattr(jg, name)(jg.tensor(2.5), axis=0)
