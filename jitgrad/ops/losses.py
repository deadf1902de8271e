"""Losses: compositions of primitives, so that a loss and its gradient fuse into row kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import broadcast_shapes, normalize_axis
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.eager.scalar_eval import blockwise, on_floats
from jitgrad.ops import arithmetic, transcendental
from jitgrad.ops.activations import logsigmoid
from jitgrad.ops.arithmetic import add, divide, maximum, minimum, multiply, sqrt, square, subtract
from jitgrad.ops.comparison import equal, less, less_equal, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.labels import Labels, Reduction, class_axis, reduced
from jitgrad.ops.movement import expand_dims
from jitgrad.ops.operand import is_number
from jitgrad.ops.reduce import logsumexp, mean
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.transcendental import exp, log, log1p


def _pair(what: str, x: Any, target: Any) -> tuple[Any, Any]:
    """Both as tensors, or one as a Python number, which takes the other's dtype.

    One may broadcast to the other; (n,) against (n, 1) to (n, n) is nearly always a mistake.
    """
    if is_number(target):
        return asarray(x), target
    if is_number(x):
        return x, asarray(target)
    left, right = asarray(x), asarray(target)
    if broadcast_shapes(what, [left.aval, right.aval]) not in (left.shape, right.shape):
        raise ShapeError(f"{what}: prediction {left.aval} and target {right.aval} must have the same shape")
    return left, right


# --- distances ---------------------------------------------------------------------------------------------------


@composed
def mse_loss(x: Any, target: Any, reduction: Reduction = "mean") -> Tensor:
    """The squared distance ``(x - target)**2`` per element."""
    x, target = _pair("mse_loss", x, target)
    return reduced("mse_loss", square(subtract(x, target)), reduction)


@composed
def l1_loss(x: Any, target: Any, reduction: Reduction = "mean") -> Tensor:
    """The distance ``|x - target|`` per element."""
    x, target = _pair("l1_loss", x, target)
    return reduced("l1_loss", arithmetic.abs(subtract(x, target)), reduction)


@composed
def huber_loss(x: Any, target: Any, reduction: Reduction = "mean", delta: Any = 1.0) -> Tensor:
    """``0.5 d**2`` where ``|d| <= delta``, else ``delta (|d| - 0.5 delta)``, for ``d = x - target``.

    P. J. Huber, "Robust estimation of a location parameter", 1964.

    Raises:
        ArgumentError: ``delta`` is not positive.
    """
    if isinstance(delta, (int, float)) and delta <= 0:
        raise ArgumentError(f"huber_loss: delta must be positive, got {delta}")
    x, target = _pair("huber_loss", x, target)
    d = subtract(x, target)
    size = arithmetic.abs(d)
    near = multiply(multiply(d, d), 0.5)
    far = multiply(subtract(size, delta * 0.5), delta)
    return reduced("huber_loss", where(less_equal(size, delta), near, far), reduction)


@composed
def smooth_l1_loss(x: Any, target: Any, reduction: Reduction = "mean", beta: Any = 1.0) -> Tensor:
    """``0.5 d**2 / beta`` where ``|d| < beta``, else ``|d| - 0.5 beta``; ``beta=0`` is the L1 loss.

    Raises:
        ArgumentError: ``beta`` is negative.
    """
    if isinstance(beta, (int, float)) and beta < 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    if isinstance(beta, (int, float)) and beta == 0:
        return l1_loss(x, target, reduction)
    x, target = _pair("smooth_l1_loss", x, target)
    d = subtract(x, target)
    size = arithmetic.abs(d)
    near = divide(multiply(multiply(d, d), 0.5), beta)
    far = subtract(size, beta * 0.5)
    return reduced("smooth_l1_loss", where(less(size, beta), near, far), reduction)


# --- two classes -------------------------------------------------------------------------------------------------

_log1p = on_floats("log1p")
BINARY_CROSS_ENTROPY = define_elementwise(
    "binary_cross_entropy(x, target)",
    # logarithms are at least -100: one wrong, certain prediction makes no infinite loss
    scalar="-(target * maximum(log(x), -100.0) + (1.0 - target) * maximum(log1p(-x), -100.0))",
    eager=blockwise(
        lambda x, target: -(target * np.maximum(np.log(x), -100) + (1 - target) * np.maximum(_log1p(-x), -100))
    ),
    vjp=(
        lambda g, _out, x, target: multiply(g, _cross_entropy_slope(x, target)),
        lambda g, _out, x, _target: multiply(
            g, subtract(maximum(log1p(arithmetic.negative(x)), -100.0), maximum(log(x), -100.0))
        ),
    ),
    domain=("probability", "probability"),
    one_loop=lambda x, target: arithmetic.negative(
        add(
            multiply(target, maximum(log(x), -100.0)),
            multiply(subtract(1.0, target), maximum(log1p(arithmetic.negative(x)), -100.0)),
        )
    ),
)


def _cross_entropy_slope(x: Tensor, target: Tensor) -> Tensor:
    """``(x - target) / (x (1 - x))``, finite at 0 and 1."""
    return divide(subtract(x, target), maximum(multiply(subtract(1.0, x), x), 1e-12))


def binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: Reduction = "mean") -> Tensor:
    """``-(target log(x) + (1 - target) log(1 - x))`` for probabilities ``x``; logarithms are at least -100.

    ``weight`` multiplies the loss per element. Compiled, and on a device, ``x`` outside [0, 1] gives NaN.

    Raises:
        ArgumentError: in eager execution on the host, if ``x`` or ``target`` is not between 0 and 1.
    """
    if not current_interpreter.get().tracing:
        _check_probabilities("x", x)
        _check_probabilities("target", target)
    return _binary_cross_entropy(x, target, weight, reduction)


def _check_probabilities(name: str, given: Any) -> None:
    data = given._data if type(given) is Tensor else given
    if type(data) is np.ndarray and data.size:
        least, largest = np.minimum.reduce(data, axis=None), np.maximum.reduce(data, axis=None)
        if not (least >= 0 and largest <= 1):  # NaN, too
            raise ArgumentError(
                f"binary_cross_entropy: {name} must be between 0 and 1, got {least} to {largest}; "
                "binary_cross_entropy_with_logits takes scores of any size"
            )


@composed
def _binary_cross_entropy(x: Any, target: Any, weight: Any, reduction: Reduction) -> Tensor:
    losses: Tensor = apply_op(BINARY_CROSS_ENTROPY, *_pair("binary_cross_entropy", x, target))
    losses = losses if weight is None else multiply(losses, weight)
    return reduced("binary_cross_entropy", losses, reduction)


@composed
def binary_cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, reduction: Reduction = "mean", pos_weight: Any = None
) -> Tensor:
    """Binary cross entropy of ``sigmoid(x)``, stable for every ``x``: ``(1 - target) x + log(1 + exp(-x))``.

    ``weight`` multiplies the loss per element, ``pos_weight`` the part of positive targets.
    """
    x, target = _pair("binary_cross_entropy_with_logits", x, target)
    tail = logsigmoid(x)
    if pos_weight is not None:
        tail = multiply(tail, add(multiply(target, pos_weight - 1.0), 1.0))
    losses = subtract(multiply(subtract(1.0, target), x), tail)
    losses = losses if weight is None else multiply(losses, weight)
    return reduced("binary_cross_entropy_with_logits", losses, reduction)


@composed
def hinge_loss(x: Any, target: Any, margin: Any = 1.0, reduction: Reduction = "mean") -> Tensor:
    """``max(0, margin - target x)`` for targets 1 and -1."""
    x, target = _pair("hinge_loss", x, target)
    return reduced("hinge_loss", maximum(subtract(margin, multiply(target, x)), 0.0), reduction)


# --- many classes ------------------------------------------------------------------------------------------------


def cross_entropy(
    logits: Any,
    target: Any,
    label_smoothing: Any = 0.0,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    *,
    weight: Any = None,
    axis: int | None = None,
) -> Tensor:
    """The cross entropy of ``softmax(logits)`` with the labels: ``logsumexp(logits) - logits[label]``.

    Args:
        logits: scores with the classes on ``axis``: by default axis 1, or axis 0 of a vector, as in torch.
        target: integer labels of ``logits``'s shape without the class axis; or probabilities of ``logits``'s shape.
        label_smoothing: this much of the label's probability is spread evenly over all classes.
        ignore_index: positions with this label count for nothing; the mean is over the others.
        weight: one factor per class; the mean is then the weighted one.

    Raises:
        ArgumentError: a label is out of range (in compiled code the loss is NaN instead).
        ShapeError: the shapes do not fit.
    """
    logits, target = asarray(logits), asarray(target)
    if target.dtype.kind == "f":
        return _soft_cross_entropy(logits, target, label_smoothing, reduction, weight, axis)
    k, whole = class_axis("cross_entropy", logits, target, axis, ignore_index)
    return _hard_cross_entropy(logits, target, label_smoothing, ignore_index, reduction, weight, k, whole)


@composed
def _hard_cross_entropy(
    logits: Tensor,
    target: Tensor,
    label_smoothing: Any,
    ignore_index: int,
    reduction: Reduction,
    weight: Any,
    axis: int,
    whole: bool,
) -> Tensor:
    """:func:`cross_entropy` with labels that have been checked."""
    labels = Labels("cross_entropy", logits, target, axis, ignore_index, whole)
    total = logsumexp(logits, axis=labels.axis)
    losses = subtract(total, labels.pick(logits))
    weights = None if weight is None else labels.pick_weight(weight)
    if weights is not None:
        losses = multiply(losses, weights)
    if not (isinstance(label_smoothing, (int, float)) and label_smoothing == 0):
        if weight is None:
            spread = subtract(total, mean(logits, axis=labels.axis))
        else:
            surprise = subtract(expand_dims(total, labels.axis), logits)
            spread = mean(multiply(surprise, labels.along_classes(weight)), axis=labels.axis)
        losses = add(multiply(losses, 1.0 - label_smoothing), multiply(spread, label_smoothing))
    return labels.finish(losses, weights, reduction)


@composed
def _soft_cross_entropy(
    logits: Tensor, target: Tensor, label_smoothing: Any, reduction: Reduction, weight: Any, axis: int | None
) -> Tensor:
    """``-sum(target log_softmax(logits))`` over the classes; the mean is over the positions."""
    if target.shape != logits.shape or not logits.ndim:
        raise ShapeError(f"cross_entropy: probabilities {target.aval} need the shape of the logits {logits.aval}")
    k = normalize_axis("cross_entropy", min(1, logits.ndim - 1) if axis is None else axis, logits.ndim)
    if not (isinstance(label_smoothing, (int, float)) and label_smoothing == 0):
        even = label_smoothing / logits.shape[k]
        target = add(multiply(target, 1.0 - label_smoothing), even)
    if weight is not None:
        target = multiply(target, expand_dims(asarray(weight), tuple(range(1, logits.ndim - k))))
    surprise = subtract(logsumexp(logits, axis=k, keepdims=True), logits)
    # 0 * inf is 0 here: a class of probability 0 costs nothing
    terms = where(equal(target, 0), 0.0, multiply(target, surprise))
    return reduced("cross_entropy", sum_(terms, axis=k), reduction)


def nll_loss(
    log_probs: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    *,
    axis: int | None = None,
) -> Tensor:
    """``-log_probs[label]``, with arguments and errors as in :func:`cross_entropy`."""
    log_probs, target = asarray(log_probs), asarray(target)
    k, whole = class_axis("nll_loss", log_probs, target, axis, ignore_index)
    return _picked_losses(log_probs, target, weight, ignore_index, reduction, k, whole)


@composed
def _picked_losses(
    log_probs: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: Reduction, axis: int, whole: bool
) -> Tensor:
    """:func:`nll_loss` with labels that have been checked."""
    labels = Labels("nll_loss", log_probs, target, axis, ignore_index, whole)
    losses = arithmetic.negative(labels.pick(log_probs))
    weights = None if weight is None else labels.pick_weight(weight)
    return labels.finish(losses if weights is None else multiply(losses, weights), weights, reduction)


@composed
def kl_div(x: Any, target: Any, reduction: Reduction = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence per element, ``target (log(target) - x)``, for log-probabilities ``x``.

    ``log_target``: ``target`` is given as logarithms too. ``reduction="batchmean"`` divides the sum by the length
    of the first axis: the divergence as mathematics defines it, per sample.
    """
    x, target = _pair("kl_div", x, target)
    if log_target:
        losses = multiply(exp(target), subtract(target, x))
    else:
        zero = equal(target, 0)  # 0 log 0 = 0, also for the gradient
        logarithm = log(where(zero, 1.0, target))
        losses = where(zero, 0.0, multiply(target, subtract(logarithm, x)))
    if reduction == "batchmean":
        return divide(sum_(losses), losses.shape[0] if losses.ndim else 1)
    return reduced("kl_div", losses, reduction)


