"""torch.distributions' names: densities and samples of common distributions, in ops; imports core, ops and autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgrad.core.missing_names import Lookup, raising
from jitgrad.distributions.bernoulli import Bernoulli
from jitgrad.distributions.categorical import Categorical
from jitgrad.distributions.distribution import Distribution
from jitgrad.distributions.independent import Independent
from jitgrad.distributions.kl import kl_divergence
from jitgrad.distributions.normal import Normal
from jitgrad.distributions.uniform import Uniform

__all__ = ["Bernoulli", "Categorical", "Distribution", "Independent", "Normal", "Uniform", "kl_divergence"]

if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.distributions", globals())
