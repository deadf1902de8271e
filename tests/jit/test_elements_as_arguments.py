"""Elements ``x[i]``, NumPy scalars and arrays without axes as arguments: ``e += 1`` changes what eager execution changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

FORMS = [{"check": "first"}, {"check": "off"}, {"check": "off", "backend": "python"}]


def grow(e: Any) -> Any:
    before = e
    e += 1.0
    return before * 10.0 + e


def elements_of(array: Any) -> list[Any]:
    return [array[k] for k in range(len(array))]


def grown(function: Callable[[Any], Any], given: list[Any]) -> list[float]:
    return [float(function(e)) for e in given]


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize("make", [jg.tensor, np.array, jg.numpy.array], ids=["tensor", "array", "jitgrad.numpy"])
def test_an_element_is_a_number(make: Any, options: dict[str, Any]) -> None:
    x, y = make([1.0, 2.0, 3.0]), make([1.0, 2.0, 3.0])

    assert grown(jg.jit(grow, **options), elements_of(x)) == grown(grow, elements_of(y)) == [12.0, 23.0, 34.0]
    assert list(x) == list(y) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_another_tensor_without_axes_changes_after_an_element(options: dict[str, Any]) -> None:
    compiled = jg.jit(grow, **options)
    x, own = jg.tensor([1.0, 2.0]), jg.tensor(5.0)

    found = grown(compiled, [x[0], own, x[1], own, own])

    assert found == [12.0, 66.0, 23.0, 77.0, 88.0]
    assert (own.item(), x.tolist()) == (8.0, [1.0, 2.0])


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_a_numpy_scalar_and_an_array_without_axes_have_programs_of_their_own(options: dict[str, Any]) -> None:
    compiled = jg.jit(grow, **options)
    array = np.array(5.0)

    assert grown(compiled, [np.float64(1.0), array, np.float64(2.0), array]) == [12.0, 66.0, 23.0, 77.0]
    assert array == 7.0


@pytest.mark.parametrize("scalar", [np.float64(2.0), np.float32(2.0), np.array(2.0)], ids=lambda s: type(s).__name__)
def test_what_operators_make_of_scalars_is_a_number(scalar: Any) -> None:
    def f(x: Any, rate: Any) -> Any:
        now = rate * 2
        old = now
        now *= 3
        return x * now + old

    x = jg.tensor([1.0])

    assert jg.jit(f, check="off")(x, scalar).item() == f(x, scalar).item() == 16.0


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_an_element_outside_stays_one_after_its_tensor_changed(options: dict[str, Any]) -> None:
    x = jg.tensor([1.0, 2.0])
    e = x[1]

    def f(y: Any) -> Any:
        k = e
        k += 1.0
        return y * k, y * e

    compiled = jg.jit(f, **options)
    for _ in range(2):
        assert [t.item() for t in compiled(jg.tensor(1.0))] == [3.0, 2.0]
    x[1] = 10.0
    for function in (compiled, f, compiled):
        assert [t.item() for t in function(jg.tensor(1.0))] == [3.0, 2.0]


def test_a_gradient_flows_through_a_changed_element() -> None:
    def f(e: Any, y: Any) -> Any:
        e *= 2.0
        return e * y

    x = jg.tensor([1.0, 2.0], requires_grad=True)
    compiled = jg.jit(f)
    for k in range(2):
        compiled(x[k], jg.tensor(3.0)).backward()

    assert x.grad.tolist() == [6.0, 6.0]
