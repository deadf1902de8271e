"""torch.distributions' names against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import distributions
from jitgrad.core.errors import ArgumentError

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
POSITIVE = np.exp(B)
CASES: dict[str, tuple[Any, Any]] = {
    "normal": (lambda m, t: m.Normal(t(A), t(POSITIVE)), B),
    "normal of numbers": (lambda m, t: m.Normal(t(A), 2.0), B),
    "uniform": (lambda m, t: m.Uniform(t(A), t(A + POSITIVE)), A + 0.1 * POSITIVE),
    "bernoulli by logits": (lambda m, t: m.Bernoulli(logits=t(A)), np.float64(B > 0)),
    "bernoulli by probs": (lambda m, t: m.Bernoulli(t(POSITIVE / 20)), np.float64(B > 0)),
    "categorical by logits": (lambda m, t: m.Categorical(logits=t(A)), np.array([0, 3, 2])),
    "categorical by probs": (lambda m, t: m.Categorical(t(POSITIVE)), np.array([0, 3, 2])),
    "independent": (lambda m, t: m.Independent(m.Normal(t(A), t(POSITIVE)), 1), B),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", CASES)
def test_densities_and_entropies(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, value = CASES[name]
    theirs, ours = make(torch.distributions, torch.tensor), make(distributions, jg.tensor)
    expected, found = theirs.log_prob(torch.tensor(value)), ours.log_prob(jg.tensor(value))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8)
    np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy().numpy(), rtol=1e-7)
    assert ours.sample((5, 2)).shape == tuple(theirs.sample((5, 2)).shape)
    assert (ours.batch_shape, ours.event_shape) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    for attribute in ("mean", "variance", "mode"):
        if hasattr(ours, attribute) and "uniform" not in name:
            np.testing.assert_allclose(getattr(ours, attribute).numpy(), getattr(theirs, attribute).numpy(), rtol=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("name", [name for name in CASES if "uniform" not in name])
def test_divergences(name: str) -> None:
    torch = pytest.importorskip("torch")
    p, q = CASES[name][0], CASES[name][0]
    expected = torch.distributions.kl_divergence(
        p(torch.distributions, torch.tensor), q(torch.distributions, lambda x: torch.tensor(x * 0.5 + 0.1))
    )
    found = distributions.kl_divergence(p(distributions, jg.tensor), q(distributions, lambda x: jg.tensor(x * 0.5 + 0.1)))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_samples_follow_the_distribution() -> None:
    jg.manual_seed(0)
    normal = distributions.Normal(jg.tensor([1.0, -2.0]), jg.tensor([0.5, 2.0]))
    drawn = normal.sample((4000,))
    np.testing.assert_allclose(drawn.mean(axis=0).numpy(), [1.0, -2.0], atol=0.1)
    chosen = distributions.Categorical(jg.tensor([[0.1, 0.9], [0.5, 0.5]])).sample((4000,))
    np.testing.assert_allclose(chosen.astype(jg.float64).mean(axis=0).numpy(), [0.9, 0.5], atol=0.03)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")], ids=["eager", "compiled"])
def test_gradients_flow_through_rsample_alone(wrap: Any) -> None:
    mean = jg.tensor([1.0], requires_grad=True)

    def step() -> Any:
        normal = distributions.Normal(mean, 1.0)
        (normal.rsample((3,)).sum() + normal.sample().sum()).backward()

    wrap(step)()
    assert mean.grad.tolist() == [3.0]


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ArgumentError, match="probs or logits"):
        distributions.Categorical()
    with pytest.raises(ArgumentError, match=r"use sample\(\)"):
        distributions.Categorical(jg.ones(2)).rsample()
    with pytest.raises(ArgumentError, match="estimate it"):
        distributions.kl_divergence(distributions.Uniform(0.0, 1.0), distributions.Normal(0.0, 1.0))
