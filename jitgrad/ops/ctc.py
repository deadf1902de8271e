"""Connectionist temporal classification: the loss of sequences whose alignment with their labels is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.errors import ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, astype, divide, maximum, multiply, negative
from jitgrad.ops.comparison import equal, greater, greater_equal, less, logical_and, not_equal, where
from jitgrad.ops.creation import asarray, full, iota
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.joining import concat, pad, stack
from jitgrad.ops.labels import Reduction, reduced
from jitgrad.ops.movement import broadcast_to, expand_dims, reshape
from jitgrad.ops.operand import contents_of
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import mean
from jitgrad.ops.subscript import get_item
from jitgrad.ops.transcendental import logaddexp

# In place of log 0: far below every sum of logarithms, and no source of NaN in gradients.
_IMPOSSIBLE = -1e30


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-probability of each label sequence, over all its alignments, as torch's ctc_loss.

    A. Graves et al., "Connectionist temporal classification", ICML 2006.

    Args:
        log_probs: [time, n, classes] or [time, classes], logarithms of probabilities.
        targets: [n, labels] (rows are read up to their length), or all labels one after the other.
        input_lengths, target_lengths: [n] numbers of steps and of labels.
        blank: the class between labels.
        reduction: "mean" divides each loss by its number of labels, then takes the mean.
        zero_infinity: a sequence that is too short for its labels has loss 0 in place of inf. Its gradient is 0 in
            both cases.

    Raises:
        ShapeError: the arguments do not fit together.
    """
    scores = asarray(log_probs)
    alone = scores.ndim == 2
    scores = expand_dims(scores, 1) if alone else scores
    if scores.ndim != 3 or not 0 <= blank < scores.shape[2]:
        raise ShapeError(f"ctc_loss: expected log_probs [time, n, classes] and a blank among the classes, got {scores.aval}")
    n = scores.shape[1]
    with beside(scores):
        lengths, counts = _lengths("input_lengths", input_lengths, n), _lengths("target_lengths", target_lengths, n)
        labels = _padded_labels(targets, target_lengths, n)
        losses = negative(_log_likelihood(scores, labels, lengths, counts, blank))
        impossible = greater(losses, -0.5 * _IMPOSSIBLE)
        losses = where(impossible, 0.0 if zero_infinity else np.inf, losses)
    if reduction == "mean":
        return mean(divide(losses, astype(maximum(counts, 1), losses.dtype)))
    return reduced("ctc_loss", reshape(losses, ()) if alone else losses, reduction)


def _lengths(name: str, given: Any, n: int) -> Tensor:
    values = asarray(given)
    values = reshape(values, (1,)) if values.ndim == 0 else values
    if values.shape != (n,) or values.dtype.kind not in "iu":
        raise ShapeError(f"ctc_loss: {name} must be {n} integers, one for each sequence, got {values.aval}")
    return values


def _padded_labels(targets: Any, lengths: Any, n: int) -> Tensor:
    """The labels [n, most of a sequence], from such or from all of them one after the other."""
    labels = asarray(targets)
    if labels.dtype.kind not in "iu" or labels.ndim not in (1, 2):
        raise ShapeError(f"ctc_loss: expected integer targets [n, labels], or all labels in a vector, got {labels.aval}")
    if labels.ndim == 2:
        if labels.shape[0] != n:
            raise ShapeError(f"ctc_loss: targets {labels.aval} are not {n} sequences")
        return labels
    if n == 1:
        return expand_dims(labels, 0)
    counts = _known("target_lengths", lengths)
    if sum(counts) != labels.shape[0]:
        raise ShapeError(f"ctc_loss: target_lengths {shown(counts)} do not add up to the {labels.shape[0]} targets")
    starts = [sum(counts[:k]) for k in range(n)]
    rows = [get_item(labels, slice(start, start + count)) for start, count in zip(starts, counts, strict=True)]
    return stack([pad(row, ((0, max(counts) - row.shape[0]),)) for row in rows])


def _known(name: str, lengths: Any) -> Sequence[int]:
    """The lengths as numbers: they say where each sequence's labels begin."""
    what = f"{name} of ctc_loss with targets in a vector; give targets [n, labels]"
    return [int(k) for k in contents_of(lengths, what).reshape(-1)]


def _log_likelihood(scores: Tensor, labels: Tensor, lengths: Tensor, counts: Tensor, blank: int) -> Tensor:
    """[n] logarithms of the labels' probabilities: forward variables over labels with blanks between them."""
    steps, n, _ = scores.shape
    most = labels.shape[1]
    states = 2 * most + 1
    between = full((n, most), blank, dtype=labels.dtype)
    path = concat([reshape(stack([between, labels], 2), (n, 2 * most)), full((n, 1), blank, dtype=labels.dtype)], 1)
    number = expand_dims(iota((states,), 0), 0)
    exists = less(number, add(multiply(expand_dims(counts, 1), 2), 1))
    safe = where(exists, path, blank)  # what stands after a sequence's labels is no class
    emitted = take_along_axis(scores, broadcast_to(expand_dims(safe, 0), (steps, n, states)), 2)
    # from a label to the next one without a blank, unless they are the same
    skips = logical_and(not_equal(safe, blank), not_equal(safe, _shifted(safe, 2, blank)))
    skips = logical_and(skips, greater_equal(number, 2))
    first = logical_and(less(number, 2), exists)
    alpha = where(first, get_item(emitted, 0), _IMPOSSIBLE)
    for t in range(1, steps):
        before = logaddexp(alpha, _shifted(alpha, 1, _IMPOSSIBLE))
        before = logaddexp(before, where(skips, _shifted(alpha, 2, _IMPOSSIBLE), _IMPOSSIBLE))
        moved = maximum(add(before, get_item(emitted, t)), _IMPOSSIBLE)
        alpha = where(expand_dims(less(t, lengths), 1), moved, alpha)
    last = multiply(expand_dims(counts, 1), 2)
    at_blank = reshape(take_along_axis(alpha, last, 1), (n,))
    at_label = reshape(take_along_axis(alpha, maximum(add(last, -1), 0), 1), (n,))
    return where(equal(counts, 0), at_blank, logaddexp(at_blank, at_label))


def _shifted(x: Tensor, by: int, fill: Any) -> Tensor:
    """``x`` [n, states] with each state's value at the one ``by`` later."""
    n, states = x.shape
    return concat([full((n, min(by, states)), fill, dtype=x.dtype), get_item(x, (slice(None), slice(0, max(states - by, 0))))], 1)
