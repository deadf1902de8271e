"""Divergences of distributions of two families, and `expand`, against torch; what samples of choices are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import distributions
from jitgrad.core.errors import ShapeError
from tests.distributions.families import FAMILIES

LOW, HIGH = np.array([0.1, 0.2, -0.5]), np.array([0.7, 1.0, 1.5])
SINGLE = {
    "normal": lambda m, t: m.Normal(t(LOW), t(HIGH)),
    "laplace": lambda m, t: m.Laplace(t(LOW), t(HIGH)),
    "exponential": lambda m, t: m.Exponential(t(HIGH)),
    "gamma": lambda m, t: m.Gamma(t(HIGH + 0.5), t(HIGH)),
    "beta": lambda m, t: m.Beta(t(HIGH + 0.5), t(HIGH)),
    "uniform": lambda m, t: m.Uniform(t(LOW), t(HIGH)),
    "wide uniform": lambda m, t: m.Uniform(t(LOW - 1.0), t(HIGH + 0.5)),
    "bernoulli": lambda m, t: m.Bernoulli(t(HIGH / 2.0)),
    "binomial": lambda m, t: m.Binomial(4, t(HIGH / 2.0)),
    "poisson": lambda m, t: m.Poisson(t(HIGH)),
}


@pytest.mark.peers
@pytest.mark.parametrize("first", SINGLE)
@pytest.mark.parametrize("second", SINGLE)
def test_divergences_across_families(first: str, second: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = [SINGLE[name](torch.distributions, torch.tensor) for name in (first, second)]
    try:
        expected = torch.distributions.kl_divergence(*theirs)
    except NotImplementedError:
        pytest.skip("torch has no formula")

    found = distributions.kl_divergence(*[SINGLE[name](distributions, jg.tensor) for name in (first, second)])

    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9)


@pytest.mark.peers
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")], ids=["eager", "compiled"])
def test_expanded_distributions(name: str, wrap: Any) -> None:
    torch = pytest.importorskip("torch")
    make, arrays, value = FAMILIES[name]
    theirs = make(torch.distributions, *map(torch.tensor, arrays))
    shape = (3, *theirs.batch_shape)

    def density(*parameters: Any) -> Any:
        wide = make(distributions, *parameters).expand(shape)
        assert (wide.batch_shape, wide.event_shape) == (shape, tuple(theirs.event_shape))
        assert wide.sample((5,)).shape == (5, *shape, *wide.event_shape)
        return wide.log_prob(value)

    found = wrap(density)(*map(jg.tensor, arrays))

    expected = theirs.log_prob(torch.tensor(value)).expand(shape)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8)
    if theirs.batch_shape:
        with pytest.raises(ShapeError):
            make(distributions, *map(jg.tensor, arrays)).expand((7,))


def test_samples_of_choices() -> None:
    probs = jg.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], requires_grad=True)
    straight = distributions.OneHotCategoricalStraightThrough(probs)
    drawn = straight.rsample((4,))
    drawn.sum((0, 1))[0].backward()

    assert sorted(set(drawn.detach().round(decimals=5).flatten().tolist())) == [0.0, 1.0]
    np.testing.assert_allclose(probs.grad.tolist(), [[3.2, -0.8, -0.8], [0.0, -4.0, -4.0]], atol=1e-5)
    counts = distributions.Multinomial(20, probs.detach()).sample((5,))
    assert counts.shape == (5, 2, 3) and (counts.sum(-1) == 20).all() and (counts[:, 1, 0] == 20).all()
    near = distributions.RelaxedOneHotCategorical(0.01, probs.detach()).rsample((50,))
    assert ((near.amax(-1) > 0.99).float().mean() > 0.8).item()
    with pytest.raises(ShapeError, match="3 choices"):
        distributions.MixtureSameFamily(distributions.Categorical(probs.detach()), distributions.Normal(0.0, jg.ones(2)))


def test_whole_numbers_as_parameters_are_floats() -> None:
    noise = distributions.Normal(0, 1)
    assert (noise.sample((2,)).dtype, noise.log_prob(jg.zeros(2)).dtype) == (jg.float32, jg.float32)
    assert distributions.Normal(0, jg.ones(2, dtype=jg.float64)).sample().dtype == jg.float64
    assert distributions.Uniform(0, 1).sample().dtype == distributions.Gamma(2, 1).sample().dtype == jg.float32