# --- embeddings --------------------------------------------------------------------------------------------------


@composed
def cosine_embedding_loss(x: Any, y: Any, target: Any, margin: Any = 0.0, reduction: Reduction = "mean") -> Tensor:
    """``1 - cos`` where ``target`` is 1, ``max(0, cos - margin)`` where it is -1; cos is over the last axis.

    Raises:
        ShapeError: ``target`` does not have the shape of ``x`` without its last axis.
    """
    x, y = _pair("cosine_embedding_loss", x, y)
    target = asarray(target)
    product = sum_(multiply(x, y), axis=-1)
    if target.shape != product.shape:
        raise ShapeError(f"cosine_embedding_loss: target must have shape {product.shape}, got {target.aval}")
    epsilon = 1e-12  # keeps the gradient finite for a zero vector
    square_x, square_y = (add(sum_(square(v), axis=-1), epsilon) for v in (x, y))
    cosine = divide(product, sqrt(multiply(square_x, square_y)))
    apart = maximum(subtract(cosine, margin), 0.0)
    losses = where(equal(target, 1), subtract(1.0, cosine), where(equal(target, -1), apart, 0.0))
    return reduced("cosine_embedding_loss", losses, reduction)


def _distance(x: Tensor, y: Tensor, p: float, eps: float) -> Tensor:
    """The p-norm of ``x - y + eps`` over the last axis; eps keeps the root away from 0."""
    d = add(subtract(x, y), eps)
    if p == 2:
        return sqrt(sum_(square(d), axis=-1))
    if p == 1:
        return sum_(arithmetic.abs(d), axis=-1)
    return transcendental.pow(sum_(transcendental.pow(arithmetic.abs(d), p), axis=-1), 1.0 / p)


@composed
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: Any = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` with p-norms over the last axis.

    ``swap`` takes the distance between positive and negative where it is smaller than that to the anchor
    (V. Balntas et al., "Learning shallow convolutional feature descriptors with triplet losses", BMVC 2016).
    """
    anchor, positive = _pair("triplet_margin_loss", anchor, positive)
    anchor, negative = _pair("triplet_margin_loss", anchor, negative)
    near, far = _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, _distance(positive, negative, p, eps))
    losses = maximum(add(subtract(near, far), margin), 0.0)
    return reduced("triplet_margin_loss", losses, reduction)
