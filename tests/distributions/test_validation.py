"""Parameters and values that a distribution cannot have are errors in eager execution, as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import distributions
from jitgrad.core.errors import ArgumentError

NAN = float("nan")
Case = Callable[[Any, Any], Any]
REFUSED: dict[str, Case] = {
    "negative scale": lambda m, t: m.Normal(t([0.0, 0.0]), t([1.0, -1.0])),
    "zero scale": lambda m, t: m.Normal(t(0.0), t(0.0)),
    "NaN mean": lambda m, t: m.Normal(t(NAN), t(1.0)),
    "NaN value": lambda m, t: m.Normal(t(0.0), t(1.0)).log_prob(t(NAN)),
    "shape of a value": lambda m, t: m.Normal(t([0.0, 0.0, 0.0]), 1.0).log_prob(t([0.0, 0.0])),
    "probability above 1": lambda m, t: m.Bernoulli(t([2.0, 0.5])),
    "value that is not 0 or 1": lambda m, t: m.Bernoulli(t(0.5)).log_prob(t(0.5)),
    "negative weight": lambda m, t: m.Categorical(t([-0.1, 1.1])),
    "weights of zero": lambda m, t: m.Categorical(t([0.0, 0.0])),
    "NaN logits": lambda m, t: m.Categorical(logits=t([NAN, 1.0])),
    "number of logits": lambda m, t: m.Categorical(logits=t(1.0)),
    "choice out of range": lambda m, t: m.Categorical(t([1.0, 1.0])).log_prob(t(2)),
    "bounds": lambda m, t: m.Uniform(t(1.0), t(0.0)),
    "value out of bounds": lambda m, t: m.Uniform(t(0.0), t(1.0)).log_prob(t(2.0)),
    "negative concentration": lambda m, t: m.Gamma(t(-1.0), t(1.0)),
    "negative value": lambda m, t: m.Exponential(t(1.0)).log_prob(t(-1.0)),
    "not a simplex": lambda m, t: m.Dirichlet(t([1.0, 2.0])).log_prob(t([0.5, 0.6])),
    "fraction of a count": lambda m, t: m.Poisson(t(1.0)).log_prob(t(0.5)),
    "too many successes": lambda m, t: m.Binomial(3, t(0.5)).log_prob(t(4.0)),
    "indefinite covariance": lambda m, t: m.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 2.0], [2.0, 1.0]])),
    "degrees of freedom": lambda m, t: m.Chi2(t(-1.0)),
    "scale of a logarithm": lambda m, t: m.LogNormal(t(0.0), t(-1.0)),
}
ACCEPTED: dict[str, Case] = {
    "infinite mean": lambda m, t: m.Normal(t(float("inf")), t(1.0)),
    "impossible choice": lambda m, t: m.Categorical(logits=t([-float("inf"), 1.0])),
    "weights": lambda m, t: m.Categorical(t([2.0, 3.0])),
    "many float32 weights": lambda m, t: m.Categorical(t(np.random.default_rng(0).random(20000, np.float32))),
    "no checks": lambda m, t: m.Normal(t(0.0), t(-1.0), validate_args=False),
    "smallest rate": lambda m, t: m.Poisson(t(0.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_arguments_are_errors(name: str) -> None:
    with pytest.raises(ValueError, match=r"must|broadcast|axis"):
        REFUSED[name](distributions, jg.tensor)


@pytest.mark.parametrize("name", ACCEPTED)
def test_valid_arguments_are_accepted(name: str) -> None:
    ACCEPTED[name](distributions, jg.tensor)


@pytest.mark.peers
@pytest.mark.parametrize("name", [*REFUSED, *ACCEPTED])
def test_torch_refuses_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    if name in ACCEPTED:
        ACCEPTED[name](torch.distributions, torch.tensor)
    else:
        with pytest.raises(ValueError):
            REFUSED[name](torch.distributions, torch.tensor)


def test_the_default_can_be_changed() -> None:
    distributions.Distribution.set_default_validate_args(False)
    try:
        distributions.Normal(0.0, -1.0)
    finally:
        distributions.Distribution.set_default_validate_args(True)
    with pytest.raises(ArgumentError, match=r"scale, -1\.0, must be greater than 0"):
        distributions.Normal(0.0, -1.0)


def test_compiled_functions_do_not_check() -> None:
    @jg.jit(backend="python")
    def density(scale: Any) -> Any:
        return distributions.Normal(0.0, scale).log_prob(1.0)

    assert np.isfinite(density(jg.tensor(1.0)).item())
    assert np.isnan(density(jg.tensor(-1.0)).item())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("x", "target"), [(1.5, 1.0), (-0.1, 0.0), (NAN, 1.0), (0.5, 1.2), (0.5, NAN)])
def test_binary_cross_entropy_of_what_is_no_probability(x: float, target: float, reduction: str) -> None:
    compiled = jg.jit(jg.nn.functional.binary_cross_entropy, backend="python")
    fine = jg.tensor([0.5, 0.25]), jg.tensor([1.0, 0.0])
    compiled(*fine)

    with pytest.raises(ArgumentError, match="between 0 and 1"):
        jg.nn.functional.binary_cross_entropy(jg.tensor([0.5, x]), jg.tensor([0.0, target]), reduction=reduction)
    if target == 1.0:
        assert np.isnan(compiled(jg.tensor([0.5, x]), jg.tensor([0.0, target])).item())


INVALID: dict[str, tuple[Any, float]] = {
    "Bernoulli by more than 1": (lambda t: distributions.Bernoulli(t(1.5)), 1.0),
    "Bernoulli of 3": (lambda t: distributions.Bernoulli(t(0.5)), 3.0),
    "Geometric by less than 0": (lambda t: distributions.Geometric(t(-1.0)), 1.0),
    "Binomial of a half": (lambda t: distributions.Binomial(t(5.0), t(0.5)), 1.5),
    "Poisson of a half": (lambda t: distributions.Poisson(t(2.0)), 0.5),
    "Exponential of less than 0": (lambda t: distributions.Exponential(t(1.0)), -1.0),
    "Gamma by 0": (lambda t: distributions.Gamma(t(0.0), t(1.0)), 1.0),
    "Chi2 of less than 0": (lambda t: distributions.Chi2(t(2.0)), -1.0),
    "Beta by less than 0": (lambda t: distributions.Beta(t(-1.0), t(2.0)), 0.5),
    "Categorical of a half": (lambda t: distributions.Categorical(logits=t([0.0, 1.0, 2.0])), 0.5),
    "Categorical by less than 0": (lambda t: distributions.Categorical(t([-0.5, 1.0, 0.5])), 1.0),
    "Uniform out of bounds": (lambda t: distributions.Uniform(t(0.0), t(1.0)), 2.0),
    "Uniform between bounds in no order": (lambda t: distributions.Uniform(t(1.0), t(0.0)), 0.5),
    "Uniform between equal bounds": (lambda t: distributions.Uniform(t(1.0), t(1.0)), 1.0),
    "Categorical of less than 0": (lambda t: distributions.Categorical(logits=t([0.0, 1.0, 2.0])), -1.0),
}


@pytest.mark.parametrize("name", INVALID)
def test_compiled_functions_give_nan_for_what_eager_execution_refuses(name: str) -> None:
    made, number = INVALID[name]

    def density(value: Any) -> Any:
        return made(lambda x: jg.tensor(x) + 0.0 * value).log_prob(value)

    value = jg.tensor(number)
    with pytest.raises(ArgumentError, match="validate_args=False leaves that out"):
        density(value)
    assert np.isnan(jg.jit(density, backend="python", check="off")(value).item())


def test_compiled_probabilities_of_invalid_weights_are_nan() -> None:
    entropy = jg.jit(lambda p: distributions.Categorical(p).entropy(), backend="python")
    assert np.isfinite(entropy(jg.tensor([[0.25, 0.75], [0.5, 0.5]])).numpy()).all()
    assert np.isnan(entropy(jg.tensor([[-0.25, 1.25], [0.5, 0.5]])).numpy()).tolist() == [True, False]


def test_compiled_dirichlet_and_uniform_of_what_they_cannot_be() -> None:
    dirichlet = jg.jit(lambda a, x: distributions.Dirichlet(a).log_prob(x), backend="python")
    uniform = jg.jit(lambda a, b, x: distributions.Uniform(a, b).log_prob(x), backend="python")
    weights = jg.tensor([2.0, 3.0])
    fine = dirichlet(weights, jg.tensor([0.25, 0.75])), uniform(jg.tensor(0.0), jg.tensor(2.0), jg.tensor(1.0))

    assert all(np.isfinite(x.item()) for x in fine)
    assert np.isnan(dirichlet(weights, jg.tensor([0.5, 0.75])).item())
    assert np.isnan(uniform(jg.tensor(0.0), jg.tensor(2.0), jg.tensor(3.0)).item())
