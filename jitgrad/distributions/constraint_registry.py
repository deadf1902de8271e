"""Transforms from all real numbers to the values that a constraint allows."""

from __future__ import annotations

from jitgrad.core.errors import ArgumentError
from jitgrad.distributions.constraints import Constraint
from jitgrad.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    Transform,
    identity_transform,
)


def transform_to(constraint: Constraint) -> Transform:
    """A transform of real numbers to what satisfies ``constraint``, a bound, an interval or any number, as in torch.

    Raises:
        ArgumentError: there is none for this constraint.
    """
    if constraint.bounds is None or constraint.is_discrete:
        raise ArgumentError(f"transform_to: no transform leads to {constraint}; write the map of your parameters in ops")
    low, high = constraint.bounds
    if low is None and high is None:
        return identity_transform
    if low is not None and high is not None:
        squashed = SigmoidTransform()
        unit = isinstance(low, float | int) and isinstance(high, float | int) and (low, high) == (0, 1)
        return squashed if unit else ComposeTransform([squashed, AffineTransform(low, high - low)])
    if low is None:
        return ComposeTransform([ExpTransform(), AffineTransform(high, -1.0)])
    positive = isinstance(low, float | int) and low == 0
    return ExpTransform() if positive else ComposeTransform([ExpTransform(), AffineTransform(low, 1.0)])


biject_to = transform_to  # torch's name where each value must come from one number alone, which holds for all of these
