"""Calls of functions that are compositions in eager execution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import jitgrad as jg
from jitgrad.core.tensor import Tensor
from jitgrad.nn import functional as F

LABELS = np.array([0, 3, 2, -100])


def grid(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape)) * 1.7).reshape(shape)


Call = Callable[..., Tensor]
# name -> the shapes of floating operands, and the function of these as tensors
COMPOSED: dict[str, tuple[list[tuple[int, ...]], Call]] = {
    "softmax": ([(4, 5)], lambda x: F.softmax(x, -1)),
    "softmax of dim": ([(4, 5)], lambda x: F.softmax(x, dim=0)),
    "log_softmax": ([(4, 5)], lambda x: jg.log_softmax(x, axis=1)),
    "logsumexp": ([(4, 5)], lambda x: jg.logsumexp(x, (0, 1), True)),
    "mean": ([(4, 5)], lambda x: x.mean(0)),
    "mean of all": ([(4, 5)], lambda x: x.mean()),
    "mean of 0-d": ([()], lambda x: x.mean()),
    "var": ([(4, 5)], lambda x: jg.var(x, 1, correction=1)),
    "std": ([(4, 5)], lambda x: jg.std(x, keepdims=True)),
    "linear": ([(4, 5), (3, 5), (3,)], lambda x, w, b: F.linear(x, w, b)),
    "linear of a batch": ([(2, 4, 5), (3, 5)], lambda x, w: F.linear(x, w)),
    "linear of vectors": ([(5,), (5,)], lambda x, w: F.linear(x, w)),
    "layer_norm": ([(4, 5), (5,), (5,)], lambda x, w, b: F.layer_norm(x, (5,), w, b)),
    "layer_norm without eps": ([(4, 5)], lambda x: F.layer_norm(x, (4, 5), eps=0.0)),
    "rms_norm": ([(4, 5), (5,)], lambda x, w: F.rms_norm(x, (5,), w)),
    "group_norm": ([(2, 4, 3), (4,), (4,)], lambda x, w, b: F.group_norm(x, 2, w, b)),
    "mse_loss": ([(4, 5), (4, 5)], lambda x, y: F.mse_loss(x, y)),
    "l1_loss": ([(4, 5), (4, 5)], lambda x, y: F.l1_loss(x, y, reduction="none")),
    "huber_loss": ([(4, 5), (4, 5)], lambda x, y: F.huber_loss(x, y, "sum", 0.5)),
    "smooth_l1_loss": ([(4, 5), (4, 5)], lambda x, y: F.smooth_l1_loss(x, y)),
    "binary_cross_entropy": ([(4, 5), (4, 5)], lambda x, y: jg.binary_cross_entropy(x * x * 0.2 + 0.2, y * y * 0.2)),
    "with logits": ([(4, 5), (4, 5)], lambda x, y: jg.binary_cross_entropy_with_logits(x, y)),
    "hinge_loss": ([(4, 5), (4, 5)], lambda x, y: jg.hinge_loss(x, y)),
    "kl_div": ([(4, 5), (4, 5)], lambda x, y: jg.kl_div(x, y * y + 0.1, "batchmean")),
    "cross_entropy": ([(4, 5)], lambda x: F.cross_entropy(x, jg.tensor(LABELS))),
    "weighted": ([(4, 5), (5,)], lambda x, w: F.cross_entropy(x, jg.tensor(LABELS), weight=w, label_smoothing=0.1)),
    "of probabilities": ([(4, 5), (4, 5)], lambda x, p: F.cross_entropy(x, p * p)),
    "norm": ([(4, 5)], lambda x: jg.norm(x, 3.0, 1)),
    "method norm": ([(4, 5)], lambda x: x.norm()),
    "clip": ([(4, 5)], lambda x: jg.clip(x, -0.5, 0.25)),
    "normalize": ([(4, 5)], lambda x: F.normalize(x)),
    "cosine_similarity": ([(4, 5), (4, 5)], lambda x, y: F.cosine_similarity(x, y)),
    "outer": ([(4,), (5,)], lambda x, y: jg.outer(x, y)),
    "einsum": ([(4, 5), (3, 5)], lambda x, y: jg.einsum("ij,kj->ki", x, y)),
    "tril": ([(4, 5)], lambda x: jg.tril(x, -1)),
    "triu": ([(2, 4, 5)], lambda x: jg.triu(x)),
    "roll": ([(4, 5)], lambda x: jg.roll(x, 3)),
    "roll of axes": ([(4, 5)], lambda x: jg.roll(x, (1, -2), (0, 1))),
    "nll_loss": ([(4, 5)], lambda x: F.nll_loss(x, jg.tensor(LABELS), reduction="none")),
    "margin_ranking_loss": ([(4, 5)] * 3, lambda x, y, t: F.margin_ranking_loss(x, y, t, 0.5)),
    "hinge_embedding_loss": ([(4, 5)], lambda x: F.hinge_embedding_loss(x, jg.tensor([1, -1, 1, 1, -1]))),
    "soft_margin_loss": ([(4, 5), (4, 5)], lambda x, y: F.soft_margin_loss(x, y)),
    "multi_margin_loss": ([(4, 5)], lambda x: F.multi_margin_loss(x, jg.tensor([0, 3, 2, 4]), 2)),
    "multilabel_soft_margin_loss": ([(4, 5), (4, 5)], lambda x, y: F.multilabel_soft_margin_loss(x, y)),
    "poisson_nll_loss": ([(4, 5), (4, 5)], lambda x, y: F.poisson_nll_loss(x, y, full=True)),
    "gaussian_nll_loss": ([(4, 5), (4, 5), (4,)], lambda x, y, v: F.gaussian_nll_loss(x, y, v * v)),
    "attention": ([(2, 4, 3), (2, 5, 3), (2, 5, 2)], lambda q, k, v: F.scaled_dot_product_attention(q, k, v)),
    "causal attention": ([(4, 3), (4, 3), (4, 2)], lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    "masked attention": ([(4, 3), (5, 3), (5, 2), (4, 5)], lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m)),
    "Normal.log_prob": ([(4, 5), (5,)], lambda x, m: jg.distributions.Normal(m, m * m + 0.1).log_prob(x)),
}
