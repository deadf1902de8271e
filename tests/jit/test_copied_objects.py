"""Copies and pickles of tensors, modules, objects with @jit methods, and @jit functions."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import AutogradError


class Scale:
    def __init__(self, w: Any) -> None:
        self.w = w

    @jg.jit
    def __call__(self, x: Any) -> Any:
        return x * self.w

    @jg.jit(static_argnames="k")
    def power(self, x: Any, k: int) -> Any:
        return x * self.w**k


class Wrapped:
    def __init__(self) -> None:
        self.w = jg.tensor([2.0])
        self.scale = jg.jit(self.scale)  # type: ignore[method-assign]

    def scale(self, x: Any) -> Any:
        return x * self.w


@jg.jit
def double(x: Any) -> Any:
    return 2.0 * x


def unpickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, unpickled])
def test_a_copied_object_has_methods_of_its_own(copied: Callable[[Any], Any]) -> None:
    x, first = jg.tensor([1.0, 2.0]), Scale(jg.tensor([2.0]))
    assert first(x).tolist() == [2.0, 4.0]
    assert first.power(x, k=2).tolist() == [4.0, 8.0]
    second = copied(first)
    second.w = jg.tensor([5.0])
    for _ in range(2):
        assert second(x).tolist() == [5.0, 10.0]
        assert second.power(x, k=2).tolist() == [25.0, 50.0]
        assert first(x).tolist() == [2.0, 4.0]
    assert type(first).power.cache_info().traces == 0
    assert first.power.cache_info().traces == 1


def test_a_compiled_bound_method_is_copied_with_its_object() -> None:
    first = Wrapped()
    assert first.scale(jg.ones(1)).tolist() == [2.0]
    second = copy.deepcopy(first)
    second.w = jg.tensor([5.0])
    assert second.scale(jg.ones(1)).tolist() == [5.0]
    assert first.scale(jg.ones(1)).tolist() == [2.0]


def test_functions_are_pickled_by_name() -> None:
    assert unpickled(double) is double
    assert copy.deepcopy(double) is double
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(jg.jit(lambda x: x))


@pytest.mark.parametrize("copied", [copy.deepcopy, unpickled])
def test_modules(copied: Callable[[Any], Any]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 4))
    model[3].weight = model[0].weight if copied is None else nn.Parameter(jg.rand(4, 4))
    model[3].bias.requires_grad_(False)
    x = jg.rand(5, 3)
    jg.jit(lambda x: model(x).sum())(x).backward()
    other = copied(model)
    assert list(other.state_dict()) == list(model.state_dict())
    assert [p.requires_grad for p in other.parameters()] == [p.requires_grad for p in model.parameters()]
    model.eval(), other.eval()
    np.testing.assert_array_equal(other(x).detach().numpy(), model(x).detach().numpy())
    np.testing.assert_array_equal(other[0].weight.grad.numpy(), model[0].weight.grad.numpy())
    with jg.no_grad():
        other[0].weight.zero_()
    assert model[0].weight.abs().sum().item() > 0


def test_pickled_tensors() -> None:
    tied = nn.Parameter(jg.ones(2))
    one, two = unpickled((tied, tied))
    assert one is two and one.requires_grad
    view = jg.arange(6).reshape(2, 3)[:, 1]
    assert unpickled(view).tolist() == [1, 4]
    assert unpickled(jg.tensor(2.0)).shape == ()
    with pytest.raises(AutogradError, match=r"pickle \.detach\(\)"):
        pickle.dumps(tied * 2.0)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda v: copy.deepcopy([v])[0], lambda v: copy.deepcopy({"a": v})["a"]]
)
def test_a_copied_number_stays_a_number(copied: Callable[[Any], Any]) -> None:
    """It takes the dtype of the tensor that it meets, and other names of it keep their value."""

    def function(x: Any, rate: float) -> Any:
        other = copied(rate)
        other += 1.0
        return x * other * rate

    compiled = jg.jit(function, backend="python", check="off")
    for rate in (2.5, 3.5):
        found, expected = compiled(jg.ones(2), rate), function(jg.ones(2), rate)
        assert found.dtype == expected.dtype == np.float32
        assert found.tolist() == expected.tolist()
