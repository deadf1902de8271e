"""Losses of margins, and likelihoods of counts and of normal numbers."""

from __future__ import annotations

from math import log as log_of_number
from math import pi
from typing import Any

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.activations import logsigmoid, softplus
from jitgrad.ops.arithmetic import add, divide, maximum, multiply, negative, square, subtract
from jitgrad.ops.comparison import equal, greater, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.losses import Reduction, reduced
from jitgrad.ops.movement import expand_dims
from jitgrad.ops.neural import one_hot
from jitgrad.ops.reduce import mean
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.transcendental import exp, log


def margin_ranking_loss(x: Any, y: Any, target: Any, margin: Any = 0.0, reduction: Reduction = "mean") -> Tensor:
    """``max(0, margin - target * (x - y))`` for targets 1 (``x`` should be larger) and -1."""
    losses = maximum(subtract(margin, multiply(target, subtract(x, y))), 0.0)
    return reduced("margin_ranking_loss", losses, reduction)


def hinge_embedding_loss(x: Any, target: Any, margin: Any = 1.0, reduction: Reduction = "mean") -> Tensor:
    """The distance ``x`` where the target is 1, ``max(0, margin - x)`` where it is -1."""
    near, far = where(equal(target, -1), 0.0, x), where(equal(target, 1), 0.0, maximum(subtract(margin, x), 0.0))
    return reduced("hinge_embedding_loss", add(near, far), reduction)


def soft_margin_loss(x: Any, target: Any, reduction: Reduction = "mean") -> Tensor:
    """``log(1 + exp(-target * x))`` for targets 1 and -1."""
    return reduced("soft_margin_loss", softplus(negative(multiply(target, x))), reduction)


def multi_margin_loss(
    x: Any, target: Any, p: int = 1, margin: Any = 1.0, weight: Any = None, reduction: Reduction = "mean"
) -> Tensor:
    """The multi-class hinge: over all other classes, the mean of ``max(0, margin - x[label] + x[other])**p``.

    ``x`` [n, classes] or [classes], integer labels [n] or []; the sum over other classes is divided by all of them, as
    in torch. Raises ArgumentError for another ``p`` than 1 and 2.
    """
    scores, labels = asarray(x), asarray(target)
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    if scores.ndim not in (1, 2) or labels.shape != scores.shape[:-1]:
        raise ShapeError(f"multi_margin_loss: scores {scores.aval} and labels {labels.aval} do not fit together")
    hot = one_hot(labels, scores.shape[-1], dtype=scores.dtype)
    own = expand_dims(sum_(multiply(scores, hot), -1), -1)
    terms = multiply(maximum(add(subtract(scores, own), margin), 0.0), subtract(1.0, hot))
    terms = terms if p == 1 else square(terms)
    losses = mean(terms, -1)
    if weight is not None:
        losses = multiply(losses, sum_(multiply(hot, weight), -1))
    return reduced("multi_margin_loss", losses, reduction)


def multilabel_soft_margin_loss(x: Any, target: Any, weight: Any = None, reduction: Reduction = "mean") -> Tensor:
    """Binary cross entropy of ``sigmoid(x)``, the mean over the last axis; ``weight`` has a factor per class."""
    terms = add(multiply(target, logsigmoid(x)), multiply(subtract(1.0, target), logsigmoid(negative(x))))
    terms = negative(terms if weight is None else multiply(terms, weight))
    return reduced("multilabel_soft_margin_loss", mean(terms, -1), reduction)


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


def gaussian_nll_loss(
    x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"
) -> Tensor:
    """``0.5 * (log(var) + (x - target)**2 / var)`` with ``var`` cut from below at ``eps``.

    ``full`` adds the constant ``0.5 * log(2 pi)``.
    """
    spread = asarray(var)
    # the limit changes the value only: the gradient by var is taken as if there were none, as in torch
    limited = add(spread, maximum(subtract(eps, spread.detach()), 0.0))
    losses = multiply(add(log(limited), divide(square(subtract(x, target)), limited)), 0.5)
    return reduced("gaussian_nll_loss", add(losses, 0.5 * log_of_number(2 * pi)) if full else losses, reduction)
