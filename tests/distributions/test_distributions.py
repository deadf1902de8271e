"""torch.distributions' names against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import distributions
from jitgrad.core.errors import ArgumentError
from tests.distributions.families import FAMILIES, WITHOUT_DIVERGENCE, WITHOUT_ENTROPY, WITHOUT_MOMENTS, A

REPARAMETRISED = ["normal", "laplace", "gumbel", "half-normal", "cauchy", "exponential", "log-normal"]
REPARAMETRISED += ["pareto", "weibull", "kumaraswamy"]
REPARAMETRISED += ["vectors by factor", "squashed", "relaxed bernoulli", "relaxed one-hot"]
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")], ids=["eager", "compiled"])


@pytest.mark.peers
@pytest.mark.parametrize("name", FAMILIES)
def test_densities_and_moments(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, arrays, value = FAMILIES[name]
    theirs = make(torch.distributions, *map(torch.tensor, arrays))
    ours = make(distributions, *map(jg.tensor, arrays))
    expected, found = theirs.log_prob(torch.tensor(value)), ours.log_prob(jg.tensor(value))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8)
    if name not in WITHOUT_ENTROPY:
        np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy().numpy(), rtol=1e-7)
    drawn, like = ours.sample((5, 2)), theirs.sample((5, 2))
    assert (drawn.shape, drawn.dtype.name) == (tuple(like.shape), str(like.dtype).removeprefix("torch."))
    assert (ours.batch_shape, ours.event_shape) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    assert ours.has_rsample == theirs.has_rsample
    for attribute in ("mean", "variance", "stddev", "mode"):
        if name not in WITHOUT_MOMENTS and (attribute != "mode" or hasattr(ours, attribute)):
            expected = getattr(theirs, attribute).numpy()
            np.testing.assert_allclose(getattr(ours, attribute).numpy(), expected, rtol=1e-10, atol=1e-15)


@pytest.mark.peers
@pytest.mark.parametrize("name", FAMILIES)
@WRAPS
def test_gradients_of_densities(name: str, wrap: Any) -> None:
    torch = pytest.importorskip("torch")
    make, arrays, value = FAMILIES[name]
    leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
    make(torch.distributions, *leaves).log_prob(torch.tensor(value)).sum().backward()
    ours = [jg.tensor(x, requires_grad=True) for x in arrays]

    @wrap
    def step(*parameters: Any) -> Any:
        result = make(distributions, *parameters).log_prob(jg.tensor(value))
        result.sum().backward()
        return result

    step(*ours)
    for found, expected in zip(ours, leaves, strict=True):
        theirs = expected.grad.numpy()
        if theirs.ndim == 3:  # torch leaves in a gradient of a factor what no density reads
            theirs = np.tril(theirs) if "factor" in name else theirs
        np.testing.assert_allclose(found.grad.numpy(), theirs, rtol=1e-7, atol=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in WITHOUT_DIVERGENCE])
def test_divergences(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, arrays, _ = FAMILIES[name]

    def divergence(module: Any, tensor: Any) -> Any:
        other = [tensor(x * 1.25 if x.ndim == 3 else x * 0.5 + 0.1) for x in arrays]
        return module.kl_divergence(make(module, *map(tensor, arrays)), make(module, *other))

    expected, found = divergence(torch.distributions, torch.tensor), divergence(distributions, jg.tensor)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in ("cauchy", "half-cauchy", "student", *WITHOUT_MOMENTS)])
def test_samples_follow_the_distribution(name: str) -> None:
    jg.manual_seed(0)
    make, arrays, _ = FAMILIES[name]
    made = make(distributions, *map(jg.tensor, arrays))
    drawn = made.sample((4000,)).double()
    if name.startswith("categorical"):
        expected = (made.probs * jg.arange(4)).sum(-1).numpy()
    else:
        expected = made.mean.numpy()
    error = drawn.std(0).numpy() / np.sqrt(4000)
    assert (np.abs(drawn.mean(0).numpy() - expected) < 5.0 * error + 1e-12).all()
    if name != "log-normal" and not name.startswith("categorical"):
        np.testing.assert_allclose(drawn.std(0).numpy(), made.stddev.numpy(), rtol=0.2)


@pytest.mark.parametrize("name", FAMILIES)
def test_compiled_samples_are_the_eager_ones(name: str) -> None:
    make, arrays, _ = FAMILIES[name]

    def draw(*parameters: Any) -> Any:
        return make(distributions, *parameters).sample((2,))

    parameters = [jg.tensor(x) for x in arrays]
    compiled = jg.jit(draw, backend="python")
    jg.manual_seed(0)
    first, second = compiled(*parameters), compiled(*parameters)
    jg.manual_seed(0)
    np.testing.assert_allclose(first.numpy(), draw(*parameters).numpy(), rtol=1e-9)
    np.testing.assert_allclose(second.numpy(), draw(*parameters).numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", REPARAMETRISED)
@WRAPS
def test_gradients_of_samples_are_those_of_quantiles(name: str, wrap: Any) -> None:
    """A small change of the parameters moves a sample of the same seed as its gradient says."""
    make, arrays, _ = FAMILIES[name]

    @wrap
    def total(*parameters: Any) -> Any:
        jg.manual_seed(3)
        return make(distributions, *parameters).rsample().sum()

    leaves = [jg.tensor(x, requires_grad=True) for x in arrays]
    total(*leaves).backward()
    step = 1e-6
    for k, leaf in enumerate(leaves):
        def moved(by: float, k: int = k) -> float:
            changed = [x + (np.tril(np.ones_like(x)) if x.ndim == 3 else 1.0) * by * (j == k) for j, x in enumerate(arrays)]
            return float(total(*[jg.tensor(x) for x in changed]))

        slope = (moved(step) - moved(-step)) / (2.0 * step)
        gradient = np.tril(leaf.grad.numpy()) if arrays[k].ndim == 3 else leaf.grad.numpy()
        np.testing.assert_allclose(gradient.sum(), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [0.02, 0.7, 3.0, 150.0, 1e4])
@WRAPS
def test_gradients_of_gamma_samples(shape: float, wrap: Any) -> None:
    """How the quantile at a sample's probability moves with the shape, by SciPy."""
    special = pytest.importorskip("scipy.special")
    jg.manual_seed(1)
    a = jg.tensor(np.full(12, shape), requires_grad=True)

    @wrap
    def draw(a: Any) -> Any:
        return distributions.Gamma(a, 1.0).rsample()

    x = draw(a)
    x.sum().backward()
    points = x.detach().numpy()
    low = points < shape
    step = 1e-4 * shape
    probability = np.where(low, special.gammainc(shape, points), special.gammaincc(shape, points))

    def quantile(a: float) -> Any:
        return np.where(low, special.gammaincinv(a, probability), special.gammainccinv(a, probability))

    expected = (quantile(shape + step) - quantile(shape - step)) / (2.0 * step)
    np.testing.assert_allclose(a.grad.numpy(), expected, rtol=2e-5, atol=1e-9)


