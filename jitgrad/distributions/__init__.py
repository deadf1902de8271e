"""torch.distributions' names: densities and samples of common distributions, in ops; imports core, eager, ops, autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgrad.core.missing_names import Lookup, raising
from jitgrad.distributions import constraints, transforms
from jitgrad.distributions.bernoulli import Bernoulli
from jitgrad.distributions.beta import Beta
from jitgrad.distributions.binomial import Binomial
from jitgrad.distributions.categorical import Categorical
from jitgrad.distributions.cauchy import Cauchy
from jitgrad.distributions.constraint_registry import biject_to, transform_to
from jitgrad.distributions.dirichlet import Dirichlet
from jitgrad.distributions.distribution import Distribution
from jitgrad.distributions.exponential import Exponential
from jitgrad.distributions.folded import HalfCauchy, HalfNormal
from jitgrad.distributions.gamma import Chi2, Gamma, InverseGamma
from jitgrad.distributions.geometric import Geometric
from jitgrad.distributions.gumbel import Gumbel
from jitgrad.distributions.independent import Independent
from jitgrad.distributions.kl import kl_divergence
from jitgrad.distributions.laplace import Laplace
from jitgrad.distributions.log_normal import LogNormal
from jitgrad.distributions.mixture_same_family import MixtureSameFamily
from jitgrad.distributions.multivariate_normal import MultivariateNormal
from jitgrad.distributions.negative_binomial import NegativeBinomial
from jitgrad.distributions.normal import Normal
from jitgrad.distributions.one_hot_categorical import (
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from jitgrad.distributions.poisson import Poisson
from jitgrad.distributions.powers import Kumaraswamy, Pareto, Weibull
from jitgrad.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from jitgrad.distributions.student_t import StudentT
from jitgrad.distributions.transformed_distribution import TransformedDistribution
from jitgrad.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
)
from jitgrad.distributions.uniform import Uniform

__all__ = [
    "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfCauchy",
    "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "Laplace", "LogNormal", "MixtureSameFamily",
    "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "SigmoidTransform", "SoftplusTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution",
    "Uniform", "Weibull", "biject_to", "constraints", "kl_divergence", "transform_to", "transforms",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.distributions", globals())
