"""nn.utils.parametrize and the normalised weights: registration, assignment, removal and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a: Any) -> Any:
        return a.triu()


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2.0

    def right_inverse(self, x: Any) -> Any:
        return x / 2.0


class Row(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[0]


def test_registered_weight_is_a_function_of_the_original():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())

    assert parametrize.is_parametrized(layer)
    assert not parametrize.is_parametrized(layer, "bias")
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    np.testing.assert_array_equal(layer.weight.detach().numpy(), layer.weight.mT.detach().numpy())
    layer.weight.sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


def test_assignment_goes_through_the_inverses_of_all_parametrizations():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    before = layer.weight.detach().numpy()
    parametrize.register_parametrization(layer, "weight", Doubled())

    np.testing.assert_allclose(layer.weight.detach().numpy(), before)
    layer.weight = jg.tensor([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(layer.weight.detach().numpy(), [[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(layer.parametrizations.weight.original.detach().numpy(), [[0.5, 1.0], [0.0, 2.0]])


def test_cached_computes_once():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Doubled())

    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


@pytest.mark.parametrize("leave", [True, False])
def test_removal_leaves_an_ordinary_parameter(leave: bool):
    layer = nn.Linear(2, 2)
    original = layer.weight.detach().numpy().copy()
    parametrize.register_parametrization(layer, "weight", Doubled())
    layer.parametrizations.weight.original.data.fill_(1.0)
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)

    assert type(layer) is nn.Linear
    assert sorted(name for name, _ in layer.named_parameters()) == ["bias", "weight"]
    np.testing.assert_allclose(layer.weight.detach().numpy(), np.full_like(original, 2.0 if leave else 1.0))


def test_a_buffer_may_be_parametrized():
    norm = nn.BatchNorm1d(3)
    parametrize.register_parametrization(norm, "running_var", Doubled())

    assert "parametrizations.running_var.original" in norm.state_dict()
    np.testing.assert_allclose(norm.running_var.numpy(), 1.0)


@pytest.mark.parametrize("wrap", [nn.utils.spectral_norm, parametrizations.spectral_norm])
def test_largest_singular_value_is_one(wrap: Any):
    jg.manual_seed(0)
    layer = wrap(nn.Linear(5, 4), n_power_iterations=20)
    layer(jg.ones(1, 5))
    layer.eval()

    np.testing.assert_allclose(np.linalg.svd(layer.weight.detach().numpy())[1][0], 1.0, rtol=1e-4)


def test_errors_of_parametrizations():
    layer = nn.Linear(2, 2)

    with pytest.raises(ArgumentError, match="no parameter or buffer 'scale'"):
        parametrize.register_parametrization(layer, "scale", Doubled())
    with pytest.raises(ShapeError, match="unsafe=True"):
        parametrize.register_parametrization(layer, "weight", Row())
    with pytest.raises(ArgumentError, match="is not parametrized"):
        parametrize.remove_parametrizations(layer, "weight")
    with pytest.raises(ArgumentError, match="comes from 2 tensors"):
        parametrize.remove_parametrizations(parametrizations.weight_norm(layer), "weight", leave_parametrized=False)
    with pytest.raises(ArgumentError, match="is not normalised"):
        nn.utils.remove_weight_norm(layer)
    with pytest.raises(AttributeError, match="Cayley"):
        parametrizations.orthogonal


def test_a_parameter_that_is_assigned_to_a_parametrized_attribute_changes_the_original():
    class Halved(jg.nn.Module):
        def forward(self, x):
            return x / 2

        def right_inverse(self, x):
            return x * 2

    layer = jg.nn.Linear(2, 2)
    jg.nn.utils.parametrize.register_parametrization(layer, "weight", Halved())
    layer.weight = jg.nn.Parameter(jg.ones((2, 2)))

    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