def test_gradients_of_means_of_samples() -> None:
    """The gradient of the mean of many samples is about the gradient of the mean: beta, Dirichlet and Student."""
    jg.manual_seed(0)
    cases = {"beta": lambda a, b: distributions.Beta(a, b), "dirichlet": lambda a, b: distributions.Dirichlet(jg.stack([a, b]))}
    for make in cases.values():
        a, b = (jg.tensor(x, dtype=jg.float64, requires_grad=True) for x in (2.0, 3.0))
        make(a, b).rsample((20000,)).reshape(20000, -1)[:, 0].mean().backward()
        np.testing.assert_allclose([a.grad.item(), b.grad.item()], [3.0 / 25.0, -2.0 / 25.0], rtol=0.05)
    df = jg.tensor(8.0, dtype=jg.float64, requires_grad=True)
    distributions.StudentT(df).rsample((40000,)).square().mean().backward()
    np.testing.assert_allclose(df.grad.item(), -2.0 / 36.0, rtol=0.3)


@WRAPS
def test_gradients_flow_through_rsample_alone(wrap: Any) -> None:
    mean = jg.tensor([1.0], requires_grad=True)

    def step() -> Any:
        normal = distributions.Normal(mean, 1.0)
        (normal.rsample((3,)).sum() + normal.sample().sum()).backward()

    wrap(step)()
    assert mean.grad.tolist() == [3.0]


@pytest.mark.parametrize("kind", ["AffineTransform", "ExpTransform", "SigmoidTransform", "TanhTransform", "SoftplusTransform"])
def test_transforms_and_their_inverses(kind: str) -> None:
    transform = getattr(distributions, kind)(*((0.5, -2.0) if kind == "AffineTransform" else ()))
    x = jg.tensor(A, requires_grad=True)
    y = transform(x)
    np.testing.assert_allclose(transform.inv(y).detach().numpy(), A, rtol=1e-7)
    (slope,) = jg.autograd.grad(y.sum(), x, retain_graph=True)
    np.testing.assert_allclose(transform.log_abs_det_jacobian(x, y).detach().numpy(), np.log(np.abs(slope.numpy())), atol=1e-9)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ArgumentError, match="probs or logits"):
        distributions.Categorical()
    with pytest.raises(ArgumentError, match=r"use sample\(\)"):
        distributions.Categorical(jg.ones(2)).rsample()
    with pytest.raises(ArgumentError, match="estimate it"):
        distributions.kl_divergence(distributions.StudentT(3.0), distributions.Normal(0.0, 1.0))
    with pytest.raises(ArgumentError, match="give one of"):
        distributions.MultivariateNormal(jg.zeros(2))
    with pytest.raises(ArgumentError, match="must be a Transform"):
        distributions.TransformedDistribution(distributions.Normal(0.0, 1.0), [jg.exp])


@pytest.mark.peers
def test_transforms_to_constraints():
    torch: Any = pytest.importorskip("torch")

    def transformed(module: Any, x: Any) -> list[Any]:
        found = []
        for make in (
            lambda c: c.positive,
            lambda c: c.greater_than(1.5),
            lambda c: c.less_than(-0.5),
            lambda c: c.interval(-1.0, 3.0),
            lambda c: c.unit_interval,
            lambda c: c.real,
        ):
            transform = module.transform_to(make(module.constraints))
            found += [transform(x), transform.inv(transform(x)), transform.log_abs_det_jacobian(x, transform(x))]
        return found

    ours, theirs = transformed(distributions, jg.tensor(A)), transformed(torch.distributions, torch.tensor(A))
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_no_transform_leads_to_matrices():
    with pytest.raises(ArgumentError, match="no transform leads to symmetric"):
        distributions.transform_to(distributions.constraints.positive_definite)
