"""Kullback-Leibler divergences."""

from __future__ import annotations

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions.bernoulli import Bernoulli
from jitgrad.distributions.categorical import Categorical
from jitgrad.distributions.distribution import Distribution
from jitgrad.distributions.independent import Independent
from jitgrad.distributions.normal import Normal
from jitgrad.ops.activations import softplus
from jitgrad.ops.arithmetic import square
from jitgrad.ops.reduce import sum
from jitgrad.ops.transcendental import log


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of ``p`` from ``q``, per element of their batch.

    Raises ArgumentError for pairs other than two of Normal, Categorical, Bernoulli or Independent of these.
    """
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio = square(p.scale / q.scale)
        return (ratio + square((p.loc - q.loc) / q.scale) - 1.0 - log(ratio)) * 0.5
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return sum(p.probs * (p.logits - q.logits), -1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        return softplus(q.logits) - softplus(p.logits) + p.probs * (p.logits - q.logits)
    if isinstance(p, Independent) and isinstance(q, Independent) and p.event_shape == q.event_shape:
        return p.summed(kl_divergence(p.base_dist, q.base_dist))
    raise ArgumentError(f"kl_divergence: no formula for {p!r} and {q!r}: estimate it, (p.log_prob(x) - q.log_prob(x)).mean() "
                        "of samples x of p")  # fmt: skip
