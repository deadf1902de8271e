"""Distributions of every family, with parameters that a function of tensors may take, and values of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
POSITIVE, OTHER = np.exp(A), np.exp(B)
CHANCE = POSITIVE / (POSITIVE + 1.0)
COUNTS = np.float64(np.abs(np.round(2.0 * B)))
MATRIX = np.tril(RNG.normal(size=(3, 4, 4)), -1) + np.eye(4) * 1.5
COVARIANCE = MATRIX @ MATRIX.swapaxes(-1, -2)
SIMPLEX = OTHER / OTHER.sum(-1, keepdims=True)

Family = tuple[Callable[..., Any], tuple[np.ndarray[Any, Any], ...], np.ndarray[Any, Any]]

FAMILIES: dict[str, Family] = {
    "normal": (lambda m, a, b: m.Normal(a, b), (A, POSITIVE), B),
    "normal of numbers": (lambda m, a: m.Normal(a, 2.0), (A,), B),
    "uniform": (lambda m, a, b: m.Uniform(a, a + b), (A, POSITIVE), A + 0.1 * POSITIVE),
    "laplace": (lambda m, a, b: m.Laplace(a, b), (A, POSITIVE), B),
    "cauchy": (lambda m, a, b: m.Cauchy(a, b), (A, POSITIVE), B),
    "gumbel": (lambda m, a, b: m.Gumbel(a, b), (A, POSITIVE), B),
    "half-normal": (lambda m, a: m.HalfNormal(a), (POSITIVE,), OTHER),
    "half-cauchy": (lambda m, a: m.HalfCauchy(a), (POSITIVE,), OTHER),
    "student": (lambda m, a, b, c: m.StudentT(a, b, c), (POSITIVE + 0.3, A, OTHER), B),
    "exponential": (lambda m, a: m.Exponential(a), (POSITIVE,), OTHER),
    "gamma": (lambda m, a, b: m.Gamma(a, b), (POSITIVE, OTHER), OTHER),
    "chi-squared": (lambda m, a: m.Chi2(a), (POSITIVE,), OTHER),
    "inverse gamma": (lambda m, a, b: m.InverseGamma(a, b), (POSITIVE + 2.5, OTHER), OTHER),
    "pareto": (lambda m, a, b: m.Pareto(a, b), (POSITIVE, OTHER + 2.5), POSITIVE * 1.5),
    "weibull": (lambda m, a, b: m.Weibull(a, b), (POSITIVE, OTHER + 1.0), OTHER),
    "kumaraswamy": (lambda m, a, b: m.Kumaraswamy(a, b), (POSITIVE, CHANCE), CHANCE),
    "negative binomial": (lambda m, a, b: m.NegativeBinomial(a, b), (POSITIVE, CHANCE), COUNTS),
    "negative binomial by logits": (lambda m, a: m.NegativeBinomial(3, logits=a), (A,), COUNTS),
    "beta": (lambda m, a, b: m.Beta(a, b), (POSITIVE, OTHER), CHANCE),
    "dirichlet": (lambda m, a: m.Dirichlet(a), (POSITIVE,), SIMPLEX),
    "log-normal": (lambda m, a, b: m.LogNormal(a, b), (A, POSITIVE), OTHER),
    "bernoulli by logits": (lambda m, a: m.Bernoulli(logits=a), (A,), np.float64(B > 0)),
    "bernoulli by probs": (lambda m, a: m.Bernoulli(a), (CHANCE,), np.float64(B > 0)),
    "binomial": (lambda m, a: m.Binomial(9, a), (CHANCE,), COUNTS),
    "binomial by logits": (lambda m, a: m.Binomial(9, logits=a), (A,), COUNTS),
    "geometric": (lambda m, a: m.Geometric(a), (CHANCE,), COUNTS),
    "poisson": (lambda m, a: m.Poisson(a), (POSITIVE,), COUNTS),
    "categorical by logits": (lambda m, a: m.Categorical(logits=a), (A,), np.array([0, 3, 2])),
    "categorical by probs": (lambda m, a: m.Categorical(a), (POSITIVE,), np.array([0, 3, 2])),
    "one-hot by logits": (lambda m, a: m.OneHotCategorical(logits=a), (A,), np.eye(4)[[0, 3, 2]]),
    "one-hot by probs": (lambda m, a: m.OneHotCategoricalStraightThrough(a), (POSITIVE,), np.eye(4)[[0, 3, 2]]),
    "counts of choices": (lambda m, a: m.Multinomial(9, logits=a), (A,), np.float64([[0, 3, 2, 4], [9, 0, 0, 0], [2, 2, 2, 3]])),
    "mixture": (
        lambda m, a, b: m.MixtureSameFamily(m.Categorical(logits=a), m.Normal(a, b)), (A, POSITIVE), B[:, 0]
    ),
    "mixture of vectors": (
        lambda m, a, b, c: m.MixtureSameFamily(m.Categorical(a[:, 0]), m.Independent(m.Normal(b, c), 1)),
        (POSITIVE, A, POSITIVE), B[0],
    ),
    "relaxed bernoulli": (lambda m, a: m.RelaxedBernoulli(a[0, 0].exp(), logits=a), (A,), CHANCE),
    "relaxed one-hot": (lambda m, a: m.RelaxedOneHotCategorical(a[0, 0].exp(), logits=a), (A,), SIMPLEX),
    "independent": (lambda m, a, b: m.Independent(m.Normal(a, b), 1), (A, POSITIVE), B),
    "vectors by factor": (lambda m, a, b: m.MultivariateNormal(a, scale_tril=b), (A, MATRIX), B),
    "vectors by covariance": (lambda m, a, b: m.MultivariateNormal(a, b), (A, COVARIANCE), B),
    "vectors by precision": (lambda m, a, b: m.MultivariateNormal(a, precision_matrix=b), (A, COVARIANCE), B),
    "vectors of one covariance": (lambda m, a, b: m.MultivariateNormal(a[0], b[0]), (A, COVARIANCE), B),
    "squashed": (
        lambda m, a, b: m.TransformedDistribution(m.Normal(a, b), [m.TanhTransform(), m.AffineTransform(0.5, 2.0)]),
        (A, POSITIVE), 0.5 + 1.8 * np.tanh(B),
    ),
    "squashed vectors": (
        lambda m, a, b: m.TransformedDistribution(
            m.Independent(m.Normal(a, b), 1), m.ComposeTransform([m.SigmoidTransform(), m.ExpTransform()])
        ),
        (A, POSITIVE), np.exp(CHANCE),
    ),
}  # fmt: skip
WITHOUT_MOMENTS = ("squashed", "squashed vectors", "relaxed bernoulli", "relaxed one-hot")
_COUNTED = ("negative binomial", "negative binomial by logits")
WITHOUT_ENTROPY = (*WITHOUT_MOMENTS, *_COUNTED, "poisson", "counts of choices", "mixture", "mixture of vectors")
_POWERS = ("inverse gamma", "pareto", "weibull", "kumaraswamy")
WITHOUT_DIVERGENCE = (
    *WITHOUT_MOMENTS, *_COUNTED, *_POWERS, "student", "half-cauchy", "counts of choices", "mixture", "mixture of vectors"
)  # fmt: skip
