"""Losses of margins, and likelihoods of counts and of normal numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import log as log_of_number
from math import pi
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.activations import logsigmoid, softplus
from jitgrad.ops.arithmetic import add, astype, divide, maximum, minimum, multiply, negative, square, subtract
from jitgrad.ops.comparison import equal, greater, less, logical_and, logical_not, where
from jitgrad.ops.creation import asarray, iota
from jitgrad.ops.distances import pairwise_distance
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.labels import Reduction, reduced
from jitgrad.ops.movement import expand_dims
from jitgrad.ops.neural import one_hot
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import any as any_
from jitgrad.ops.reduce import cumulative_sum, mean
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.transcendental import exp, log


@composed
def margin_ranking_loss(x: Any, y: Any, target: Any, margin: Any = 0.0, reduction: Reduction = "mean") -> Tensor:
    """``max(0, margin - target * (x - y))`` for targets 1 (``x`` should be larger) and -1."""
    losses = maximum(subtract(margin, multiply(target, subtract(x, y))), 0.0)
    return reduced("margin_ranking_loss", losses, reduction)


@composed
def hinge_embedding_loss(x: Any, target: Any, margin: Any = 1.0, reduction: Reduction = "mean") -> Tensor:
    """The distance ``x`` where the target is 1, ``max(0, margin - x)`` where it is -1."""
    near, far = where(equal(target, -1), 0.0, x), where(equal(target, 1), 0.0, maximum(subtract(margin, x), 0.0))
    return reduced("hinge_embedding_loss", add(near, far), reduction)


@composed
def soft_margin_loss(x: Any, target: Any, reduction: Reduction = "mean") -> Tensor:
    """``log(1 + exp(-target * x))`` for targets 1 and -1."""
    return reduced("soft_margin_loss", softplus(negative(multiply(target, x))), reduction)


def multi_margin_loss(
    x: Any, target: Any, p: int = 1, margin: Any = 1.0, weight: Any = None, reduction: Reduction = "mean"
) -> Tensor:
    """The multi-class hinge: over all other classes, the mean of ``max(0, margin - x[label] + x[other])**p``.

    ``x`` [n, classes] or [classes], integer labels [n] or []; a single score is one class. The sum over other
    classes is divided by all of them, as in torch. Raises ArgumentError for another ``p`` than 1 and 2.
    """
    scores, labels = asarray(x), asarray(target)
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    scores = scores if scores.ndim else expand_dims(scores, 0)
    if scores.ndim not in (1, 2) or labels.shape != scores.shape[:-1]:
        raise ShapeError(f"multi_margin_loss: scores {scores.aval} and labels {labels.aval} do not fit together")
    return _multi_margin(scores, one_hot(labels, scores.shape[-1], dtype=scores.dtype), p, margin, weight, reduction)


@composed
def _multi_margin(scores: Tensor, hot: Tensor, p: int, margin: Any, weight: Any, reduction: Reduction) -> Tensor:
    """:func:`multi_margin_loss` with one for each label in ``hot``."""
    own = expand_dims(sum_(multiply(scores, hot), -1), -1)
    terms = multiply(maximum(add(subtract(scores, own), margin), 0.0), subtract(1.0, hot))
    terms = terms if p == 1 else square(terms)
    losses = mean(terms, -1)
    if weight is not None:
        losses = multiply(losses, sum_(multiply(hot, weight), -1))
    return reduced("multi_margin_loss", losses, reduction)


@composed
def multilabel_soft_margin_loss(x: Any, target: Any, weight: Any = None, reduction: Reduction = "mean") -> Tensor:
    """Binary cross entropy of ``sigmoid(x)``, the mean over the last axis; ``weight`` has a factor per class."""
    terms = add(multiply(target, logsigmoid(x)), multiply(subtract(1.0, target), logsigmoid(negative(x))))
    terms = negative(terms if weight is None else multiply(terms, weight))
    return reduced("multilabel_soft_margin_loss", mean(terms, -1), reduction)


@composed
def poisson_nll_loss(
    x: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: Reduction = "mean"
) -> Tensor:
    """The negative log-likelihood of Poisson counts; ``x`` is the logarithm of the rate, or the rate itself.

    ``full`` adds Stirling's approximation of ``log(target!)`` for targets above 1.
    """
    losses = subtract(exp(x), multiply(target, x)) if log_input else subtract(x, multiply(target, log(add(x, eps))))
    if full:
        count = where(greater(target, 1), target, 1.0)
        stirling = add(subtract(multiply(count, log(count)), count), multiply(log(multiply(count, 2 * pi)), 0.5))
        losses = add(losses, where(greater(target, 1), stirling, 0.0))
    return reduced("poisson_nll_loss", losses, reduction)


@composed
def gaussian_nll_loss(
    x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"
) -> Tensor:
    """``0.5 * (log(var) + (x - target)**2 / var)`` with ``var`` cut from below at ``eps``.

    ``full`` adds the constant ``0.5 * log(2 pi)``. A ``var`` with the axes of ``x`` but for the last one holds, as in
    torch, one number for all of that axis.
    """
    spread, shape = asarray(var), asarray(x).shape
    if len(shape) > 1 and spread.shape == shape[:-1]:
        spread = expand_dims(spread, -1)
    # the limit changes the value only: the gradient by var is taken as if there were none, as in torch
    limited = add(spread, maximum(subtract(eps, spread.detach()), 0.0))
    losses = multiply(add(log(limited), divide(square(subtract(x, target)), limited)), 0.5)
    return reduced("gaussian_nll_loss", add(losses, 0.5 * log_of_number(2 * pi)) if full else losses, reduction)


def multilabel_margin_loss(input: Any, target: Any, *, reduction: Reduction = "mean") -> Tensor:
    """``sum(max(0, 1 - (x[label] - x[k]))) / classes`` over a row's labels and all other classes k.

    ``target`` [n, classes] has the labels of each row first, then -1, as in torch.
    """
    x, labels = asarray(input), asarray(target)
    if x.shape != labels.shape or x.ndim not in (1, 2) or labels.dtype.kind not in "iu":
        raise ShapeError(f"multilabel_margin_loss: expected scores and integer labels of one shape, got {x.aval}, {labels.aval}")
    valid = less(cumulative_sum(astype(less(labels, 0), np.int64), -1), 1)
    safe = where(valid, labels, 0)
    with beside(x):
        classes = iota((x.shape[-1],), 0)
    is_label = any_(logical_and(expand_dims(valid, -1), equal(expand_dims(safe, -1), classes)), -2)
    margins = add(subtract(1.0, expand_dims(take_along_axis(x, safe, -1), -1)), expand_dims(x, -2))
    counts = logical_and(expand_dims(valid, -1), logical_not(expand_dims(is_label, -2)))
    per_row = divide(sum_(where(counts, maximum(margins, 0.0), 0.0), (-2, -1)), x.shape[-1])
    return reduced("multilabel_margin_loss", per_row, reduction)


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``; ``d`` is pairwise_distance unless given.

    ``swap`` takes the distance from ``positive`` to ``negative`` where that is smaller.
    """
    distance = distance_function or pairwise_distance
    far = distance(anchor, negative)
    far = minimum(far, distance(positive, negative)) if swap else far
    losses = maximum(add(subtract(distance(anchor, positive), far), margin), 0.0)
    return reduced("triplet_margin_with_distance_loss", losses, reduction)
