"""jax.random: numbers as a pure function of a key, by the same Philox bits as `jitgrad.Generator`."""

# ruff: noqa: I001

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.jax.families import (
    ball, beta, binomial, bits, chisquare, geometric,
    loggamma, lognormal, maxwell, orthogonal, pareto,
    poisson, rayleigh, t, triangular, weibull_min,
)  # fmt: skip
from jitgrad.jax.keys import (
    PRNGKey, bernoulli, categorical, cauchy, choice,
    dirichlet, exponential, fold_in, gamma, gumbel, key, laplace, logistic, multivariate_normal, normal,
    permutation, rademacher, randint, split, truncated_normal, uniform,
)  # fmt: skip

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice",
    "dirichlet", "exponential", "fold_in", "gamma", "geometric", "gumbel", "key", "laplace", "loggamma", "logistic",
    "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson",
    "rademacher", "randint", "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "weibull_min",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.jax.random", globals())
